"""The tree keeps its shape: tests mirror modules, and nobody but the tap picks an event loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import llamaswap

PACKAGE = Path(llamaswap.__file__).parent
TESTS = Path(__file__).parent

UNTESTED = {
    "http1/hosting.py": "what two modules need of each other, and numbers that the documents name",
    "processes/failures.py": "exceptions, and no behaviour",
    "surroundings.py": "a record of what others make, and of no behaviour",
}
"""Modules without a test file of their own, each with its reason."""

NOT_OF_A_MODULE = {
    "config/test_edge_cases.py": "of whole files",
    "config/test_field_cases.py": "of whole files",
    "scheduling/test_fairness.py": "of every scheduler",
    "scheduling/test_handover.py": "of any two schedulers",
    "scheduling/test_scheduler_contract.py": "of every scheduler",
    "test_documented_numbers.py": "of the documents",
    "test_documented_tests.py": "of the documents",
    "test_documents.py": "of the documents",
    "test_layout.py": "of the tree",
    "test_systemd.py": "of the units",
}
"""Test files that belong to no single module, each with what it is about."""

ELSEWHERE = {"bench", "field", "integration", "conformance", "security", "support"}
"""Folders that mirror no package of ours: whole daemons, recorded facts, measuring, and helpers."""


def modules() -> list[str]:
    """Every module that has something to test, as a path below the package."""
    found = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    return sorted(str(path) for path in found if path.name != "__init__.py")


def test_files() -> list[str]:
    """Every test file that mirrors a module, as a path below the tests."""
    found = (path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return sorted(str(path) for path in found if path.parts[0] not in ELSEWHERE)


test_files.__test__ = False  # type: ignore[attr-defined]  # a question, not a test


def mirrored(module: str) -> str:
    """Where a module's tests belong."""
    path = Path(module)
    return str(path.with_name(f"test_{path.name}"))


def may_belong_to(test_file: str) -> Iterator[str]:
    """The modules that a test file may be about: its own name, or the beginning of it."""
    path = Path(test_file)
    words = path.stem.removeprefix("test_").split("_")
    for end in range(1, len(words) + 1):
        yield str(path.with_name("_".join(words[:end]) + ".py"))


def test_every_module_has_its_test_file() -> None:
    there = set(test_files())

    missing = [module for module in modules() if mirrored(module) not in there and module not in UNTESTED]

    assert missing == []


def test_every_test_file_has_its_module() -> None:
    known = set(modules())

    strays = [
        name
        for name in test_files()
        if name not in NOT_OF_A_MODULE and not known.intersection(may_belong_to(name))
    ]

    assert strays == []


def test_exceptions_are_still_needed() -> None:
    there = set(test_files())

    assert [module for module in UNTESTED if mirrored(module) in there] == []
    assert NOT_OF_A_MODULE.keys() <= there


def test_tests_are_no_package() -> None:
    assert list(TESTS.rglob("__init__.py")) == []


def test_no_module_picks_the_event_loop_for_whoever_imports_it() -> None:
    guilty = [module for module in modules() if "twisted.internet.reactor" in imported_at_once(module)]

    assert guilty == []


def test_only_the_command_lines_name_the_reactor_at_all() -> None:
    naming = {module for module in modules() if "twisted.internet.reactor" in imported(module)}

    assert naming <= {"tap.py", "cli.py"}


def test_every_module_says_what_it_knows() -> None:
    silent = [module for module in modules() if ast.get_docstring(tree(module)) is None]

    assert silent == []


def tree(module: str) -> ast.Module:
    """A module's syntax."""
    return ast.parse((PACKAGE / module).read_text())


def imported_at_once(module: str) -> set[str]:
    """What is imported when the module is."""
    return set(names_of(tree(module).body))


def imported(module: str) -> set[str]:
    """What is imported, some time."""
    return set(names_of(ast.walk(tree(module))))


def names_of(nodes: Iterator[ast.AST] | list[ast.stmt]) -> Iterator[str]:
    """The dotted names that these statements import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
