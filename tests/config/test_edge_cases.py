"""Every numbered edge case of the configuration contract, in one table.

A row has the case's number, what it says, a text (or several files), and what comes of it:
values of the dump by their paths, REJECTED, a command's words, or who is evicted.  Cases
that only show while something runs are listed with the tests that play them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.config_edge_cases import REJECTED, Command, Question, Row, cmd, m, models, peer

TESTS = Path(__file__).parents[1]
CASES = 74

ONE, TWO = "models.m.cmd", "models.a.cmd"
STORE_A = 'd1: &m {cmd: A, proxy: "http://h"}\nmodels: {a: {<<: *m}}'
STORE_B = 'd2: &m {cmd: B, proxy: "http://h"}\nmodels: {b: {<<: *m}}'
SHARED_A = 'd: {x: &m {cmd: A, proxy: "http://h"}}\nmodels: {a: {<<: *m}}'
SHARED_B = 'd: {y: &m {cmd: B, proxy: "http://h"}}\nmodels: {b: {<<: *m}}'
LATE_ANCHOR = 'x: &c {cmd: B, proxy: "http://h"}\nmodels: {b: *c}'
SAME_NAME = f"peers: {{{peer('p', 'm')}, {peer('q', 'm')}}}\n"
SAME_QUALIFIED = f"peers: {{{peer('p', 'q/m')}, {peer('p/q', 'm')}}}"
CORES = f"peers: {{{peer('east', 'core')}, {peer('west', 'east/core')}}}"
REMOTE = f"peers: {{{peer('r', 'm')}}}\n"
NEWCOMER = models("ab", "groups: {x: {members: [a]}, y: {exclusive: false, members: [b]}}")
FRIENDS = models("ab", "groups: {x: {exclusive: false, members: [a]}, y: {exclusive: false, members: [b]}}")
BLOCK_NAME = "models:\n  m:\n    cmd: s\n    proxy: http://h\n    name: |\n      ${C}\n"
BLOCK_COMMENT = "models:\n  m:\n    proxy: http://h\n    cmd: |\n      s\n      # ${env.NOT_SET}\n"
TYPED = "macros: {C: 4096, F: 0.70, B: true}"
BASE = 'b: &b {cmd: "x ${L}", proxy: "http://h", macros: {L: 1}}'
LONG = "n" * 63

# fmt: off
ROWS = (
    # Loading.  One bare number among the ids makes llama-swap lose all models; here it is a mistake.
    Row("EC-1", "an id that is a number", "models: {42: {cmd: a, proxy: 'http://h'}}", REJECTED),
    Row("EC-1", "an id in quotes", "models: {'42': {cmd: a, proxy: 'http://h'}}", {"models.42.cmd": "a"}),
    Row("EC-2", "null model, in a block",
        "models:\n  x:\n", {"models.x.proxy": "", "models.x.checkEndpoint": ""}),
    Row("EC-2", "null model, in braces", "models: {x: ~}", {"models.x.timeouts.connect": 0}),
    Row("EC-2", "nothing in braces is text", "models: {x: }", REJECTED),
    Row("EC-2", "empty model needs a port", "models: {x: {}}", REJECTED),
    Row("EC-3", "numbers as text", m("name: 2.10, aliases: [007, yes]"),
        {"models.m.name": "2.1", "models.m.aliases": ["7", "yes"]}),
    Row("EC-4", "leftover in a model", m('note: "${nope}"'), REJECTED),
    Row("EC-4", "leftover in a store", 'zzz: "${nope}"', {"models": {}}),
    # llama-swap looks for an anchor in all files as if they were one; here an alias means its own file's.
    Row("EC-5", "same anchor, two stores",
        {"a.yaml": STORE_A, "b.yaml": STORE_B}, {TWO: "A", "models.b.cmd": "B"}),
    Row("EC-5", "same anchor, one store",
        {"a.yaml": SHARED_A, "b.yaml": SHARED_B}, {TWO: "A", "models.b.cmd": "B"}),
    Row("EC-5b", "anchor in a later file",
        {"a.yaml": models("a"), "b.yaml": LATE_ANCHOR}, {"models.b.cmd": "B"}),
    Row("EC-6", "models: and nothing, then some", {"a.yaml": "models:", "b.yaml": models("x")}, REJECTED),
    Row("EC-6", "level and nothing, then one", {"a.yaml": "logLevel:", "b.yaml": "logLevel: warn"},
        {"globals.logLevel": "warn"}),
    Row("EC-7", "a null that is written", {"a.yaml": "logLevel: ~", "b.yaml": "logLevel: warn"}, REJECTED),
    Row("EC-8", "a number in quotes", m('ttl: "300"'), REJECTED),
    Row("EC-8", "a word for true", m('unlisted: "On"'), {"models.m.unlisted": True}),
    Row("EC-8", "sixteen", m("concurrencyLimit: 0x10"), {"models.m.concurrencyLimit": 16}),
    Row("EC-9", "the same id twice", "models: {x: {cmd: a}, x: {cmd: b}}", REJECTED),

    # Keys.
    Row("EC-10", "member of two groups",
        models("a", "groups: {g: {members: [a]}, h: {members: [a]}}"), REJECTED),
    Row("EC-10", "member twice", models("a", "groups: {g: {members: [a, a]}}"), REJECTED),
    Row("EC-11", "member that is no model", models("a", "groups: {g: {members: [ghost]}}"), REJECTED),
    # llama-swap would let `a` belong nowhere; here the group of that name is ignored, with a warning.
    Row("EC-12", "the default group redefined",
        models("ab", 'groups: {"(default)": {swap: false, members: [a]}}'),
        {"groups.(default)": {"swap": True, "exclusive": True, "persistent": False, "members": ["a", "b"]}}),
    Row("EC-13", "an alias that is an id",
        "models: {a: {cmd: s, proxy: 'http://h', aliases: [b]}, b: {cmd: s, proxy: 'http://h'}}",
        {"models.a.aliases": ["b"], "models.b.aliases": []}),
    Row("EC-14", "an alias twice", m("aliases: [q, q]"), REJECTED),
    Row("EC-15", "a short health check", "healthCheckTimeout: 1", {"globals.healthCheckTimeout": 15}),
    Row("EC-15", "no unload timeout", "unloadTimeout: 0", {"globals.unloadTimeout": 10}),
    Row("EC-15", "a negative ttl", "globalTTL: -1", REJECTED),
    Row("EC-16", "ttl 0 is never", m("ttl: 0", "globalTTL: 60"), {"models.m.ttl": 0}),
    Row("EC-17", "garbage in the other router", 'routing: {router: {settings: {matrix: {sets: {s: "(("}}}}}',
        {"router": "group"}),
    Row("EC-18", "null matrix", "matrix: ~", {"router": "group"}),
    Row("EC-18", "empty matrix", "matrix: {}", REJECTED),
    Row("EC-19", "a pin to a pin", models("a", "profiles: {p: {pins: {x: y, y: a}}}"), REJECTED),
    Row("EC-20", "a bare name of two peers",
        SAME_NAME + "selectors: {s: {strategy: pin, targets: [m]}}", REJECTED),
    Row("EC-20", "a qualified name", SAME_NAME + "selectors: {s: {strategy: pin, targets: [p/m]}}",
        {"selectors.s.targets": ["p/m"]}),
    Row("EC-21", "two peers own one name", SAME_QUALIFIED, REJECTED),
    Row("EC-22", "an alias that is a peer's",
        m("filters: {setParamsByID: {p/z: {a: 1}}}", f"peers: {{{peer('p', 'z')}}}"), REJECTED),
    Row("EC-23", "a selector over a bare name",
        REMOTE + "selectors: {m: {strategy: spillover, targets: [r/m]}}",
        {"selectors.m.strategy": "spillover"}),
    Row("EC-23", "the same target in two words",
        REMOTE + "selectors: {x: {strategy: spillover, targets: [m, r/m]}}", REJECTED),
    Row("EC-24", "preload is cleaned up",
        m("aliases: [b]", 'hooks: {on_startup: {preload: [" m ", "", ghost, b]}}'),
        {"globals.preload": ["m", "m"]}),
    Row("EC-25", "session headers are cleaned up", 'ui: {activity: {session_id: [" X-A ", x-a, ""]}}',
        {"globals.sessionHeaders": ["X-A"]}),

    # Macros.
    Row("EC-26", "a chain",
        cmd("run ${f}", 'r: /m, d: "${r}/q", f: "${d}/w.gguf"'), {ONE: "run /m/q/w.gguf"}),
    Row("EC-27", "one that comes later", cmd("x ${f}", 'f: "${g}", g: 1'), REJECTED),
    Row("EC-27", "unused, it does no harm", cmd("x ${g}", 'f: "${g}", g: 1'), {ONE: "x 1"}),
    Row("EC-28", "a global that needs a model's", cmd("x ${G}", 'G: "-${L}"', "L: v"), REJECTED),
    Row("EC-29", "an override counts for globals",
        cmd("x ${U}", 'T: g, U: "u-${T}"', "T: m"), {ONE: "x u-m"}),
    Row("EC-29", "an override that needs an own one", cmd("x ${U}", 'T: g, U: "u-${T}"', 'L: 1, T: "t${L}"'),
        REJECTED),
    Row("EC-30", "types", m('metadata: {c: "${C}", s: "n=${C}", f: "${F}", b: "${B}"}', TYPED),
        {"models.m.metadata": {"c": 4096, "s": "n=4096", "f": 0.7, "b": True}}),
    Row("EC-30", "a number where one is wanted", m('ttl: "${C}"', TYPED), {"models.m.ttl": 4096}),
    Row("EC-30", "text where a number is wanted", m('ttl: "${C}"', 'macros: {C: "4096"}'), REJECTED),
    Row("EC-30", "two make text", m('ttl: "${a}${b}"', "macros: {a: 1, b: 2}"), REJECTED),
    Row("EC-30", "a block is text", f"{TYPED}\n{BLOCK_NAME}", {"models.m.name": "4096\n"}),
    Row("EC-31", "unset in a comment", '# ${env.NOT_SET}\napiKeys: ["${env.K}"]', {"globals.apiKeys": ["k"]},
        env={"K": "k"}),
    Row("EC-31", "unset in a comment of no YAML",
        "# ${env.NOT_SET}\napiKeys: [${env.K}]", REJECTED, env={"K": "k"}),
    Row("EC-32", "unset in a command's comment", BLOCK_COMMENT, REJECTED),
    Row("EC-33", "ports elsewhere",
        'models: {m: {cmd: "s ${PORT}", metadata: {p: "${PORT}", u: "h:${PORT}", k: {7: "${PORT}"}}}}',
        {"models.m.metadata": {"p": 5800, "u": "h:5800", "k": {"$map": [[7, "${PORT}"]]}}}),
    Row("EC-34", "macros of an anchor", f"{BASE}\nmodels: {{m: {{<<: *b}}}}", {ONE: "x 1"}),
    Row("EC-34", "own macros replace them", f"{BASE}\nmodels: {{m: {{<<: *b, macros: {{K: 2}}}}}}", REJECTED),
    Row("EC-35", "keys of setParamsByID",
        'models: {m: {cmd: "s ${PORT}", filters: {setParamsByID: {"${MODEL_ID}:hi": {}, "${PORT}": {}}}}}',
        {"models.m.aliases": ["5800", "m:hi"]}),
    Row("EC-35", "two keys become one", m('filters: {setParamsByID: {"${MODEL_ID}": {}, m: {}}}'), REJECTED),
    Row("EC-35", "another model's id",
        "models: {a: {cmd: s, proxy: 'http://h', filters: {setParamsByID: {b: {}}}}, b: {cmd: s, proxy: 'http://h'}}",
        REJECTED),
    Row("EC-35", "its own names", m("aliases: [q], filters: {setParamsByID: {m: {a: 1}, q: {a: 2}}}"),
        {"models.m.aliases": ["q"]}),
    Row("EC-36", "another model's macro",
        "models: {a: {cmd: s, proxy: 'http://h', macros: {L: 1}}, b: {cmd: 's ${L}', proxy: 'http://h'}}",
        REJECTED),
    Row("EC-37", "the process id stays", m('cmdStop: "kill ${PID}"'), {"models.m.cmdStop": "kill ${PID}"}),
    Row("EC-37", "through a macro, too", m('cmdStop: "${K}"', 'macros: {K: "kill ${PID}"}'),
        {"models.m.cmdStop": "kill ${PID}"}),
    Row("EC-38", "a port that the command lacks", m('env: ["P=${PORT}"]'), REJECTED),
    Row("EC-39", "a macro for the first port",
        'macros: {S: 7000}\nstartPort: "${S}"\nmodels: {m: {cmd: "s ${PORT}"}}', {ONE: "s 7000"}),
    Row("EC-40", "an id with a placeholder",
        'models: {"a${X}": {cmd: "${MODEL_ID}", proxy: "http://h"}}', REJECTED),
    Row("EC-40", "unused, it does no harm", 'models: {"a${X}": {cmd: s, proxy: "http://h"}}',
        {"models.a${X}.cmd": "s"}),
    Row("EC-41", "63 characters", f"macros: {{{LONG}: 1}}", {"models": {}}),
    Row("EC-41", "64 characters", f"macros: {{{LONG}n: 1}}", REJECTED),
    Row("EC-41", "a dot", "macros: {a.b: 1}", REJECTED),
    Row("EC-41", "no name", "macros: {'': 1}", REJECTED),

    # Commands.
    Command("EC-42", "a comment after a continuation", "srv \\\n # note\n --a 1", ["srv", "--a", "1"]),
    Command("EC-43", "a continuation in quotes", 'x "one \\\n two"', ["x", "one  \n two"]),
    Command("EC-44", "JSON", """x --j '{"k": "v w"}'""", ["x", "--j", '{"k": "v w"}']),
    Command("EC-44", "an escaped quote", r'x \"a', ["x", '"a']),
    Command("EC-45", "only a comment", "#only", []),
    Row("EC-45", "it loads all the same", m("").replace("cmd: s", "cmd: '#only'"), {"models.m.argv": None}),
    Command("EC-46", "two backslashes", "a b\\\\\n c", ["a", "b ", "c"]),
    Row("EC-47", "a stop command is kept", m('cmdStop: "false"'), {"models.m.cmdStop": "false"}),
    Row("EC-49", "no endpoint to check", m("checkEndpoint: none"), {"models.m.checkEndpoint": "none"}),

    # Evictions.
    Question("EC-53", "the newcomer evicts nobody",
        NEWCOMER, "b", "a", ""),
    Question("EC-53", "the exclusive model evicts him though it is ready",
        NEWCOMER, "a", "ab", "b"),
    Question("EC-54", "one group, one at a time",
        models("ab", "groups: {g: {members: [a, b]}}"), "b", "a", "a"),
    Question("EC-55", "two groups that leave each other alone",
        FRIENDS, "b", "a", ""),
    Question("EC-56", "two evict the same one",
        models("abc", "groups: {x: {members: [a]}, y: {members: [b]}}"),
        "b", "c", "c"),
    Question("EC-57", "the larger family counts", models("tpq", 'matrix: {sets: {s: "t & (p | p & q)"}}'),
        "t", "pq", ""),
    Question("EC-58", "of two sets the first by name", models("abc", "matrix: {sets: {z: a & b, y: a & c}}"),
        "a", "bc", "b"),
    Question("EC-58b", "of two families the first in its final place",
        models("abct", 'matrix: {evict_costs: {b: 2}, sets: {s: "t & (a | b | a & c)"}}'),
        "t", "abc", "ac"),
    Question("EC-59", "a model in no set", models("abm", "matrix: {sets: {s: a & b}}"), "m", "ab", "ab"),
    Question("EC-60", "a variable hides a model", models("abc", "matrix: {vars: {b: a}, sets: {s: b & c}}"),
        "a", "c", ""),
    Row("EC-61", "a slash",
        'models: {org/m: {cmd: s, proxy: "http://h"}}\nmatrix: {sets: {s: "org/m"}}', REJECTED),
    Row("EC-61", "a variable for it",
        'models: {org/m: {cmd: s, proxy: "http://h"}}\nmatrix: {vars: {m: org/m}, sets: {s: m}}',
        {"matrix.vars": {"m": "org/m"}}),
    Row("EC-62", "priorities stay as written",
        m("aliases: [q]", "routing: {scheduler: {settings: {fifo: {priority: {m: 4, q: 9}}}}}"),
        {"priority": {"m": 4, "q": 9}}),
    Row("EC-63", "a limit of two", m("concurrencyLimit: 2"), {"models.m.concurrencyLimit": 2}),

    # Names and filters.
    Row("EC-64", "a name with parameters", m("filters: {setParamsByID: {m:x: {t: 1}}}"),
        {"names": {"m:x": "m"}, "models.m.filters.set_by_id": {"m:x": {"t": 1}}}),
    Row("EC-65", "both kinds", m("filters: {setParams: {p: 0.5}, setParamsByID: {al: {p: 0.1}}}"),
        {"models.m.filters.set": {"p": 0.5}, "models.m.filters.set_by_id": {"al": {"p": 0.1}}}),
    Row("EC-66", "a list with blanks", m('filters: {stripParams: "model, a, a, , b"}'),
        {"models.m.filters.strip": ["a", "b"]}),
    Row("EC-67", "a local model and a peer's", models("x", f"peers: {{{peer('p', 'x')}}}"),
        {"peers.p.models": ["x"]}),
    Row("EC-68", "a bare name that is qualified elsewhere", CORES, {"peers.west.models": ["east/core"]}),
    Row("EC-69", "a pin to a selector",
        models("a", "selectors: {sel: {strategy: pin, targets: [a]}}\nprofiles: {p: {pins: {code: sel}}}"),
        {"profiles.p.pins": {"code": "sel"}}),
    Row("EC-70", "a disabled pin",
        models("a", "profiles: {p: {pins: {a: ~}}}"), {"profiles.p.pins": {"a": ""}}),
    Row("EC-71", "an id below another",
        'models: {org: {cmd: s, proxy: "http://h"}, org/m: {cmd: s, proxy: "http://h"}}',
        {"models.org.cmd": "s", "models.org/m.cmd": "s"}),
    Row("EC-72", "a model that shows nothing", m("sendLoadingState: false", "sendLoadingState: true"),
        {"models.m.sendLoadingState": False}),
)
# fmt: on

PLAYED: Mapping[str, tuple[str, str]] = {
    "EC-47": (
        "processes/test_stopping.py",
        "test_a_command_that_fails_is_followed_by_the_signal_and_logged_once",
    ),
    "EC-48": ("integration/test_processes.py", "test_a_signal_reaches_the_server_behind_a_wrapper"),
    "EC-49": ("processes/test_server.py", "test_no_endpoint_to_check_means_ready_as_soon_as_it_runs"),
    "EC-50": ("processes/test_server.py", "test_a_missing_program_fails_at_once_and_is_named_with_the_model"),
    "EC-51": ("processes/test_server.py", "test_a_start_that_is_asked_for_during_a_stop_follows_it"),
    "EC-52": ("processes/test_stopping.py", "test_a_child_that_needs_part_of_its_grace_is_not_killed"),
    "EC-53": (
        "scheduling/test_fifo.py",
        "test_an_exclusive_model_evicts_an_idle_neighbour_although_it_is_ready_itself",
    ),
    "EC-54": ("scheduling/test_fifo.py", "test_a_rival_waits_for_the_load_and_for_its_requests"),
    "EC-55": (
        "scheduling/test_fifo.py",
        "test_models_of_groups_that_leave_each_other_alone_load_side_by_side",
    ),
    "EC-56": ("scheduling/test_fifo.py", "test_two_loads_that_evict_the_same_model_go_one_after_the_other"),
    "EC-62": ("scheduling/test_fifo.py", "test_the_priority_of_an_alias_has_no_effect"),
    "EC-63": ("scheduling/test_fifo.py", "test_serving_and_waiting_both_take_a_slot_and_leaving_frees_it"),
    "EC-64": ("calls/test_rewriting.py", "test_json_gets_its_name_then_loses_then_gains_parameters"),
    "EC-65": ("calls/test_rewriting.py", "test_json_gets_its_name_then_loses_then_gains_parameters"),
    "EC-67": ("calls/test_resolution.py", "test_ids_go_before_aliases_and_those_before_peers"),
    "EC-68": ("calls/test_resolution.py", "test_ids_go_before_aliases_and_those_before_peers"),
    "EC-69": ("calls/test_resolution.py", "test_a_pin_that_is_off_or_leads_to_a_selector_is_not_found"),
    "EC-70": ("calls/test_resolution.py", "test_a_disabled_pin_is_no_model"),
    "EC-71": ("calls/test_resolution.py", "test_a_path_begins_with_the_longest_name"),
    "EC-73": ("calls/test_peek.py", "test_streaming_is_switched_on_by_a_truth"),
    "EC-74": (
        "web/test_inference_loading.py",
        "test_a_failed_load_is_told_as_data_and_the_row_says_what_it_was",
    ),
}
"""What happens while something runs, by the test that plays it."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.number} {row.says}")
def test_edge_case(row: Row | Command | Question, tmp_path: Path) -> None:
    row.play(tmp_path)


def test_no_edge_case_is_left_out() -> None:
    numbers = {row.number for row in ROWS} | PLAYED.keys()

    assert numbers == {f"EC-{number}" for number in range(1, CASES + 1)} | {"EC-5b", "EC-58b"}


@pytest.mark.parametrize("number", PLAYED)
def test_what_only_shows_while_something_runs_has_its_test_elsewhere(number: str) -> None:
    file, name = PLAYED[number]
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))

    assert name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
