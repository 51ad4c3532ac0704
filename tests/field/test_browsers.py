"""Cases from the field: pages that ask from another origin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llamaswap.web.routes import ROUTES, Route
from support.field import Field, stub
from support.field_call import CHAT
from support.real_daemon_talk import Answer, ask

pytestmark = pytest.mark.integration

PAGE = {"Origin": "http://page.example"}
ASKED = "authorization, x-stainless-os, X-Stainless-Retry-Count, bad name, x-llamaswap-priority"
ALLOWED = "authorization, x-stainless-os, X-Stainless-Retry-Count, x-llamaswap-priority"
ORIGIN = "Access-Control-Allow-Origin"


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """One model."""
    with Field(tmp_path_factory.mktemp("browsers"), {"A": stub()}) as field:
        assert field.chat("A").wrong() == ""
        yield field


def origins(answer: Answer) -> list[str]:
    """What an answer says of who may read it, each time it does."""
    found: list[str] = answer.headers.get_all(ORIGIN) or []
    return found


def path_of(route: Route) -> str:
    """A path that a route answers."""
    return route.pattern.decode().replace("{rest}", "A/x")


PATHS = sorted({path_of(route) for route in ROUTES} | {"/nowhere", "/v1/nowhere", "*"})


@pytest.mark.parametrize("path", PATHS)
def test_case_075_every_preflight_is_allowed_with_the_names_that_it_asks_for(path: str, field: Field) -> None:
    fields = {**PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": ASKED}

    answer = ask(field.daemon.port, "OPTIONS", path, None, fields)

    assert answer.status == 204
    assert origins(answer) == ["*"]
    assert answer.headers["Access-Control-Allow-Headers"] == ALLOWED
    assert answer.headers.get_all("Content-Length") in (None, ["0"])


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
def test_case_075_model_lists_name_the_origin_that_asks_and_nobody_else(path: str, field: Field) -> None:
    assert origins(ask(field.daemon.port, "GET", path, None, PAGE)) == ["http://page.example"]
    assert origins(ask(field.daemon.port, "GET", path)) == []


QUIET = [
    "/running",
    "/health",
    "/api/version",
    "/api/metrics/activity",
    "/logs",
    "/metrics",
    "/nowhere",
    "/ui/",
]


@pytest.mark.parametrize("path", QUIET)
def test_case_075_our_other_answers_say_nothing_of_origins(path: str, field: Field) -> None:
    """As with llama-swap, whose word on this is kept: only lists and preflights are for pages elsewhere."""
    for fields in ({}, PAGE):
        assert origins(ask(field.daemon.port, "GET", path, None, fields)) == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("said", [None, "*", "http://page.example", ""])
def test_case_075_what_a_model_server_says_of_origins_passes_once_and_unchanged(
    said: str | None, stream: bool, field: Field
) -> None:
    """Ours is never added to it, so that no answer has two; an empty one is the server's mistake."""
    for fields in ({}, PAGE):
        call = field.chat("A", stream=stream, stub={} if said is None else {"cors": said}, headers=fields)
        assert call.wrong() == ""
        assert call.headers.get(ORIGIN.lower()) == said


def test_case_075_errors_of_either_side_have_no_more_than_one(field: Field) -> None:
    refused = field.chat("nobody", headers=PAGE)
    failed = field.chat("A", stub={"status": 500, "cors": "*"}, headers=PAGE)

    assert (refused.status, refused.headers.get(ORIGIN.lower())) == (404, None)
    assert (failed.status, failed.headers.get(ORIGIN.lower())) == (500, "*")
    assert ask(field.daemon.port, "OPTIONS", CHAT, None, PAGE).status == 204
