"""Configurations that the read-only commands are tried on."""

from __future__ import annotations

from llamaswap.config.load import load_text
from llamaswap.config.model import Config

GROUPS = """
models:
  qwen:
    cmd: llama-server --port ${PORT} --alias 'my model'
    aliases: [q]
    env: [CUDA_VISIBLE_DEVICES=1]
    ttl: 300
    useModelName: qwen-72b
    filters:
      stripParams: top_k, seed
      setParams: {temperature: 0.5}
      setParamsByID:
        qwen:low: {temperature: 0.1}
  coder:
    cmd: coder --port ${PORT}
    concurrencyLimit: 3
  embed: {cmd: embed, proxy: "http://localhost:9100", checkEndpoint: none, unlisted: true}
groups:
  big: {members: [qwen, coder]}
  always: {swap: false, exclusive: false, persistent: true, members: [embed]}
"""

MATRIX = """
models:
  a: {cmd: s, proxy: "http://h:1"}
  b: {cmd: s, proxy: "http://h:2"}
  c: {cmd: s, proxy: "http://h:3"}
  lone: {cmd: s, proxy: "http://h:4"}
matrix:
  sets:
    pair: a & b
    all: +pair | a & c
"""

WRONG = """
models:
  a: {cmd: s, proxy: "http://h:1", tll: 5}
  b: {cmd: s, proxy: "http://h:2", ttl: soon}
globalTTL: -1
"""


def grouped(extra: str = "") -> Config:
    """Three models in two groups."""
    return load_text(GROUPS + extra)


def sets() -> Config:
    """Four models, three of them in sets."""
    return load_text(MATRIX)
