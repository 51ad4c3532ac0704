"""The published schema: what editors are told is what the loader does."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from llamaswap.config.load import ConfigRejected, load_text
from llamaswap.config.reading import Section
from llamaswap.config.settings import OWN_KEYS
from llamaswap.tools.schema import DRAFT, schema, schema_text
from support.config_corpus import Case, read_corpus
from support.tools_schema import ETC, complaints, keys_of_schema, pattern_of

EXAMPLE = (ETC / "config.example.yaml").read_text(encoding="utf-8")
ENVIRONMENT = {"HOME": "/h", "UPSTREAM_KEY": "k", "PRO_KEY": "p"}

MODEL = "models: {m: {cmd: s, proxy: 'http://h', %s}}"
SERIAL = (
    "models: {m: {cmd: s, proxy: 'http://h'}}\nrouting: {scheduler: {use: serial, settings: {serial: {%s}}}}"
)
BROKEN = (
    "models: [a, b]",
    "models: {m: server}",
    "apiKeys: secret",
    "globalTTL: -1",
    "startPort: 0",
    "startPort: many",
    "logToStdout: everywhere",
    "sendLoadingState: maybe",
    "sendLoadingState: 1",
    "macros: {PORT: 1}",
    "macros: {a.b: 1}",
    "macros: {a: [1]}",
    "store: {path: ' '}",
    "store: {path: }",
    "performance: {every: 10}",
    "performance: {every: soon}",
    "upstream: {ignorePaths: all}",
    "limits: 5",
    "limits: {waiting: -1}",
    "limits: {readers: many}",
    "limits: {requestBody: 64M}",
    "limits: {heldBodies: -1}",
    "limits: {slowClient: 1000}",
    "hooks: {on_startup: {preload: m}}",
    MODEL % "ttl: soon",
    MODEL % "ttl: '60'",
    MODEL % "ttl: -2",
    MODEL % "unloadTimeout: -1",
    MODEL % "aliases: one",
    "models: {m: {cmd: [a, b], proxy: 'http://h'}}",
    MODEL % "metadata: text",
    MODEL % "capabilities: {in: [video]}",
    MODEL % "capabilities: {context: -1}",
    MODEL % "filters: {setParams: [a]}",
    MODEL % "filters: {setParamsByID: {a: 1}}",
    MODEL % "timeouts: {connect: long}",
    "groups: {g: {swap: 2}}",
    "groups: {g: {members: m}}",
    "groups: {g: {}}\nmatrix: {sets: {s: a}}",
    "matrix: {sets: {}}",
    "matrix: {vars: {a_b: m}, sets: {s: m}}",
    "matrix: {evict_costs: {m: 0}, sets: {s: m}}",
    "routing: {router: {use: ring}}",
    "routing: {router: {use: matrix}}",
    "routing: {scheduler: {use: lottery}}",
    "routing: {scheduler: {settings: {serial: {agingDivisor: -1}}}}",
    "routing: {scheduler: {settings: {serial: {swapAffinityBonus: 100}}}}",
    "routing: {scheduler: {settings: {fifo: {priority: {m: high}}}}}",
    SERIAL % "swapBudgetSeconds: -1",
    SERIAL % "swapBudgetSeconds: 30s",
    SERIAL % "width: {m: 0}",
    SERIAL % "width: 2",
    SERIAL % "maxWait: {normal: -1}",
    SERIAL % "maxWait: {normal: -5s}",
    SERIAL % "maxWait: {normal: soon}",
    SERIAL % "maxWait: {urgent: 5}",
    SERIAL % "maxQueue: {batch: -1}",
    SERIAL % "maxQueue: {Batch: 5}",
    SERIAL % "maxQueue: [5]",
    "keepAlive: -5",
    "keepAlive: 0.5",
    "keepAlive: often",
    "keepAlive: [15s]",
    "keepAlive: yes",
    "keepAlive: {stream: 0.1}",
    "keepAlive: {json: soon}",
    "priorities: {callers: {name: pro}}",
    "priorities: {callers: [pro]}",
    "priorities: {callers: [~]}",
    "priorities: {callers: [{keys: []}]}",
    "priorities: {callers: [{name: ' '}]}",
    f"priorities: {{callers: [{{name: {'n' * 65}}}]}}",
    "priorities: {callers: [{name: p, keys: k}]}",
    "priorities: {callers: [{name: p, offset: 99}]}",
    "priorities: {callers: [{name: p, offset: -1}]}",
    "priorities: {callers: [{name: p, maxPriority: high}]}",
    "priorities: {callers: [{name: p, defaultPriority: 1.5}]}",
    "priorities: {models: {m: urgent}}",
    "priorities: {models: [m]}",
    "selectors: {s: {targets: [m]}}",
    "selectors: {s: {strategy: best, targets: [m]}}",
    "selectors: {s: {strategy: warm, targets: []}}",
    "profiles: {p: [m]}",
    "profiles: {p: {pins: {}}}",
    "peers: {p: {models: [m]}}",
    "peers: {p: {proxy: 'http://h', models: []}}",
)

BEYOND = {
    "F-184-alias-scalar": "a single value under an unknown key is more often misspelt than an anchor",
    "M-126-env-top-key": "a key from the environment is unknown to an editor",
    "M-143-env-in-anchor": "a single value under an unknown key is more often misspelt than an anchor",
    "K-046-ttl-fraction-negative": "half a second below nothing loads, but nobody means it",
    "K-076-model-unload--0.5": "half a second below nothing loads, but nobody means it",
    "K-169-filter-strip-legacy-list-unused": "an unused setting of the wrong kind loads",
    "M-124-env-brackets": "a list from the environment looks like text to an editor",
}
"""What the loader takes and the schema does not, and why."""


def test_the_published_file_is_what_the_command_prints() -> None:
    published = (ETC / "config-schema.json").read_text(encoding="utf-8")

    assert published == schema_text(), "write it anew: llama-swap schema > etc/config-schema.json"


def test_it_is_a_schema_of_its_draft() -> None:
    Draft202012Validator.check_schema(schema())
    assert schema()["$schema"] == DRAFT == Draft202012Validator.META_SCHEMA["$schema"]


@pytest.mark.parametrize("file", ["config.example.yaml", "demo.yaml"])
def test_the_files_that_come_along_are_accepted(file: str) -> None:
    assert complaints((ETC / file).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text", BROKEN)
def test_what_the_loader_rejects_for_its_shape_is_rejected(text: str) -> None:
    with pytest.raises(ConfigRejected):
        load_text(text)

    assert complaints(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "healthChecktimeout: 5",
        MODEL % "tll: 5",
        "ui: {aktivity: {}}",
        "keepAlive: {streams: 5}",
        "priorities: {caller: []}",
        "priorities: {callers: [{name: p, max: 5}]}",
    ],
)
def test_a_key_that_the_loader_warns_about_is_rejected(text: str) -> None:
    assert any("unknown key" in warning for warning in load_text(text).warnings)

    assert complaints(text) != []


@pytest.mark.parametrize(
    "limits", ["slowClient: 0", "slowClient: 64KiB, heldBodies: ~", "requestBody: 1.5 GiB", "waiting: 5.5"]
)
def test_limits_are_numbers_and_sizes(limits: str) -> None:
    text = f"limits: {{{limits}}}"
    load_text(text)

    assert complaints(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "keepAlive: 15s",
        "keepAlive: 0",
        "keepAlive: 1.5",
        "keepAlive: ~",
        "keepAlive: {stream: 1m30s, json: ~}",
        SERIAL % "width: {m: 4}, swapBudgetSeconds: 2.5",
        SERIAL % "maxWait: {normal: 30s, batch: 1.5, interactive: ~}, maxQueue: {batch: 5, normal: ~}",
        "apiKeys: [k, 7]\npriorities: {callers: [{name: p, keys: [k]}, {name: 5, keys: [7], offset: 89}]}",
        "apiKeys: [k]\npriorities: {callers: [{name: p, keys: [k], maxPriority: batch}]}",
        f"{MODEL % ''}\npriorities: {{models: {{m: interactive}}, callers: ~}}",
    ],
)
def test_what_decides_who_goes_first_is_accepted_as_the_loader_takes_it(text: str) -> None:
    load_text(text)

    assert complaints(text) == []


def test_anchors_and_notes_may_stand_under_keys_of_their_own() -> None:
    assert complaints("defaults: &d {ttl: 5}\nx-note: hello\nmodels: {m: {<<: *d}}") == []


def test_what_the_loader_takes_without_unknown_keys_is_accepted() -> None:
    files = [case for case in read_corpus() if list(case.get("files", ())) == ["config.yaml"]]
    taken = [case for case in files if "args" not in case and _is_clean(case)]
    rejected = {case["id"] for case in taken if complaints(case["files"]["config.yaml"])}

    assert len(taken) > 500
    assert rejected == BEYOND.keys()


def _is_clean(case: Case) -> bool:
    """Whether the loader takes the file and knows each of its keys."""
    try:
        config = load_text(case["files"]["config.yaml"], environ=case.get("env") or {})
    except ConfigRejected:
        return False
    return not any("unknown key" in warning for warning in config.warnings)


def test_the_schema_and_the_loader_know_the_same_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _keys_of_loader(monkeypatch)
    known = keys_of_schema()

    assert known.pop("") == OWN_KEYS == asked.pop("") | {"macros"}
    assert {path: sorted(keys) for path, keys in known.items()} == {
        path: sorted(keys) for path, keys in asked.items()
    }


def _keys_of_loader(monkeypatch: pytest.MonkeyPatch) -> dict[str, frozenset[str]]:
    """Every key that is asked for while a file with every section is read, by each router."""
    asked: dict[str, set[str]] = defaultdict(set)
    close = Section.close

    def spy(section: Section, *ignored: str) -> None:
        close(section, *ignored)
        shared = {name for name in ignored if section.path and name not in section._known}
        asked[pattern_of(section.path)] |= section._known | shared

    monkeypatch.setattr(Section, "close", spy)
    matrix = EXAMPLE.replace("use: group", "use: matrix")
    old_spellings = f"{MODEL % ''}\ngroups: {{g: {{}}}}", f"{MODEL % ''}\nmatrix: {{sets: {{s: m}}}}"
    for text in (EXAMPLE, matrix, *old_spellings):
        load_text(text, environ=ENVIRONMENT)
    return {path: frozenset(keys) for path, keys in asked.items()}


OLD_SPELLINGS = {"groups", "matrix", "models.*.filters.strip_params", "models.*.healthCheckTimeout"}
"""What the example leaves out: the first three go with the old spelling only, the last does nothing."""


def test_the_example_shows_every_key_but_old_spellings() -> None:
    shown = _shown(yaml.safe_load(EXAMPLE), schema(), "")

    assert set(_unshown(shown)) == OLD_SPELLINGS


def _shown(value: Any, part: Any, path: str) -> dict[str, bool]:
    """Return for each key of the schema, by path, whether a value has it.

    `*` is any name, `[]` any place in a list.
    """
    whole = schema()
    while "$ref" in part:
        part = whole["$defs"][part["$ref"].rpartition("/")[2]]
    found: dict[str, bool] = {}
    for way in (*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())):
        _merge(found, _shown(value, way, path))
    members = value if isinstance(value, dict) else {}
    known = part.get("properties", {})
    for key, below in known.items():
        found[f"{path}{key}"] = found.get(f"{path}{key}", False) or key in members
        if key in members:
            _merge(found, _shown(members[key], below, f"{path}{key}."))
    for one in value if isinstance(value, list) else ():
        _merge(found, _shown(one, part.get("items", {}), f"{path.removesuffix('.')}[]."))
    for key, below in members.items():
        if key not in known and isinstance(part.get("additionalProperties"), dict):
            _merge(found, _shown(below, part["additionalProperties"], f"{path}*."))
    return found


def _merge(found: dict[str, bool], more: dict[str, bool]) -> None:
    for path, shown in more.items():
        found[path] = found.get(path, False) or shown


def _unshown(shown: dict[str, bool]) -> list[str]:
    return [path for path, is_shown in shown.items() if not is_shown]
