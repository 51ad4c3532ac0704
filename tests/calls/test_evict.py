"""The one word that unloads protected models."""

from __future__ import annotations

import pytest

from llamaswap.calls.evict import overrides


@pytest.mark.parametrize("value", [b"protected", b"Protected", b" PROTECTED\t"])
def test_the_word_is_understood_in_any_letter_case(value: bytes) -> None:
    assert overrides(value)


@pytest.mark.parametrize(
    "value", [None, b"", b"true", b"1", b"protect", b"protected, protected", b"pro tected", b"\xff" * 5000]
)
def test_anything_else_overrides_nothing(value: bytes | None) -> None:
    assert not overrides(value)
