"""Child model servers: their lifecycle, their output, and their end.

Knows how a child is started, watched and stopped; not who asked for it, nor
what requests it serves.
"""

from __future__ import annotations
