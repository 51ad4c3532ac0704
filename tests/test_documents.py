"""The documents say what is so: their commands, configurations, links and names are those of the code."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from llamaswap import cli, tap
from llamaswap.calls.priority import ALIASES, HEADER
from llamaswap.config.load import load_text
from llamaswap.config.model import Config, ModelConfig, SerialSettings, Timeouts
from llamaswap.listening import endpoints_of
from llamaswap.scheduling.vocabulary import Band, band_of
from llamaswap.telemetry import metrics
from llamaswap.web.routes import Match, find_route
from support.documents import (
    DOCUMENTS,
    ROOT,
    Block,
    anchors,
    blocks,
    commands,
    links,
    read,
    section,
    tables,
)

PRIORITY = "docs/request-priority.md"


# --- what a reader types -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("document", "command"), commands())
def test_a_command_in_a_document_can_be_typed(document: str, command: str) -> None:
    words = shlex.split(command, comments=True)
    name = Path(words[0]).name
    check = {
        "make": check_make,
        "llama-swap": check_llama_swap,
        "twistd": check_twistd,
        "curl": check_curl,
        "install": check_install,
    }.get(name)
    if check is None:
        assert name in {"python3", "pip", "systemd-sysusers", "systemctl", "journalctl"}, command
    else:
        check(words[1:])


def check_make(words: list[str]) -> None:
    makefile = read("Makefile")
    for word in words:
        name, equals, _ = word.partition("=")
        if equals:
            assert re.search(rf"^{name} \?=", makefile, re.MULTILINE), f"make knows no variable {name}"
        else:
            assert re.search(rf"^{name}:", makefile, re.MULTILINE), f"make knows no target {name}"


def check_llama_swap(words: list[str]) -> None:
    flags = cli.parse_flags(words)

    assert flags.config is not None
    for address in flags.listen:
        endpoints_of(address, dual_stack=True)


def check_twistd(words: list[str]) -> None:
    own, _, ours = " ".join(words).partition("llamaswap ")
    assert set(own.split()) <= {"--nodaemon", "--pidfile=", "--help"}
    known = tap.Options().getUsage()
    for flag in re.findall(r"--[a-z-]+", ours):
        assert flag in known, f"twistd llamaswap knows no {flag}"


def check_curl(words: list[str]) -> None:
    method = b"POST" if "-d" in words else b"GET"
    if "-X" in words:
        method = words[words.index("-X") + 1].encode()
    (url,) = (word for word in words if word.startswith("http://"))

    assert isinstance(find_route(method, urlsplit(url).path.encode()), Match), f"nothing answers {url}"
    for position, word in enumerate(words[:-1]):
        if word == "-d":
            json.loads(words[position + 1])


def check_install(words: list[str]) -> None:
    source = words[-2]
    assert source == "config.yaml" or (ROOT / source).is_file()


def test_every_make_target_that_a_document_names_exists() -> None:
    named = {name for document in DOCUMENTS for name in re.findall(r"`make ([a-z]+)", read(document))}

    assert {"lint", "types", "unit", "integration", "dist", "lock", "test"} <= named
    check_make(sorted(named))


def test_the_usage_text_names_every_flag_that_takes_a_value() -> None:
    for name in cli.VALUES:
        assert f"-{name} " in cli.USAGE
        assert f"--{name}" in tap.Options().getUsage()


# --- what a reader copies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.document)
def test_a_configuration_in_a_document_loads_without_a_warning(block: Block) -> None:
    config = load_text(block.text, environ={"HOME": "/home/ada"})

    assert config.warnings == ()
    assert config.models


def test_the_configuration_of_the_readme_keeps_the_embedder_beside_one_large_model() -> None:
    (block,) = (block for block in blocks("yaml") if block.document == "README.md")
    config = load_text(block.text)
    groups = {group.id: group for group in config.groups if group.members}

    assert groups["large"].swap
    assert groups["large"].exclusive
    assert groups["always"].persistent
    assert not groups["always"].exclusive
    assert config.preload == ("embedder",)


def test_the_settings_that_are_documented_as_defaults_are_the_defaults() -> None:
    (block,) = (block for block in blocks("yaml") if block.document == PRIORITY)

    assert load_text(block.text).scheduler.serial == SerialSettings()


@pytest.mark.parametrize("document", ["etc/demo.yaml", "etc/config.example.yaml"])
def test_a_configuration_that_is_shipped_loads_without_a_warning(document: str) -> None:
    environ = {
        "LLAMA_SERVER": "llama-server",
        "DEMO_MODEL": "m.gguf",
        "HOME": "/home/ada",
        "UPSTREAM_KEY": "k",
    }

    assert load_text(read(document), environ=environ).warnings == ()


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.document)
def test_python_in_a_document_is_python(block: Block) -> None:
    ast.parse(block.text)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_link_leads_somewhere(document: str) -> None:
    for target in links(document):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        place = (ROOT / document).parent / path if path else ROOT / document
        assert place.is_file(), target
        if anchor:
            assert anchor in anchors(str(place.resolve().relative_to(ROOT))), target


# --- names -------------------------------------------------------------------------------------------------


def test_the_metrics_in_the_documents_are_those_of_the_code() -> None:
    source = Path(metrics.__file__).read_text("utf-8")
    exported = set(re.findall(r'"(llamaswap_[a-z_]+)"', source))
    (table,) = tables(section("docs/operations.md", "Metrics"))

    assert {row["metric"] for row in table} == exported
    for document in DOCUMENTS:
        for name in re.findall(r"\bllamaswap_[a-z_]+", read(document)):
            if name != "llamaswap_plugin":
                assert re.sub(r"_(bucket|sum|count)$", "", name) in exported, f"{name} in {document}"


def test_the_aliases_and_bands_in_the_documents_are_those_of_the_code() -> None:
    names, bands, plans = list(tables(read(PRIORITY)))[:3]

    assert {row["name"].encode(): int(row["number"]) for row in names} == ALIASES
    assert {row["band"] for row in bands} == set(Band)
    for row in plans:
        assert band_of(int(row["a batch job"])) is Band.BATCH
        assert band_of(int(row["a chat"])) is Band.INTERACTIVE
        assert int(row["a batch job"]) == -100 + int(row["added"])
    assert HEADER.decode() in read(PRIORITY).lower()


def test_what_the_readme_says_is_not_acted_on_is_what_the_code_does_not_read() -> None:
    (table,) = tables(section("README.md", "What it does not do"))
    listed = {snake(row["key"].rpartition(".")[2]) for row in table}

    unread = {"ui" if name == "session_headers" else name for name in unread_fields()}
    assert listed - {"timeouts"} == unread, "write what has changed into the table of README.md"


def test_of_the_timeouts_only_one_is_read() -> None:
    read_names = attributes_outside("config")

    assert {field.name for field in fields(Timeouts)} & read_names == {"response_header", "connect"}
    # The name `connect` is Twisted's, too; nothing reads the setting.
    assert not any(re.search(r"timeouts\.connect\b", text) for text in sources("config"))


USED_WHILE_READING = frozenset(
    {"global_ttl", "start_port", "unload_timeout", "health_check_timeout", "router"}
)
"""Settings that have done their work once the configuration is read."""


def unread_fields() -> set[str]:
    """The fields of the configuration that no module outside `config` reads."""
    named = {field.name for owner in (Config, ModelConfig) for field in fields(owner)}
    return named - attributes_outside("config") - USED_WHILE_READING


def attributes_outside(package: str) -> set[str]:
    """Every attribute that a module outside a package reads."""
    return {
        node.attr
        for text in sources(package)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
    }


def sources(without: str) -> Iterator[str]:
    """The text of every module outside a package."""
    for path in sorted((ROOT / "llamaswap").rglob("*.py")):
        if path.parent.name != without:
            yield path.read_text("utf-8")


def snake(name: str) -> str:
    """`useModelName` as `use_model_name`."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


def test_the_tree_in_the_architecture_is_the_tree() -> None:
    (block,) = (block for block in blocks("text") if block.text.startswith("llamaswap/\n"))
    drawn: set[str] = set()
    package = ""
    for line in block.text.splitlines()[1:]:
        name = line.split()[0]
        if not line.startswith("    "):
            package = name if name.endswith("/") else ""
        if name.endswith(".py"):
            drawn.add(package + name)

    found = ((ROOT / "llamaswap").rglob("*.py"), ROOT / "llamaswap")
    assert drawn == {str(path.relative_to(found[1])) for path in found[0] if path.name != "__init__.py"}


def test_the_layers_in_the_architecture_are_the_contract() -> None:
    (block,) = (block for block in blocks("text") if block.text.startswith("cli\n"))
    contract = re.search(r"^layers =\n((?:    .*\n)+)", read("setup.cfg"), re.MULTILINE)
    assert contract

    assert block.text.split() == contract[1].replace("llamaswap.", "").split()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_file_that_a_document_names_exists(document: str) -> None:
    text = re.sub(r"```.*?```", "", read(document), flags=re.DOTALL)
    for name in re.findall(r"`([\w./-]+\.(?:py|cfg|lock|service))`", text):
        places = [ROOT / name, ROOT / "llamaswap" / name, *(ROOT / "llamaswap").glob(f"*/{name}")]
        assert any(place.exists() for place in places), f"{document} names {name}"


@pytest.mark.parametrize("block", blocks("text"), ids=lambda block: block.document)
def test_a_line_of_the_log_that_a_document_shows_is_one_that_the_code_writes(block: Block) -> None:
    code = "".join(sources(without=""))

    for event in re.findall(r"^\[[A-Z]+\] ([a-z]+\.[a-z_]+) ", block.text, re.MULTILINE):
        assert f'"{event} ' in code, f"nothing logs {event}"
