"""The one small page."""

from __future__ import annotations

import re
from urllib.parse import urljoin

import pytest

from llamaswap.web.links import LINKS_PAGE, page_at
from llamaswap.web.routes import Match, find_route


def test_every_link_leads_to_something() -> None:
    links = re.findall(rb'href="\.\.(/[^"]*)"', LINKS_PAGE)

    assert len(links) > 5
    for link in links:
        assert isinstance(find_route(b"GET", link), Match), link


@pytest.mark.parametrize("rest", [b"", b"index.html", b"models", b"models/", b"models/a", b"models/v1.5/x"])
def test_case_097_its_links_lead_to_the_same_wherever_it_stands(rest: bytes) -> None:
    page = page_at(rest)
    assert page is not None
    links = re.findall(r'href="([^"]*)"', page.decode())

    found = {urljoin(f"/llm/ui/{rest.decode()}", link) for link in links}
    assert found == {
        f"/llm/{link.removeprefix('../')}" for link in re.findall(r'href="([^"]*)"', LINKS_PAGE.decode())
    }


@pytest.mark.parametrize("rest", [b"assets/index-4f2a.js", b"a.b", b"index.htm", b"models/index.css"])
def test_case_097_a_file_of_an_application_that_is_not_there_is_not_found(rest: bytes) -> None:
    assert page_at(rest) is None
