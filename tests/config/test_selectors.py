"""Virtual model ids."""

from __future__ import annotations

import pytest

from llamaswap.config.model import SelectorConfig
from support.config_checks import TWO_MODELS, loaded, rejected

PEERS = "peers: {p: {proxy: 'http://h', models: [q]}, r: {proxy: 'http://h', models: [q, w]}}"


def selected(block: str, *more: str) -> str:
    return "\n".join([TWO_MODELS, PEERS, *more, f"selectors: {{s: {block}}}"])


def complaints(text: str) -> list[str]:
    return [line.partition(": ")[2] for line in rejected(text)]


def test_a_selector_is_read() -> None:
    block = "{strategy: spillover, targets: [a, p/q], settings: {spillover: 3}, "
    block += "name: N, unlisted: true, metadata: {k: 1}}"
    assert loaded(selected(block)).selectors["s"] == SelectorConfig(
        id="s",
        strategy="spillover",
        targets=("a", "p/q"),
        spillover=3,
        name="N",
        unlisted=True,
        metadata={"k": 1},
    )


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("{targets: [a]}", "selectors.s.strategy: expected one of warm, pin, spillover, got nothing"),
        (
            "{strategy: Pin, targets: [a]}",
            "selectors.s.strategy: expected one of warm, pin, spillover, got 'Pin'",
        ),
        ("{strategy: pin}", "selectors.s.targets: expected at least one model"),
        ("{strategy: pin, targets: [s]}", "selectors.s.targets[0]: 's' is a selector itself"),
        ("{strategy: pin, targets: [zz]}", "selectors.s.targets[0]: 'zz' is no model, alias or peer's model"),
        (
            "{strategy: pin, targets: [q]}",
            "selectors.s.targets[0]: 'q' is offered by more than one peer; write 'p/q'",
        ),
        (
            "{strategy: warm, targets: [a, w]}",
            "selectors.s.targets[1]: the warm strategy takes local models only",
        ),
        (
            "{strategy: spillover, targets: [a], settings: {spillover: 0}}",
            "selectors.s.settings.spillover: expected requests from 1, got 0",
        ),
        ("{strategy: spillover, targets: [w, r/w]}", "selectors.s.targets[1]: is the same model as 'w'"),
        (
            "{strategy: spillover, targets: [a, bee]}",
            "selectors.s.targets: these models can't be loaded together: a, b",
        ),
    ],
)
def test_an_unsound_selector_is_refused(block: str, complaint: str) -> None:
    assert complaints(selected(block)) == [complaint]


@pytest.mark.parametrize(
    "routing",
    ["groups: {g: {swap: false, members: [a, b]}}", "matrix: {vars: {v: b}, sets: {s: 'a & (v | a)'}}"],
)
def test_spillover_over_models_that_can_be_loaded_together_is_fine(routing: str) -> None:
    assert loaded(selected("{strategy: spillover, targets: [a, bee]}", routing)).selectors


@pytest.mark.parametrize("matrix", ["{sets: {s: 'a &', t: +s}}", "{sets: {s: +t}}", "{sets: {s: +s}}"])
def test_a_broken_matrix_is_not_held_against_a_selector_as_well(matrix: str) -> None:
    text = selected("{strategy: spillover, targets: [a, b]}", f"matrix: {matrix}")
    assert [complaint.partition(".")[0] for complaint in complaints(text)] == ["matrix"]


@pytest.mark.parametrize("name", ["a", "bee", "p/q", "' '"])
def test_a_selector_needs_a_name_of_its_own(name: str) -> None:
    text = f"{TWO_MODELS}\n{PEERS}\nselectors: {{{name}: {{strategy: pin, targets: [b]}}}}"
    assert len(rejected(text)) == 1


def test_a_bare_peer_name_may_be_taken_by_a_selector() -> None:
    text = f"{TWO_MODELS}\n{PEERS}\nselectors: {{w: {{strategy: pin, targets: [r/w]}}}}"
    assert loaded(text).selectors["w"].targets == ("r/w",)
