"""Small files that a kernel makes up: one fact each, or none.  A file that is not there tells nothing."""

from __future__ import annotations

from pathlib import Path


def read_text(path: Path) -> str | None:
    """Return what a file says, without the blanks around it; None where it says nothing."""
    try:
        return path.read_text("utf-8", "replace").strip() or None
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Return the whole number in a file; None where there is none."""
    text = read_text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def list_folder(path: Path) -> list[Path]:
    """Return what is in a folder, in no order; nothing where there is no folder."""
    try:
        return list(path.iterdir())
    except OSError:
        return []
