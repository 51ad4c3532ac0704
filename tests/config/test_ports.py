"""Ports, at the first start and when a configuration is read again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.load import load, load_stable, load_text
from llamaswap.config.model import Config
from llamaswap.config.ports import NO_PORTS, Ports

IDS = st.text("abc", min_size=1, max_size=2)
NUMBERS = st.integers(5795, 5810)


def numbered(*ids: str, start: int = 5800, ports: Mapping[str, int] = NO_PORTS) -> Config:
    """A configuration of models that each ask for a port."""
    models = "".join(f"  {name}: {{cmd: 's ${{PORT}}'}}\n" for name in ids)
    return load_text(f"startPort: {start}\nmodels:\n{models}", ports=ports)


def ports_of(config: Config) -> dict[str, int]:
    """What a running daemon passes on when it reads its configuration again."""
    return {model.id: model.port for model in config.models.values() if model.port}


def test_a_model_knows_the_port_that_its_command_and_proxy_speak_of() -> None:
    model = numbered("m").models["m"]

    assert model.port == 5800
    assert model.argv == ("s", "5800")
    assert model.proxy == "http://localhost:5800"


def test_a_model_that_asks_for_no_port_has_none() -> None:
    config = load_text("models: {m: {cmd: s, proxy: 'http://h:5800'}, n: {cmd: 's ${PORT}'}}")

    assert config.models["m"].port is None
    assert config.models["n"].port == 5800


def test_a_newcomer_early_in_the_alphabet_moves_nobody() -> None:
    before = numbered("b", "c")

    after = numbered("a", "b", "c", ports=ports_of(before))

    assert ports_of(after) == {"a": 5802, "b": 5800, "c": 5801}
    assert all(after.models[name] == before.models[name] for name in "bc")


def test_newcomers_fill_gaps_in_byte_order_of_their_ids() -> None:
    config = numbered("a9", "a10", "B", "m", ports={"m": 5801})

    assert ports_of(config) == {"B": 5800, "m": 5801, "a10": 5802, "a9": 5803}


def test_the_port_of_a_model_that_has_gone_is_free_one_reading_later() -> None:
    first = numbered("a", "b")

    second = numbered("b", "c", ports=ports_of(first))
    third = numbered("b", "c", "d", ports=ports_of(second))

    assert ports_of(second) == {"b": 5801, "c": 5802}, "the child of a may still be ending on 5800"
    assert ports_of(third) == {"b": 5801, "c": 5802, "d": 5800}


def test_a_port_below_the_first_one_is_not_kept() -> None:
    config = numbered("a", "b", start=5900, ports={"a": 5800, "b": 5901})

    assert ports_of(config) == {"a": 5900, "b": 5901}


def test_two_models_never_share_a_port_even_if_they_are_said_to() -> None:
    assert ports_of(numbered("a", "b", ports={"a": 5800, "b": 5800})) == {"a": 5800, "b": 5801}


def test_files_are_read_with_the_ports_in_use(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("models: {m: {cmd: 's ${PORT}'}}")

    for read in (load, load_stable):
        assert read(file, None, {}).models["m"].port == 5800
        assert read(file, None, {}, ports={"m": 5803}).models["m"].port == 5803


@given(st.sets(IDS), st.dictionaries(IDS, NUMBERS))
def test_ports_are_different_not_too_low_and_kept_by_whoever_can(
    ids: set[str], in_use: dict[str, int]
) -> None:
    ports = Ports(5800, in_use)
    for model_id in sorted(ids):
        ports.take(model_id)

    numbers = list(ports.given.values())
    others = {port for owner, port in in_use.items() if owner not in ids}
    assert ports.given.keys() == ids
    assert len(set(numbers)) == len(numbers)
    assert all(port >= 5800 for port in numbers)
    assert not others.intersection(numbers) - {in_use.get(name) for name in ids}
    for name in ids & in_use.keys():
        if in_use[name] >= 5800 and list(in_use.values()).count(in_use[name]) == 1:
            assert ports.given[name] == in_use[name]


@given(st.lists(IDS, unique=True))
def test_without_ports_in_use_they_are_counted_from_the_first(ids: list[str]) -> None:
    ports = Ports(5800)

    assert [ports.take(name) for name in ids] == list(range(5800, 5800 + len(ids)))
