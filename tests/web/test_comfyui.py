"""The short way to ComfyUI."""

from __future__ import annotations

import pytest

from llamaswap.errors import NotLoaded
from llamaswap.rendering import render
from llamaswap.web.comfyui import NoComfyUI, to_front_page, upstream_target


@pytest.mark.parametrize(
    ("method", "query", "expected"),
    [
        (b"GET", b"token=v%20a", (301, b"/comfyui/?token=v%20a")),
        (b"HEAD", None, (301, b"/comfyui/")),
        (b"POST", b"x=1", (308, b"/comfyui/?x=1")),
        (b"PUT", b"", (308, b"/comfyui/")),
    ],
)
def test_the_bare_name_leads_to_the_front_page(
    method: bytes, query: bytes | None, expected: tuple[int, bytes]
) -> None:
    assert to_front_page(method, query) == expected


@pytest.mark.parametrize("ready", [True, False])
def test_the_front_page_may_start_the_model(ready: bool) -> None:
    assert upstream_target(b"", b"token=1", exists=True, ready=ready) == b"/?token=1"


@pytest.mark.parametrize("rest", [b"x", b"prompt", b"ws", b"/", b"%2F"])
def test_nothing_else_may(rest: bytes) -> None:
    with pytest.raises(NotLoaded) as refused:
        upstream_target(rest, None, exists=True, ready=False)

    answer = render(refused.value, "text/plain")
    assert answer.status == 409
    assert answer.body == b"llama-swap: model comfyui_auto is not loaded; only /comfyui/ can start it"


@pytest.mark.parametrize(
    ("rest", "query", "target"),
    [
        (b"workflows%2Fexample.json", None, b"/workflows%2Fexample.json"),
        (b"a%252Fb/z%C3%A9/", b"q=%20", b"/a%252Fb/z%C3%A9/?q=%20"),
        (b"x", b"", b"/x?"),
    ],
)
def test_the_prefix_goes_and_escapes_stay(rest: bytes, query: bytes | None, target: bytes) -> None:
    assert upstream_target(rest, query, exists=True, ready=True) == target


@pytest.mark.parametrize("rest", [b"", b"x"])
def test_without_the_model_there_is_nothing_here(rest: bytes) -> None:
    with pytest.raises(NoComfyUI) as refused:
        upstream_target(rest, None, exists=False, ready=False)

    assert (refused.value.status, str(refused.value)) == (404, "local model comfyui_auto not found")
