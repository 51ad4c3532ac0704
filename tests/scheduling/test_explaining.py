"""An explanation agrees with the formula, worked out anew with fractions for every ticket that waits."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from timeit import repeat

from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.explaining import Explanation, Terms, explain, reasons, terms
from llamaswap.scheduling.score import Formula
from llamaswap.scheduling.vocabulary import Facts, Ticket
from support.scheduling_queues import queues, room_of, tickets_from
from support.scheduling_walks import MODELS

DIVISORS = st.sampled_from(["0", "1e-6", "0.5", "60", "1e9"])
BONUSES = st.sampled_from([0, 1, 10, 99])
RESIDENTS = st.frozensets(st.sampled_from(MODELS))
NOW = 2000.0  # nobody arrives later


class Oracle:
    """Scores, exactly and one by one."""

    def __init__(self, divisor: str, bonus: int, resident: frozenset[str]) -> None:
        self.divisor, self.bonus, self.resident = Fraction(divisor), bonus, resident
        self.formula = Formula.of(SerialSettings(aging_divisor=float(divisor), swap_affinity_bonus=bonus))

    def score(self, ticket: Ticket, without: str = "") -> Fraction:
        score = Fraction(0)
        if without != "priority":
            score += ticket.priority
        if without != "swap_affinity" and ticket.model in self.resident:
            score += self.bonus
        if without != "aging" and self.divisor:
            score += (Fraction(NOW) - Fraction(ticket.arrived)) / self.divisor
        return score

    def before(self, one: Ticket, other: Ticket, without: str = "") -> bool:
        ours, theirs = self.score(one, without), self.score(other, without)
        return ours > theirs or (ours == theirs and one.number < other.number)

    def ahead(self, ticket: Ticket, queue: Sequence[Ticket], without: str = "") -> list[Ticket]:
        ahead = [other for other in queue if other != ticket and self.before(other, ticket, without)]
        return sorted(ahead, key=lambda other: (-self.score(other, without), other.number))

    def by(self, ahead: Ticket, behind: Ticket) -> set[str]:
        needed = {
            term for term in ("priority", "swap_affinity", "aging") if not self.before(ahead, behind, term)
        }
        speaking = {
            "priority": ahead.priority > behind.priority,
            "swap_affinity": bool(self.bonus)
            and ahead.model in self.resident
            and behind.model not in self.resident,
            "arrival": ahead.number < behind.number,
        }
        return needed or {name for name, speaks in speaking.items() if speaks}

    def explain(self, ticket: Ticket, queue: Sequence[Ticket], most: int = 100) -> Explanation:
        return explain(
            ticket,
            room_of(queue, self.formula),
            formula=self.formula,
            facts=Facts(now=NOW),
            resident=self.resident,
            most=most,
        )


ORACLES = st.builds(Oracle, DIVISORS, BONUSES, RESIDENTS)


@settings(deadline=None)
@given(queues(), ORACLES)
def test_places_are_those_of_the_formula_with_and_without_its_terms(
    queue: list[Ticket], oracle: Oracle
) -> None:
    for ticket in queue:
        explanation = oracle.explain(ticket, queue)

        assert explanation.position == 1 + len(oracle.ahead(ticket, queue))
        assert explanation.position_without_aging == 1 + len(oracle.ahead(ticket, queue, "aging"))
        assert explanation.position_without_affinity == 1 + len(oracle.ahead(ticket, queue, "swap_affinity"))


@settings(deadline=None)
@given(queues(), ORACLES)
def test_those_ahead_are_listed_in_their_order_each_with_its_reasons(
    queue: list[Ticket], oracle: Oracle
) -> None:
    for ticket in queue:
        explanation = oracle.explain(ticket, queue)

        ahead = oracle.ahead(ticket, queue)
        assert [each.ticket for each in explanation.ahead] == ahead
        assert explanation.ahead_total == len(ahead)
        for each in explanation.ahead:
            assert each.by
            assert set(each.by) == oracle.by(each.ticket, ticket)


@settings(deadline=None)
@given(queues(), ORACLES)
def test_the_terms_add_up_to_the_score(queue: list[Ticket], oracle: Oracle) -> None:
    for ticket in queue:
        got = oracle.explain(ticket, queue).terms

        assert got.score == 1000 * (got.priority + got.affinity) + got.aging
        assert abs(Fraction(got.score, 1000) - oracle.score(ticket)) <= Fraction(1, 2000)
        assert got.priority == ticket.priority
        assert got.affinity == (oracle.bonus if ticket.model in oracle.resident else 0)


def test_only_the_first_are_listed_but_all_are_counted() -> None:
    queue = tickets_from([("A", 0, float(number)) for number in range(20)])

    explanation = Oracle("60", 10, frozenset()).explain(queue[-1], queue, most=3)

    assert [each.ticket.number for each in explanation.ahead] == [1, 2, 3]
    assert explanation.ahead_total == 19


def by_defaults(
    ahead: tuple[str, int, float], behind: tuple[str, int, float], resident: str = ""
) -> tuple[str, ...]:
    queue = tickets_from([ahead, behind])
    first = next(ticket for ticket in queue if (ticket.model, ticket.priority, ticket.arrived) == ahead)
    second = next(ticket for ticket in queue if ticket != first)
    return reasons(first, second, Formula(60_000_000, 10), frozenset(resident))


def test_reasons_in_words_of_the_spec() -> None:
    assert by_defaults(("B", 100, 9.0), ("B", 0, 0.0)) == ("priority",)
    assert by_defaults(("A", 0, 1.0), ("B", 0, 0.0), resident="A") == ("swap_affinity",)
    assert by_defaults(("B", 0, 0.0), ("A", 0, 601.0), resident="A") == ("aging",)
    assert by_defaults(("B", -100, 0.0), ("B", 0, 6001.0)) == ("aging",)
    assert by_defaults(("B", 0, 0.0), ("B", 0, 5.0)) == ("arrival",)
    assert by_defaults(("B", 100, 0.0), ("B", 0, 5.0)) == ("priority", "arrival")
    assert by_defaults(("A", 1, 600.0), ("B", 0, 0.0), resident="A") == ("priority", "swap_affinity")
    assert by_defaults(("A", 5, 700.0), ("B", 0, 0.0), resident="A") == ("priority", "swap_affinity")


def test_what_the_swap_budget_may_still_let_go_before_is_told_to_those_who_need_a_swap() -> None:
    queue = tickets_from([("A", 0, 0.0), ("B", 0, 1.0)])
    formula = Formula(60_000_000, 10)
    room = room_of(queue, formula)

    def budget_of(ticket: Ticket) -> float | None:
        facts = Facts(now=2.0)
        resident = frozenset("A")
        return explain(ticket, room, formula=formula, facts=facts, resident=resident, swap_budget=7.5).budget

    assert [budget_of(ticket) for ticket in queue] == [0.0, 7.5]


def test_terms_of_the_worked_example() -> None:
    ticket = Ticket(number=1, model="A", priority=-100, arrived=0.0)

    assert terms(ticket, Formula(60_000_000, 10), 104.0, resident=True) == Terms(
        priority=-100, affinity=10, aging=1733, score=-88267
    )


def test_a_clock_that_was_set_back_takes_nothing_off_a_score() -> None:
    ticket = Ticket(number=1, model="A", priority=3, arrived=50.0)

    assert terms(ticket, Formula(60_000_000, 10), 10.0, resident=False).aging == 0


def test_one_of_ten_thousand_is_explained_in_a_moment() -> None:
    rng = random.Random(2)
    models = [f"m{number}" for number in range(50)]
    rows = [(rng.choice(models), rng.choice([-100, 0, 100]), n * 0.5) for n in range(10_000)]
    queue = tickets_from(rows)
    formula = Formula(60_000_000, 10)
    room = room_of(queue, formula)

    def last() -> Explanation:
        facts = Facts(now=5000.0)
        return explain(queue[-1], room, formula=formula, facts=facts, resident=frozenset({"m0"}))

    assert len(last().ahead) == 100
    assert min(repeat(last, number=1, repeat=5)) < 0.005  # about 0.25 ms
