"""A client of the bench: when a token counts as the first one."""

from __future__ import annotations

from bench.talk import has_text


def test_a_role_is_not_a_token_yet() -> None:
    assert not has_text(b'data: {"choices":[{"delta":{"role":"assistant","content":null}}]}\n')
    assert not has_text(b'data: {"choices":[{"delta":{"content":""}}]}\n')
    assert not has_text(b'data: {"choices":[{"finish_reason":"stop","delta":{}}]}\n')


def test_text_is_a_token() -> None:
    assert has_text(b'data: {"choices":[{"finish_reason":null,"delta":{"content":"Hello"}}]}\n')
