"""The section `priorities`: callers and defaults of models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.calls.priority import parse_priority
from llamaswap.config.load import ConfigRejected, load, load_text
from llamaswap.config.model import CallerConfig, PrioritiesConfig
from llamaswap.config.priorities import ANCHORS, BAND_SPACING
from llamaswap.scheduling.vocabulary import Band, band_of
from support.config_checks import TWO_MODELS, loaded, rejected, warnings_of

KEYS = "apiKeys: [key-one, key-two]"
SERIAL = "routing: {scheduler: {use: serial, settings: {serial: {swapAffinityBonus: %d}}}}"


def with_callers(*callers: str, more: str = "") -> str:
    entries = ", ".join(f"{{{caller}}}" for caller in callers)
    return f"{KEYS}\npriorities: {{callers: [{entries}]}}\n{more}"


def complaints(*callers: str, more: str = "") -> list[str]:
    """What is wrong with callers, without places."""
    return [
        line.partition(": ")[2].removeprefix("priorities.callers")
        for line in rejected(with_callers(*callers, more=more))
    ]


def test_bands_are_called_as_everywhere_else() -> None:
    assert set(ANCHORS) == set(Band)
    assert all(band_of(parse_priority(name.encode()).value) == name for name in ANCHORS)
    assert ANCHORS["interactive"] - ANCHORS["normal"] == ANCHORS["normal"] - ANCHORS["batch"] == BAND_SPACING


@pytest.mark.parametrize(
    "text", ["", "priorities:", "priorities: {}", "priorities: {callers: ~, models: {}}"]
)
def test_without_the_section_nobody_is_anybody(text: str) -> None:
    assert loaded(text).priorities == PrioritiesConfig()


def test_every_key_is_read() -> None:
    text = with_callers(
        "name: pro, keys: [key-one, key-one], defaultPriority: batch, maxPriority: 100, offset: 1",
        "name: free",
    )
    assert loaded(text).priorities.callers == (
        CallerConfig(name="pro", keys=("key-one",), default_priority=-100, max_priority=100, offset=1),
        CallerConfig(name="free"),
    )


def test_a_models_default_is_found_by_any_of_its_names() -> None:
    text = f"{TWO_MODELS}\npriorities: {{models: {{a: batch, bee: 7}}}}"
    assert loaded(text).priorities.models == {"a": -100, "b": 7}


def test_a_default_is_a_models_of_ones_own_and_is_given_once() -> None:
    text = f"{TWO_MODELS}\npriorities: {{models: {{b: 1, bee: 2, ben: batch, q: ~, a: ~}}}}"
    assert [line.partition(": ")[2] for line in rejected(text)] == [
        "priorities.models.bee: is the model of 'b', which stands here, too",
        "priorities.models.ben: 'ben' is no model or alias here; did you mean 'bee'?",
        "priorities.models.q: 'q' is no model or alias here",
    ]


@pytest.mark.parametrize("value", ["1.5", "high", "'5'", "true", "[1]", "9223372036854775808", "''"])
def test_a_priority_is_a_whole_number_or_a_band(value: str) -> None:
    (line,) = complaints(f"name: p, keys: [key-one], maxPriority: {value}")
    assert line.startswith(
        "[0].maxPriority: expected a whole number or one of interactive, normal, batch, got "
    )


def test_a_band_that_is_misspelt_is_guessed() -> None:
    text = with_callers("name: p, keys: [key-one], defaultPriority: Batch")
    column = text.splitlines()[1].index("Batch") + 1
    (line,) = rejected(text)
    assert line.startswith(
        f"2:{column}: priorities.callers[0].defaultPriority: expected a whole number or one "
    )
    assert line.endswith("got 'Batch'; did you mean 'batch'?")


def test_a_default_beyond_what_a_caller_may_have_is_warned_about() -> None:
    (warning,) = warnings_of(
        with_callers("name: p, keys: [key-one], defaultPriority: 5, maxPriority: normal")
    )
    assert warning.endswith("defaultPriority: is more than maxPriority, so 0 counts")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("''", "expected a name"),
        ("' '", "expected a name"),
        ("~", "expected a name"),
        ("key-two", "is an API key, and names are shown"),
        ("n" * 65, "expected one line of at most 64 printable characters"),
        ('"a\\nb"', "expected one line of at most 64 printable characters"),
        ('"a\\u2028b"', "expected one line of at most 64 printable characters"),
        ('"\\e[31m"', "expected one line of at most 64 printable characters"),
    ],
)
def test_a_name_can_be_shown(name: str, complaint: str) -> None:
    assert complaints(f"name: {name}, keys: [key-one]") == [f"[0].name: {complaint}"]


def test_a_name_may_have_any_letters() -> None:
    longest = "ü" * 64
    (caller,) = loaded(with_callers(f"name: {longest}, keys: [key-one]")).priorities.callers
    assert caller.name == longest


def test_a_caller_without_a_name_is_complained_about_where_it_stands() -> None:
    (line,) = rejected(with_callers("keys: [key-one]"))
    assert line == "2:24: priorities.callers[0].name: expected a name"


def test_callers_are_told_apart_by_their_names() -> None:
    assert complaints("name: p, keys: [key-one]", "name: p, keys: [key-two]") == [
        "[1].name: is the name of callers[0], too"
    ]


def test_a_key_opens_the_server_and_belongs_to_one_caller() -> None:
    assert complaints("name: p, keys: [key-one]", "name: q, keys: [key-three, key-two, key-one]") == [
        "[1].keys[0]: this key is not in apiKeys",
        "[1].keys[2]: this key is one of callers[0], too",
    ]


def test_a_caller_is_named_by_its_place_in_the_list_whatever_else_is_there() -> None:
    text = f"{KEYS}\npriorities: {{callers: [~, {{name: p, keys: [key-one]}}, {{name: p, keys: [key-one]}}]}}"
    assert [line.partition("callers")[2] for line in rejected(text)] == [
        "[0]: expected a mapping with a name and keys",
        "[2].name: is the name of callers[1], too",
        "[2].keys[0]: this key is one of callers[1], too",
    ]


def test_whom_nobody_can_be_is_warned_about() -> None:
    (warning,) = warnings_of(with_callers("name: p, keys: []"))
    assert warning.endswith("priorities.callers[0].keys: without a key, nobody is this caller")


@pytest.mark.parametrize("value", ["-1", "99", "1.0", "'1'", "true", "[]"])
def test_an_offset_is_a_whole_number_that_stays_inside_a_band(value: str) -> None:
    (line,) = complaints(f"name: p, keys: [key-one], offset: {value}")
    assert line.startswith("[0].offset: expected points, a whole number from 0 to 98, got ")


@pytest.mark.parametrize(("bonus", "most"), [(0, 98), (1, 98), (2, 97), (10, 89), (98, 1), (99, 0)])
def test_an_offset_and_the_bonus_together_stay_inside_a_band(bonus: int, most: int) -> None:
    caller = "name: p, keys: [key-one], offset: %d"
    assert loaded(with_callers(caller % most, more=SERIAL % bonus)).priorities.callers[0].offset == most
    if most < 98:
        (line,) = complaints(caller % (most + 1), more=SERIAL % bonus)
        assert line.startswith(f"[0].offset: expected at most {most}: with a swapAffinityBonus of {bonus}, ")


def test_the_bonus_counts_where_it_is_given() -> None:
    fifo = (SERIAL % 99).replace("use: serial", "use: fifo")
    text = with_callers("name: p, keys: [key-one], offset: 98", more=fifo)
    assert loaded(text).priorities.callers[0].offset == 98
    assert complaints("name: p, keys: [key-one], offset: 90", more="routing: {scheduler: {use: serial}}")


@pytest.mark.parametrize(
    ("callers", "complaint"),
    [
        ("key-one", "1:23: priorities.callers: expected a list, got a single value"),
        ("{key-one: {}}", "1:23: priorities.callers: expected a list, got a mapping"),
        ("[key-one]", "1:24: priorities.callers[0]: expected a mapping with a name and keys"),
        ("[~]", "1:24: priorities.callers[0]: expected a mapping with a name and keys"),
        ("[[key-one]]", "1:24: priorities.callers[0]: expected a mapping with a name and keys"),
    ],
)
def test_what_are_no_callers_is_refused_without_being_repeated(callers: str, complaint: str) -> None:
    assert rejected(f"priorities: {{callers: {callers}}}\n{KEYS}") == [complaint]


def test_an_unknown_key_is_warned_about() -> None:
    text = with_callers("name: p, keys: [key-one], maxPriorty: 5")
    assert warnings_of(text)[0].endswith("maxPriorty: unknown key; did you mean 'maxPriority'?")
    assert warnings_of("priorities: {caller: []}") == [
        "1:14: priorities.caller: unknown key; did you mean 'callers'?"
    ]


def test_a_configuration_that_is_printed_shows_no_key() -> None:
    assert "key-one" not in repr(loaded(with_callers("name: p, keys: [key-one]")))


def test_callers_of_several_files_come_together(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(with_callers("name: p, keys: [key-one]"))
    (tmp_path / "b.yaml").write_text("priorities: {callers: [{name: q, keys: [key-two]}]}")
    assert [caller.name for caller in load(None, tmp_path, {}).priorities.callers] == ["p", "q"]

    (tmp_path / "c.yaml").write_text("priorities: {callers: [{name: r, keys: [key-one]}]}")
    with pytest.raises(ConfigRejected) as refusal:
        load(None, tmp_path, {})
    (mistake,) = refusal.value.mistakes
    assert (Path(mistake.file).name, mistake.line, mistake.column) == ("c.yaml", 1, 41)
    assert mistake.path == "priorities.callers[2].keys[0]"


SECRET = "sk-0123456789abcdef"
SOMETHING: st.SearchStrategy[Any] = st.sampled_from(
    [SECRET, [SECRET], [[SECRET]], {"a": SECRET}, None, 7, ""]
)
CALLER = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["pro", SECRET, ""]),
        "keys": SOMETHING,
        "offset": st.sampled_from([1, 98, 1000, "high"]),
        "maxPriority": st.sampled_from(["normal", "Normal", 1.5]),
        "kyes": SOMETHING,
    },
)


@settings(max_examples=150, deadline=None)
@given(callers=st.lists(CALLER | SOMETHING, max_size=3) | SOMETHING, known=st.booleans())
def test_nothing_that_is_said_of_callers_repeats_a_key(callers: Any, *, known: bool) -> None:
    text = json.dumps({"apiKeys": [SECRET] if known else ["other"], "priorities": {"callers": callers}})
    try:
        said = "\n".join(load_text(text).warnings)
    except ConfigRejected as refusal:
        said = "\n".join([str(refusal), *refusal.warnings])

    assert SECRET not in said
