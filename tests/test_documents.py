"""The documents say what is so: their commands, configurations, links and names are those of the code."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from llamaswap import cli, tap
from llamaswap.calls.priority import ALIASES, HEADER
from llamaswap.config.launch import launch_of
from llamaswap.config.load import load_text
from llamaswap.config.model import Config, ModelConfig, SerialSettings, Timeouts
from llamaswap.listening import endpoints_of
from llamaswap.scheduling.vocabulary import Band, BandView, QueueView, band_of
from llamaswap.telemetry import messages
from llamaswap.tools.commands import COMMANDS, _parse, run
from llamaswap.web.accesslog import LINE
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
from support.telemetry_names import exported_metrics

PRIORITY = "docs/request-priority.md"

EMPTY = QueueView(bands={band: BandView(depth=0, oldest_wait=0.0) for band in Band}, jobs=())


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
        "python": check_python,
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
    if words[0] in COMMANDS:
        _parse(words)
        return
    flags = cli.parse_flags(words)

    assert flags.value("config")
    for address in flags.listen:
        endpoints_of(address, dual_stack=True)


def check_python(words: list[str]) -> None:
    assert (ROOT / words[0]).is_file()


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
    for name in (*cli.VALUES, "watch-config"):
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


def readme_config(folder: Path, **misspelt: str) -> Path:
    """Write the configuration of the README where its store can be opened, with some words replaced."""
    (block,) = (block for block in blocks("yaml") if block.document == "README.md")
    text = block.text.replace("/var/lib/llamaswap", str(folder))
    for word, wrong in misspelt.items():
        assert word in text
        text = text.replace(word, wrong, 1)
    file = folder / "config.yaml"
    file.write_text(text, "utf-8")
    return file


def test_what_validate_says_in_the_readme_is_what_it_says(tmp_path: Path) -> None:
    (shown,) = (block.text for block in blocks("text") if "can't be used" in block.text)
    file, out = readme_config(tmp_path, aliases="alias", **{"ttl: 1800": "ttl: soon"}), StringIO()

    assert run(["validate", str(file)], out, out, {}) == 1
    assert out.getvalue().replace(str(file), "/etc/llamaswap/config.yaml") == shown


def test_what_explain_says_in_the_documents_is_what_it_says(tmp_path: Path) -> None:
    (shown,) = (block.text for block in blocks("text") if block.text.startswith("qwen3\n"))
    out = StringIO()

    assert (
        run(["explain", str(readme_config(tmp_path)), "qwen3", "--running", "coder,embedder"], out, out, {})
        == 0
    )
    assert out.getvalue() == shown


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
        "PRO_KEY": "p",
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
    exported = exported_metrics()
    listed = [row["metric"] for table in tables(read("docs/metrics.md")) for row in table if "metric" in row]

    assert sorted(listed) == sorted(exported)
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
    unread_limits = {f"timeouts.{name}" for name in unread_timeouts()}

    assert {snake(row["key"]) for row in table} == unread_fields() | unread_limits, (
        "change the table in README.md"
    )


def unread_timeouts() -> set[str]:
    """The timeouts that are read neither for models nor for peers; the same for both."""
    every = {field.name for field in fields(Timeouts)}
    read_for = [
        set(re.findall(r"\b(?:timeouts|limits)\.([a-z_]+)", read(f"llamaswap/proxying/{module}.py")))
        for module in ("local", "peer")
    ]

    assert read_for[0] == read_for[1]
    return every - read_for[0]


USED_WHILE_READING = frozenset(
    {"global_ttl", "start_port", "unload_timeout", "health_check_timeout", "router"}
)
"""Settings that have done their work once the configuration is read."""


def unread_fields() -> set[str]:
    """The fields of the configuration that nobody reads but the reader, and the tools that print them."""
    named = {field.name for owner in (Config, ModelConfig) for field in fields(owner)}
    return named - attributes_outside("config", "tools") - USED_WHILE_READING


def attributes_outside(*packages: str) -> set[str]:
    """Every attribute that a module outside these packages reads."""
    return {
        node.attr
        for text in sources(*packages)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
    }


def sources(*without: str) -> Iterator[str]:
    """The text of every module outside these packages."""
    for path in sorted((ROOT / "llamaswap").rglob("*.py")):
        if path.parent.name not in without:
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


def test_what_the_architecture_calls_pure_is_held_to_it() -> None:
    (block,) = (block for block in blocks("text") if block.text.startswith("llamaswap/\n"))
    pure: set[str] = set()
    package = ""
    for line in block.text.splitlines()[1:]:
        name, mark, *_ = line.split()
        if not line.startswith("    "):
            package = name.replace("/", ".") if name.endswith("/") else ""
        if mark == "P":
            pure.add(package if name.endswith("/") else package + name.removesuffix(".py"))
    contract = re.search(
        r"^name = What decides .*\n.*\nsource_modules =\n((?:    .*\n)+)", read("setup.cfg"), re.MULTILINE
    )
    assert contract

    assert {name.removesuffix(".") for name in pure} == set(contract[1].replace("llamaswap.", "").split())


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
    code = "".join(sources())
    access = re.compile(re.sub(r"\\{[a-z_]+\\}", ".+", re.escape(LINE)))

    for line in re.findall(r"^\[[A-Z]+\] (.*)$", block.text, re.MULTILINE):
        event = re.match(r"([a-z]+\.[a-z_]+)( [a-z]+=)?", line)
        if event is not None:
            assert f'"{event[0]}' in code or f'"{event[1]} ' in code or f'"{event[1]}"' in code, line
        else:
            assert access.fullmatch(line), line


def test_every_reason_for_a_failed_load_that_a_document_names_is_one_that_the_code_gives() -> None:
    code = "".join(sources())
    reasons = re.findall(
        r"^\* \*(.+?)\*: ", section("docs/operations.md", "A model that does not load"), re.MULTILINE
    )

    assert len(reasons) == 4
    for reason in reasons:
        words = re.split(r"'.*?'|\.\.\.|\b[0-9]\w*|[:;]", reason)
        assert all(fragment.strip() in code for fragment in words), reason


def test_every_event_that_an_operator_should_act_on_is_one_that_the_code_logs() -> None:
    code = "".join(sources())
    (table,) = tables(section("docs/operations.md", "Logs"))
    events = [name for row in table for name in re.findall(r"[a-z]+\.[a-z_]+", row["event"])]

    assert len(events) >= 10
    for event in events:
        assert re.search(rf'"{event}[ "]', code), f"nothing logs {event}"


def test_the_events_that_the_documents_list_are_those_of_the_stream() -> None:
    (table,) = tables(section("docs/operations.md", "Events"))
    types = {value for name, value in vars(messages).items() if name.isupper()}

    assert {row["type"] for row in table} == types


def test_the_settings_that_restart_a_model_are_those_that_the_documents_name() -> None:
    (table,) = tables(section("docs/operations.md", "Reloading"))
    (changed,) = (row["what has changed"] for row in table if "cmd" in row["what has changed"])

    assert set(re.findall(r"[a-zA-Z]+", changed)) == set(launch_of(ModelConfig(id="a")))
