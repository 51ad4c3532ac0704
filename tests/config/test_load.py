"""The whole way, from files to a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from llamaswap.config.load import ConfigRejected, load, load_text
from support.config_checks import rejected, warnings_of

EXAMPLE = Path(__file__).parents[2] / "etc" / "config.example.yaml"
ENVIRONMENT = {"HOME": "/home/me", "UPSTREAM_KEY": "k", "PRO_KEY": "p"}


def test_all_mistakes_of_a_file_are_reported_at_once_in_its_order() -> None:
    have = rejected(
        """\
        globalTTL: -1
        models:
          b: {cmd: "s ${PORT}", ttl: soon, unlisted: 3}
          a: {cmd: s, proxy: "http://h:x", aliases: [q, q]}
        groups: {g: {members: [ghost]}}
        selectors: {s: {strategy: none, targets: [a]}}
        """
    )
    assert [line.split(": ")[1] for line in have] == [
        "globalTTL",
        "models.b.ttl",
        "models.b.unlisted",
        "models.a.proxy",
        "models.a.aliases[1]",
        "groups.g.members[0]",
        "selectors.s.strategy",
    ]


def test_files_are_merged_and_each_mistake_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("macros: {A: x}\nmodels: {a: {cmd: s, proxy: 'http://h', ttl: no}}")
    (tmp_path / "b.yaml").write_text("models: {b: {cmd: '${A} ${B}', proxy: 'http://h'}}")
    with pytest.raises(ConfigRejected) as refusal:
        load(None, tmp_path, {})
    assert [(Path(one.file).name, one.line, one.path) for one in refusal.value.mistakes] == [
        ("a.yaml", 2, "models.a.ttl"),
        ("b.yaml", 1, "models.b.cmd"),
    ]


def test_a_missing_file_is_a_mistake_at_its_first_character(tmp_path: Path) -> None:
    with pytest.raises(ConfigRejected) as refusal:
        load(tmp_path / "no.yaml", None, {})
    (mistake,) = refusal.value.mistakes
    assert (mistake.line, mistake.column) == (1, 1)


def test_broken_files_are_all_reported(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("a: [")
    with pytest.raises(ConfigRejected) as refusal:
        load(None, tmp_path, {})
    assert len(refusal.value.mistakes) == 2


def test_warnings_stand_in_the_order_of_the_file() -> None:
    text = "logLevl: warn\nmodels: {m: {proxy: 'http://h', nam: x}}\nmodel: {}"
    assert [warning.split(": ")[1] for warning in warnings_of(text)] == [
        "logLevl",
        "models.m.cmd",
        "models.m.nam",
        "model",
    ]


@pytest.mark.parametrize("text", ["", "# x", "~", "42", "[]", "{}", "\ufeff"])
def test_a_file_that_says_nothing_is_fine(text: str) -> None:
    assert load_text(text).models == {}


def test_a_list_is_no_configuration() -> None:
    assert rejected("- a") == ["1:1: expected a mapping, got a list"]


def test_the_example_loads_without_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load(EXAMPLE, None, ENVIRONMENT)
    assert config.warnings == ()
    assert len(config.models) >= 3
    assert config.peers and config.selectors and config.profiles


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """The example with a few bytes replaced, removed or repeated."""
    text = bytearray(EXAMPLE.read_bytes())
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text) - 1))
        end = min(len(text), start + draw(st.integers(0, 40)))
        piece = draw(
            st.sampled_from(
                [b"", b"\0", b"\xff", b"~", b"[", b"]", b"{", b"}", b": ", b"- ", b"\t", b"*a", b"&a "]
            )
            | st.sampled_from(
                [b"${X}", b"${env.X}", b"<<: ", b"!!int ", b'"', b"'", b"|", b"9" * 50, b"\n", b"?"]
            )
            | st.binary(max_size=4)
            | st.just(bytes(text[start:end]) * 2)
        )
        text[start:end] = piece
    return bytes(text)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutations())
@example(b"a: \xed\xa0\x80")
def test_whatever_a_file_holds_it_loads_or_is_refused_with_places(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(text)
    try:
        load(file, None, ENVIRONMENT)
    except ConfigRejected as error:
        mistakes, lines = error.mistakes, str(error).splitlines()
    else:
        return
    assert len(lines) == len(mistakes) > 0
    assert all(one.line >= 1 and one.column >= 1 and one.what for one in mistakes)
