"""What came back: tokens, speeds and error texts, read from answers in passing."""

from __future__ import annotations
