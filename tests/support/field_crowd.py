"""A crowd that never goes away: so many requests for a model at any moment, each a short job."""

from __future__ import annotations

import threading
from typing import Any, Self

from support.field import Field
from support.field_call import Call

PERIOD = 0.005  # seconds between two looks at who is over


class Crowd:
    """Keeps so many requests for a model under way until its block ends.

    Args:
        size: how many of them at any moment.
        request: as in `Field.send`.
    """

    def __init__(self, field: Field, model: str, size: int, **request: Any) -> None:
        self.calls: list[Call] = []  # all that there ever were
        self._field = field
        self._model = model
        self._size = size
        self._request = request
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="crowd", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._over.set()
        self._thread.join(10.0)
        if kind is None:
            wrong = [call.wait().wrong() for call in self.calls]
            assert not any(wrong), [words for words in wrong if words]

    def _run(self) -> None:
        under_way: list[Call] = []
        while not self._over.wait(PERIOD):
            under_way = [call for call in under_way if not call.over]
            fresh = [
                self._field.send(self._model, **self._request) for _ in range(self._size - len(under_way))
            ]
            under_way += fresh
            self.calls += fresh
