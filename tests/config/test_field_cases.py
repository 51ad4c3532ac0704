"""Configurations that people had trouble with: odd names, quoting in commands, macros everywhere.

What each is about: names with colons, slashes and worse (llama-swap issue 69), comments and quotes in
`cmd` (133, pull request 22), macros in every field (336, 793, 900, 919).
"""

from __future__ import annotations

import json
import textwrap

import pytest

from llamaswap.calls.profiles import ActiveProfile
from llamaswap.calls.resolution import Directory, Local, make_directory
from llamaswap.config.load import load_text
from llamaswap.config.model import Config
from support.config_checks import loaded, rejected
from support.field_commands import QUOTING

# --- names ---------------------------------------------------------------------------------------------

NAMES = (
    "a",
    "a/b",
    "a/b/c:Q4_K_M",
    "x",
    "x:y",
    "gemma:27b",
    "with space",
    "ünï",
    "100%",
    "a?b",
    "..",
    "a%2Fz",
)


def named(*names: str) -> Config:
    """A configuration with models of these names."""
    models = {
        name: {"cmd": "srv ${MODEL_ID}", "proxy": "http://h:1", "name": "${MODEL_ID}"} for name in names
    }
    return load_text(json.dumps({"models": models}, ensure_ascii=False))


def directory(*names: str) -> Directory:
    """Who answers to these names, when nothing runs."""
    config = named(*names)
    return make_directory(config, ActiveProfile(config.profiles), lambda _model: "stopped")


@pytest.mark.parametrize("name", NAMES)
def test_case_080_a_name_means_its_model_whatever_is_in_it(name: str) -> None:
    config = named(*NAMES)
    found = directory(*NAMES).resolve(name).destination

    assert isinstance(found, Local)
    assert (found.model.id, config.models[name].name) == (name, name)


@pytest.mark.parametrize("name", NAMES)
def test_case_080_a_path_begins_with_a_name_whatever_is_in_it(name: str) -> None:
    assert directory(*NAMES).resolve_path(f"{name}/v1/models").name == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/b/c:Q4_K_M/v1/models", "a/b/c:Q4_K_M"),
        ("a/b/c/v1", "a/b"),
        ("a/bb/v1", "a"),
        ("x:y/v1", "x:y"),
        ("x/y/v1", "x"),
    ],
)
def test_case_080_the_longest_name_that_a_path_begins_with_counts(path: str, name: str) -> None:
    assert directory(*NAMES).resolve_path(path).name == name


def test_case_080_a_colon_does_not_make_a_profile_of_a_name() -> None:
    config = loaded("""
        models: {"gemma:27b": {cmd: s, proxy: "http://h:1"}, big: {cmd: s, proxy: "http://h:2"}}
        profiles: {gemma: {pins: {27b: big}}}
        """)

    found = make_directory(config, ActiveProfile(config.profiles), lambda _: "stopped").resolve("gemma:27b")

    assert isinstance(found.destination, Local)
    assert found.destination.model.id == "gemma:27b"


# --- commands ------------------------------------------------------------------------------------------


def command_of(yaml_text: str) -> list[str]:
    """The words of a model's command, from a whole configuration."""
    return list(load_text(yaml_text).models["m"].argv)


@pytest.mark.parametrize(("text", "words"), QUOTING)
def test_case_081_a_command_has_these_words_however_yaml_spells_it(text: str, words: list[str]) -> None:
    before, after = "models:\n  m:\n    proxy: http://h:1\n    cmd: ", "\n"
    literal = before + "|-\n" + textwrap.indent(text, " " * 6, lambda _: True) + after

    assert command_of(before + json.dumps(text) + after) == words
    assert command_of(literal) == words
    assert command_of(literal.replace("\n", "\r\n")) == words


def test_case_081_there_are_twenty_five_of_them() -> None:
    assert len({text for text, _ in QUOTING}) == 25


def test_case_081_a_folded_block_makes_one_line_of_arguments_and_of_comments() -> None:
    folded = "models:\n  m:\n    proxy: http://h:1\n    cmd: >\n      srv --a 1\n      # --b 2\n      --c 3\n"

    assert command_of(folded) == ["srv", "--a", "1", "#", "--b", "2", "--c", "3"]
    assert command_of(folded.replace(">", "|")) == ["srv", "--a", "1", "--c", "3"]


def test_case_081_yaml_takes_a_comment_from_a_plain_command() -> None:
    assert command_of("models: \n  m:\n    proxy: http://h:1\n    cmd: srv --a 1 # --b\n") == [
        "srv",
        "--a",
        "1",
    ]


# --- macros --------------------------------------------------------------------------------------------

EVERYWHERE = """
macros: {t: text, n: 7, yes: true, f: 0.5, id: m, other: o, hc: 60, start: 6000, url: "http://h:9",
  dir: /d, path: "${dir}/x"}
healthCheckTimeout: "${hc}"
unloadTimeout: "${n}"
globalTTL: "${n}"
startPort: "${start}"
logTimeFormat: "${t}"
metricsMaxInMemory: "${n}"
captureBuffer: "${n}"
includeAliasesInList: "${yes}"
apiKeys: ["${t}"]
hooks: {on_startup: {preload: ["${id}"]}}
upstream: {ignorePaths: ["/${t}$"]}
ui: {activity: {session_id: ["X-${t}"]}}
performance: {every: "${n}s"}
models:
  m:
    macros: {own: "${path}/${MODEL_ID}"}
    cmd: "srv ${own} --port ${PORT} ${f}"
    cmdStop: "stop ${PID} ${own} ${PORT}"
    proxy: "http://127.0.0.1:${PORT}/${t}"
    checkEndpoint: "/${t}/${PORT}"
    aliases: ["${MODEL_ID}-${t}"]
    env: ["A=${own}", "P=${PORT}"]
    ttl: "${n}"
    unloadTimeout: "${n}"
    unlisted: "${yes}"
    useModelName: "${t}"
    name: "${t} ${n}"
    description: "${own}"
    concurrencyLimit: "${n}"
    sendLoadingState: "${yes}"
    timeouts: {connect: "${n}", responseHeader: "${n}"}
    compat: {ignoreWebsockets: "${yes}"}
    capabilities: {in: ["${t}"], context: "${n}", tools: "${yes}"}
    filters:
      stripParams: "${t}, ${id}"
      setParams: {n: "${n}", f: "${f}", yes: "${yes}", s: "${n}x", port: "${PORT}", in: [{a: "${t}"}]}
      setParamsByID: {"${MODEL_ID}:${t}": {x: "${n}"}}
    metadata: {port: "${PORT}", n: "${n}", in: {list: ["${f}", "${yes}"]}}
  o: {cmd: s, proxy: "${url}"}
groups: {g: {swap: "${yes}", members: ["${id}", "${other}"]}}
routing: {scheduler: {settings: {fifo: {priority: {m: "${n}"}}}}}
peers: {p: {proxy: "${url}", apiKey: "${t}", models: ["${t}-far"], filters: {setParams: {x: "${n}"}}}}
selectors: {s: {strategy: pin, targets: ["${id}"], name: "${t}", metadata: {n: "${n}"}}}
profiles: {day: {description: "${t}", pins: {public: "${id}"}}}
"""


def test_case_082_macros_are_replaced_in_every_field_of_a_model_and_keep_their_type() -> None:
    m = loaded(EVERYWHERE).models["m"]

    assert m.argv == ("srv", "/d/x/m", "--port", "6000", "0.5")
    assert (m.cmd_stop, m.proxy) == ("stop ${PID} /d/x/m 6000", "http://127.0.0.1:6000/text")
    assert (m.check_endpoint, m.use_model_name) == ("/text/6000", "text")
    assert (m.aliases, m.env) == (("m-text", "m:text"), ("A=/d/x/m", "P=6000"))
    assert (m.name, m.description) == ("text 7", "/d/x/m")
    assert (m.ttl, m.unload_timeout, m.concurrency_limit) == (7, 7, 7)
    assert (m.timeouts.connect, m.timeouts.response_header, m.capabilities.context) == (7, 7, 7)
    assert m.unlisted is m.send_loading_state is m.ignore_websockets is m.capabilities.tools is True
    assert m.filters.strip == ("m", "text")


def test_case_082_numbers_in_free_form_values_stay_numbers() -> None:
    config = loaded(EVERYWHERE)
    m = config.models["m"]

    params = {"n": 7, "f": 0.5, "yes": True, "s": "7x", "port": 6000, "in": [{"a": "text"}]}
    assert as_json(m.filters.set) == as_json(params)
    assert as_json(m.filters.set_by_id) == as_json({"m:text": {"x": 7}})
    assert as_json(m.metadata) == as_json({"port": 6000, "n": 7, "in": {"list": [0.5, True]}})
    assert as_json(config.peers["p"].filters.set) == as_json({"x": 7})
    assert as_json(config.selectors["s"].metadata) == as_json({"n": 7})


def test_case_082_macros_are_replaced_in_every_other_section() -> None:
    config = loaded(EVERYWHERE)

    assert (config.health_check_timeout, config.unload_timeout, config.global_ttl) == (60, 7, 7)
    assert (config.log_time_format, config.metrics_max_in_memory, config.capture_buffer) == ("text", 7, 7)
    assert (config.include_aliases_in_list, config.api_keys, config.preload) == (True, ("text",), ("m",))
    assert (config.ignore_paths, config.session_headers) == (("/text$",), ("X-text",))
    assert (config.performance.every_ms, config.scheduler.fifo_priority) == (7000, {"m": 7})
    assert [group.members for group in config.groups if group.id == "g"] == [("m", "o")]
    peer, selector, profile = config.peers["p"], config.selectors["s"], config.profiles["day"]
    assert (peer.proxy, peer.api_key, peer.models) == ("http://h:9", "text", ("text-far",))
    assert (selector.targets, selector.name) == (("m",), "text")
    assert (profile.description, profile.pins) == ("text", {"public": "m"})


@pytest.mark.parametrize(
    ("value", "word"),
    [("plain", "plain"), ("two words", "two words"), ("it's", "it's"), ("$HOME", "$HOME"), ("", "")],
)
def test_case_082_an_environment_variable_arrives_in_the_command_as_it_is(value: str, word: str) -> None:
    text = """
        macros: {home: "${env.X}"}
        models: {m: {cmd: 'srv "${home}"', proxy: "http://h:1"}}
        """

    assert loaded(text, X=value).models["m"].argv == ("srv", word)


def test_case_082_an_environment_variable_that_is_not_set_is_named_with_its_place() -> None:
    (mistake,) = rejected('models: {m: {cmd: "srv ${env.NOT_SET}", proxy: "http://h:1"}}')

    assert "NOT_SET" in mistake
    assert mistake.startswith("1:")


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ('cmd: "s ${nope}", proxy: "http://h:1"', "models.m.cmd"),
        ('cmd: s, proxy: "http://h:1/${nope}"', "models.m.proxy"),
        ('cmd: s, proxy: "http://h:1", aliases: ["${nope}"]', "models.m.aliases[0]"),
        ('cmd: s, proxy: "http://h:1", metadata: {a: {b: "${nope}"}}', "models.m.metadata.a.b"),
        ('cmd: s, proxy: "http://h:1", filters: {setParams: {a: "${nope}"}}', "models.m.filters.setParams.a"),
    ],
)
def test_case_082_an_unknown_macro_is_named_with_its_model_and_field(setting: str, named: str) -> None:
    (mistake,) = rejected(f"models: {{m: {{{setting}}}}}")

    assert f"{named}: unknown macro ${{nope}}" in mistake


def test_case_082_a_macro_can_only_use_those_before_it() -> None:
    def words(macros: str) -> tuple[str, ...]:
        return (
            loaded(f'macros: {macros}\nmodels: {{m: {{cmd: "s ${{b}}", proxy: "http://h:1"}}}}')
            .models["m"]
            .argv
        )

    assert words('{a: 1, b: "x${a}"}') == ("s", "x1")
    (mistake,) = rejected('macros: {b: "x${a}", a: 1}\nmodels: {m: {cmd: "s ${b}", proxy: "http://h:1"}}')
    assert "unknown macro ${a}" in mistake


def test_case_082_a_global_macro_may_speak_of_the_model_that_uses_it() -> None:
    config = loaded("""
        macros: {file: "/m/${MODEL_ID}.gguf"}
        models: {a: {cmd: "s ${file}", proxy: "http://h:1"}, b: {cmd: "s ${file}", proxy: "http://h:2"}}
        """)

    assert [model.argv[1] for model in config.models.values()] == ["/m/a.gguf", "/m/b.gguf"]


def test_case_082_an_overridden_macro_changes_what_was_built_from_it() -> None:
    text = """
        macros: {size: 1, flags: "-c ${size}"}
        models: {m: {macros: {size: 2}, cmd: "s ${flags}", proxy: "http://h:1"}}
        """

    assert loaded(text).models["m"].argv == ("s", "-c", "2")


def as_json(value: object) -> str:
    """A free-form value with its types: 1, 1.0 and true are three things."""
    return json.dumps(value, sort_keys=True, default=dict)
