"""The documents, taken apart: fenced blocks, tables, links.  Knows Markdown as far as these use it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

DOCUMENTS = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs/request-priority.md",
    "docs/operations.md",
    "docs/differences-from-llama-swap.md",
    "docs/stub.md",
    "docs/performance.md",
    "docs/reliability.md",
    "docs/metrics.md",
    "docs/queue.md",
    "docs/tuning.md",
    "docs/waiting-clients.md",
    "etc/traces/README.md",
)

_TEST = re.compile(r"\b(tests/[A-Za-z0-9_/*]+\.py)(?:::([A-Za-z0-9_*]+))?")
_FENCE = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    document: str
    language: str
    text: str


Table = list[dict[str, str]]


def read(document: str) -> str:
    """Return a document's text."""
    return (ROOT / document).read_text("utf-8")


def blocks(*languages: str) -> list[Block]:
    """Return every fenced block in one of these languages."""
    return [
        Block(document, language, text)
        for document in DOCUMENTS
        for language, text in _FENCE.findall(read(document))
        if language in languages
    ]


def commands() -> list[tuple[str, str]]:
    """Return (document, command) for every command of the shell blocks, continued lines joined."""
    return [
        (block.document, line.strip())
        for block in blocks("sh")
        for line in block.text.replace("\\\n", " ").splitlines()
        if line.strip()
    ]


def links(document: str) -> list[str]:
    """Return the targets of a document's links."""
    return _LINK.findall(_FENCE.sub("", read(document)))


def anchors(document: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    titles = (re.sub(r"[^\w\- ]", "", title.lower()) for title in _HEADING.findall(read(document)))
    return {title.strip().replace(" ", "-") for title in titles}


def section(document: str, title: str) -> str:
    """Return what stands below a heading, up to the next one of the same or a higher level."""
    found = re.search(rf"^(#+) +{re.escape(title)}\n(.*)", read(document), re.DOTALL | re.MULTILINE)
    assert found, f"{document} has no section {title!r}"
    level = len(found[1])
    return re.split(rf"^#{{1,{level}}} ", found[2], maxsplit=1, flags=re.MULTILINE)[0]


def tables(text: str) -> Iterator[Table]:
    """Yield each table as rows by column title, with code marks taken off."""
    lines: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append([cell.strip().strip("`") for cell in line.strip().strip("|").split("|")])
        elif lines:
            titles, _, *rows = lines
            yield [dict(zip(titles, row, strict=True)) for row in rows]
            lines = []


def named_tests(text: str) -> list[tuple[str, str]]:
    """Return (file, function) for every test that a text names; the function is '' for a whole file.

    Both may hold `*`.
    """
    return _TEST.findall(text)


def functions_of(path: Path) -> list[str]:
    """Return the names of a file's test functions."""
    return [
        node.name
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
