"""Records to arrivals: the model, the band and the seconds that each comes to on this box.

Pure.  Knows mappings and what was measured; nothing of files, and nothing of what a scheduler does then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.mapping import OTHERS, Cost, TraceMapping
from llamaswap.simulation.records import BadLine, Record
from llamaswap.simulation.rules import Applied
from llamaswap.simulation.stored import Measured

LABEL = "trace"
"""The field that every record has: what its trace is called."""

NOT_MEASURED = Measured(load={}, run={}, prefill={}, decode={})


class Costs:
    """What models take.

    What the mapping says of a model comes first, then what was measured of it, then what the mapping says of
    all others.
    """

    def __init__(self, said: Mapping[str, Cost], measured: Measured = NOT_MEASURED) -> None:
        self._said = said
        self._measured = measured
        self._rates: dict[str, tuple[float, float]] = {}

    def load(self, model: str) -> float | None:
        """Return the seconds that a load takes; None where nobody knows."""
        return self._first(model, lambda cost: cost.load, self._measured.load)

    def parallel(self, model: str) -> int | None:
        """Return how many requests the model's server works on at once; None where nobody says."""
        said = (self._said.get(name, Cost()).parallel for name in (model, OTHERS))
        return next((one for one in said if one is not None), None)

    def run(self, model: str, prompt: int, generated: int) -> float:
        """Return the seconds that so many tokens take.

        Raises:
            BadLine: nobody knows how fast the model is.
        """
        if model not in self._rates:
            prefill = self._first(model, lambda cost: cost.prefill, self._measured.prefill)
            decode = self._first(model, lambda cost: cost.decode, self._measured.decode)
            if prefill is None or decode is None:
                raise BadLine(
                    f"the trace counts tokens, and nobody says how many a second {model!r} does: give"
                    f" models.{model}.prefill and .decode in the mapping, or --measured STORE"
                )
            self._rates[model] = (prefill, decode)
        prefill_rate, decode_rate = self._rates[model]
        return prompt / prefill_rate + generated / decode_rate

    def _first(
        self, model: str, of: Callable[[Cost], float | None], measured: Mapping[str, float]
    ) -> float | None:
        nothing = Cost()
        said = of(self._said.get(model, nothing))
        if said is not None:
            return said
        return measured.get(model, of(self._said.get(OTHERS, nothing)))


class Placing:
    """Places the records of one trace.

    Args:
        names: model ids by what else they are called.
        seed: with the trace's label, all that chance depends on.
    """

    def __init__(
        self, mapping: TraceMapping, costs: Costs, names: Mapping[str, str], label: str, seed: int
    ) -> None:
        self._model = Applied(mapping.model, f"{seed} {label} model")
        self._priority = Applied(mapping.priority, f"{seed} {label} priority")
        self._costs = costs
        self._names = names
        self._label = label

    def arrival(self, record: Record) -> Arrival:
        """Place one record, at its own time.

        Raises:
            BadLine: neither the trace nor the mapping says which model it wants, or how long it takes.
        """
        model = self._model.of(self._value(record, self._model.source, record.model)) or record.model
        if not model:
            raise BadLine("the trace names no models: give `model` in the mapping")
        model = self._names.get(model, model)
        own = "" if record.priority is None else str(record.priority)
        priority = self._priority.of(self._value(record, self._priority.source, own))
        return Arrival(
            at=record.at,
            model=model,
            priority=priority if priority is not None else record.priority or 0,
            run=record.run if record.run is not None else self._run(model, record),
            user=record.user,
            cancel_after=record.cancel_after,
        )

    def _run(self, model: str, record: Record) -> float:
        return self._costs.run(model, record.prompt or 0, record.generated or 0)

    def _value(self, record: Record, source: str | None, own: str) -> str:
        if source is None:
            return own
        return self._label if source == LABEL else record.fields.get(source, "")
