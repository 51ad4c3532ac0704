"""What a request may ask of the queue."""

from __future__ import annotations

from llamaswap.config.model import CallerConfig, PrioritiesConfig
from llamaswap.http1.heads import RequestHead
from llamaswap.web.keys import Keyring
from llamaswap.web.standing import Standings

PRO = CallerConfig(name="pro", keys=("sk-pro",), max_priority=100, offset=1)
BOT = CallerConfig(name="bot", keys=("sk-bot", "sk-bot2"), default_priority=-100)
RING = Keyring(["sk-pro", "sk-bot", "sk-bot2", "sk-any"], [PRO, BOT])
STANDINGS = Standings(RING, PrioritiesConfig(callers=(PRO, BOT), models={"renderer": -100}))


def head(*fields: tuple[str, str]) -> RequestHead:
    """A request with these fields."""
    return RequestHead(
        b"POST", b"/", (1, 1), tuple((name.encode(), value.encode()) for name, value in fields)
    )


def test_a_head_that_says_all_leaves_nothing_to_the_model() -> None:
    asked = head(
        ("X-LlamaSwap-Priority", "interactive"), ("X-LlamaSwap-Max-Wait", "30s"), ("X-Api-Key", "sk-pro")
    )

    standing = STANDINGS.of(asked)

    assert (standing.priority, standing.name, standing.max_wait) == (101, "pro", 30.0)
    assert not standing.odd_priority and not standing.odd_max_wait


def test_a_callers_default_stands_in_for_the_header() -> None:
    assert STANDINGS.of(head(("Authorization", "Bearer sk-bot2"))).priority == -100


def test_a_head_that_says_nothing_leaves_it_to_the_model() -> None:
    standing = STANDINGS.of(head(("X-Api-Key", "sk-any")))

    assert (standing.priority, standing.name) == (None, "")
    assert STANDINGS.priority(standing, "renderer") == -100
    assert STANDINGS.priority(standing, "chat") == 0
    pro = STANDINGS.of(head(("X-Api-Key", "sk-pro")))
    assert (pro.priority, STANDINGS.priority(pro, "renderer")) == (None, -99)


def test_nonsense_is_noted_and_counts_as_nothing_in_particular() -> None:
    standing = STANDINGS.of(head(("X-LlamaSwap-Priority", "high"), ("X-LlamaSwap-Max-Wait", "soon")))

    assert (standing.priority, standing.odd_priority) == (0, True)
    assert (standing.max_wait, standing.odd_max_wait) == (None, b"soon")


def test_a_head_may_say_that_it_unloads_protected_models() -> None:
    assert STANDINGS.of(head(("X-LlamaSwap-Evict", "Protected"))).overrides
    assert not STANDINGS.of(head(("X-LlamaSwap-Evict", "all"))).overrides
    assert not STANDINGS.of(head()).overrides


def test_a_head_is_read_once_for_each_configuration() -> None:
    asked = head(("X-Api-Key", "sk-pro"), ("X-LlamaSwap-Priority", "5"))
    anybody = Standings(Keyring(["sk-pro"]), PrioritiesConfig())

    assert STANDINGS.of(asked) is STANDINGS.of(asked)
    assert STANDINGS.of(asked).priority == 6
    assert anybody.of(asked).priority == 5
