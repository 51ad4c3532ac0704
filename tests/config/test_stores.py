"""Top-level keys that hold anchors."""

from __future__ import annotations

from llamaswap.config.stores import anchor_stores
from support.config_checks import warnings_of
from support.config_nodes import mapping


def test_a_key_is_a_store_when_something_in_it_is_used_elsewhere() -> None:
    root = mapping("defs: {a: [&a 1]}\nspare: {b: &b 1}\nx-note: 1\nuse: *a")
    assert anchor_stores(root) == {"defs", "x-note"}


def test_stores_are_not_warned_about_but_other_unknown_keys_are() -> None:
    text = "defs: &d {cmd: s, proxy: 'http://h'}\nmodels: {m: *d}\nx-y: 1\nloglevel: warn"
    assert warnings_of(text) == ["4:1: loglevel: unknown key; did you mean 'logLevel'?"]
