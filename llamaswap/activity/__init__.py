"""The guest book: one row for each inference request, written when it ended."""

from __future__ import annotations
