"""The one small page."""

from __future__ import annotations

import re

from llamaswap.web.links import LINKS_PAGE
from llamaswap.web.routes import Match, find_route


def test_every_link_leads_to_something() -> None:
    links = re.findall(rb'href="\.\.(/[^"]*)"', LINKS_PAGE)

    assert len(links) > 5
    for link in links:
        assert isinstance(find_route(b"GET", link), Match), link
