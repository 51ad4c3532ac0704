"""A configuration in which every kind of name occurs."""

from __future__ import annotations

from dataclasses import dataclass, field

from llamaswap.calls.profiles import ActiveProfile
from llamaswap.calls.resolution import Directory, Local, Remote, make_directory
from llamaswap.config.load import load_text

CONFIG = """
models:
  m1: {cmd: srv, proxy: "http://127.0.0.1:1", aliases: [nick, shared]}
  m2:
    cmd: srv
    proxy: "http://127.0.0.1:2"
    filters:
      stripParams: "temperature, a.b"
      setParams: {top_p: 0.9, "x.y": 3, "s.t": "<é>"}
      setParamsByID: {"m2:hot": {top_p: 0.5, effort: high}}
  use:
    cmd: srv
    proxy: "http://127.0.0.1:3"
    useModelName: real/use
    filters: {setParamsByID: {"use:x": {x: 1}}}
  org: {cmd: srv, proxy: "http://127.0.0.1:4"}
  org/m: {cmd: srv, proxy: "http://127.0.0.1:5"}
  "123": {cmd: srv, proxy: "http://127.0.0.1:6"}
groups: {all: {swap: false, exclusive: false, members: [m1, m2, use, org, org/m, "123"]}}
peers:
  p1:
    proxy: "http://127.0.0.1:7/base"
    models: [remote/x, only1, shared, both, only1, sel1]
  p2:
    proxy: "http://127.0.0.1:8"
    models: [only2, both, filt, p1/only1]
    filters: {stripParams: temperature, setParams: {a: 1}, setParamsByID: {filt: {b: 2}, p2/filt: {c: 3}}}
selectors:
  sel: {strategy: pin, targets: [m2]}
  sel1: {strategy: pin, targets: ["m2:hot"]}
  warm: {strategy: warm, targets: [m1, m2]}
  spill: {strategy: spillover, targets: [nick, p2/only2]}
  locals: {strategy: spillover, targets: [m1, m2]}
  far: {strategy: pin, targets: [p2/filt]}
profiles:
  day:
    pins:
      public: m1
      public/long: m2
      m2: m1
      off: ~
      hot: "m2:hot"
      tosel: sel
      nick: m2
      chain: m2
      away: p1/remote/x
      org: m1
"""


@dataclass
class Names:
    """A directory, and what a test can change about it."""

    states: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.config = load_text(CONFIG)
        self.profile = ActiveProfile(self.config.profiles)
        self.directory: Directory = make_directory(
            self.config, self.profile, lambda model: self.states.get(model, "stopped")
        )


def said(destination: Local | Remote | None) -> str | None:
    """A destination in one word: the model, or the peer and its model with a colon."""
    if destination is None:
        return None
    if isinstance(destination, Local):
        return destination.model.id
    return f"{destination.peer.id}:{destination.model}"
