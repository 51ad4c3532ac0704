"""One model after the other: its macros, its port, its default proxy.

Knows the few model keys that take part in this (`macros`, `cmd`, `cmdStop`, `proxy`,
`filters.setParamsByID`); what they mean is read later, in `models`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llamaswap.config.macros import Macro, Substitution, declarations, leftover_text, leftovers
from llamaswap.config.mistakes import Place, Report, below
from llamaswap.config.nodes import Entry, Mapping, Node, Scalar, spell
from llamaswap.config.ports import Ports

DEFAULT_PROXY = "http://localhost:${PORT}"

_COMMANDS = ("cmd", "cmdStop")
_PORT = "${PORT}"


class ModelExpansion:
    """Expands models, which must come in byte order of their ids: ports depend on it."""

    def __init__(self, shared: tuple[Macro, ...], ports: Ports, budget: list[int], report: Report) -> None:
        self._shared = shared
        self._ports = ports
        self._budget = budget
        self._report = report

    def expand(self, model_id: str, node: Mapping, place: Place) -> Mapping:
        """The model with every placeholder replaced but `${PID}`; what is left is reported.

        Args:
            model_id: the model's key.
            node: its settings.
            place: where the key stands.
        """
        path = f"models.{model_id}"
        own = declarations(node.get("macros"), below(path, "macros"), self._report)
        if node.opaque:
            self._report.warn(
                node.place, path, "a key here is not text, so macros are not expanded in this model"
            )
            return _with_proxy(_without_macros(node), place)
        scope = _scope(model_id, self._shared, own)
        prepared = _with_proxy(_without_comments(_without_macros(node)), place)
        expanded = self._substituted(prepared, scope, path)
        if self._needs_port(expanded, path):
            expanded = self._substituted(expanded, (Macro("PORT", self._ports.take(model_id)),), path)
        self._check(expanded, path)
        return expanded

    def _substituted(self, node: Mapping, scope: tuple[Macro, ...], path: str) -> Mapping:
        substitution = Substitution(scope, self._budget)
        substitution.spend(len(scope), node.place)
        tree = substitution.tree(node)
        assert isinstance(tree, Mapping)
        return _change(tree, "filters", lambda filters: self._filters(filters, substitution, path))

    def _filters(self, filters: Node, substitution: Substitution, path: str) -> Node:
        """Keys of `setParamsByID` are the only keys that macros reach."""

        def keyed(by_id: Node) -> Node:
            if not isinstance(by_id, Mapping) or by_id.opaque:
                return by_id
            entries: dict[str, Entry] = {}
            for key, value in by_id.entries:
                name = spell(substitution.value(spell(key.value), key.place))
                if name in entries:
                    where = below(path, "filters.setParamsByID")
                    self._report.wrong(key.place, where, f"two keys become {name!r}")
                entries[name] = (replace(key, value=name), value)
            return replace(by_id, entries=tuple(entries.values()))

        if not isinstance(filters, Mapping) or filters.opaque:
            return filters
        return _change(filters, "setParamsByID", keyed)

    def _needs_port(self, node: Mapping, path: str) -> bool:
        if _PORT in _text(node.get("cmd")):
            return True
        proxy = node.get("proxy")
        if proxy is not None and _PORT in _text(proxy):
            what = "set proxy, or use ${PORT} in cmd"
            self._report.settle(proxy.place, below(path, "proxy"), what)
        return False

    def _check(self, node: Mapping, path: str) -> None:
        for key, value in node.entries:
            allowed = {"PID"} if key.text == "cmdStop" else set()
            leftovers(value, below(path, key.text), self._report, allowed=allowed)
        filters = node.get("filters")
        by_id = filters.get("setParamsByID") if isinstance(filters, Mapping) else None
        if isinstance(by_id, Mapping) and not by_id.opaque:
            for key, _ in by_id.entries:
                where = below(path, "filters.setParamsByID")
                leftover_text(spell(key.value), key.place, where, self._report)


def _scope(model_id: str, shared: tuple[Macro, ...], own: tuple[Macro, ...]) -> tuple[Macro, ...]:
    """MODEL_ID, then the shared ones; an own macro replaces its namesake where that stands."""
    merged = {"MODEL_ID": Macro("MODEL_ID", model_id)}
    for macro in (*shared, *own):
        merged[macro.name] = macro
    return tuple(merged.values())


def _without_macros(node: Mapping) -> Mapping:
    return replace(node, entries=tuple(entry for entry in node.entries if entry[0].text != "macros"))


def _without_comments(node: Mapping) -> Mapping:
    """Comment lines leave a command before macros are looked for."""

    def cleaned(value: Node) -> Node:
        if not isinstance(value, Scalar) or not isinstance(value.value, str) or "#" not in value.value:
            return value
        lines = value.value.split("\n")
        return replace(value, value="\n".join(line for line in lines if not line.strip().startswith("#")))

    for key in _COMMANDS:
        node = _change(node, key, cleaned)
    return node


def _with_proxy(node: Mapping, place: Place) -> Mapping:
    """The default proxy goes in here, where its `${PORT}` can still be replaced."""
    given = node.get("proxy")
    if given is not None and not (isinstance(given, Scalar) and given.value is None):
        return node
    place = place if given is None else given.place
    key = Scalar(place, "proxy", "proxy", "str")
    kept = tuple(entry for entry in node.entries if entry[0].text != "proxy")
    return replace(node, entries=(*kept, (key, Scalar(place, DEFAULT_PROXY))))


def _change(node: Mapping, name: str, change: Callable[[Node], Node]) -> Mapping:
    """The mapping with one of its values changed, if it is there."""
    entries = ((key, change(value) if key.text == name else value) for key, value in node.entries)
    return replace(node, entries=tuple(entries))


def _text(node: Node | None) -> str:
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else ""
