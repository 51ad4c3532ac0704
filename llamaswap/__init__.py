"""One GPU, many models, many people: a reverse proxy with a serial scheduler."""

from __future__ import annotations

__version__ = "0.1.0"
