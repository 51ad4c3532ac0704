"""Sizes of memory."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.mistakes import Place, Report
from llamaswap.config.nodes import Mapping, Plain, Scalar
from llamaswap.config.reading import Section
from llamaswap.config.sizes import SIZE, parse_size, read_size

HERE = Place("f", 1, 1)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1048576", 1 << 20),
        ("0", 0),
        ("17B", 17),
        ("1KiB", 1024),
        ("64MiB", 64 << 20),
        ("1.5 GiB", 3 << 29),
        ("2TiB", 2 << 40),
        ("64MB", 64_000_000),
        ("1kB", 1000),
        ("0.3KiB", 307),
        ("64M", None),
        ("64mib", None),
        ("-1", None),
        ("MiB", None),
        ("1,5GiB", None),
        ("64MiB\n", None),
        ("", None),
        ("9" * 16, None),
    ],
)
def test_a_size_is_a_number_and_a_unit_that_can_only_mean_one_thing(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@given(st.text("0123456789. kKMGTiB-\n", max_size=12))
def test_what_the_pattern_takes_is_what_is_read(text: str) -> None:
    assert (parse_size(text) is not None) == (re.fullmatch(SIZE, text) is not None)


def read(value: Plain) -> tuple[int | None, list[str]]:
    """Read `size: value`; the size, and what is complained about."""
    report = Report(["f"])
    entries = ((Scalar(HERE, "size", "size"), Scalar(HERE, value, str(value))),)
    size = read_size(Section(Mapping(HERE, entries), HERE, "limits", report), "size")
    return size, [mistake.what for mistake in report.mistakes]


@pytest.mark.parametrize(
    ("value", "size"), [(5, 5), (5.9, 5), (0, 0), ("64MiB", 64 << 20), ("512", 512), (None, None)]
)
def test_a_number_is_bytes(value: Plain, size: int | None) -> None:
    assert read(value) == (size, [])


@pytest.mark.parametrize("value", [-1, True, float("inf"), float("nan"), "much"])
def test_anything_else_is_a_mistake_that_shows_how_to_write_it(value: Plain) -> None:
    size, (complaint,) = read(value)

    assert size is None
    assert complaint.startswith("expected bytes like 1048576 or a size like 64MiB, got ")
