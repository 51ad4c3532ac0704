"""The command line of `twistd llamaswap`, and the daemon's tie to its process."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from twisted.application.service import IService
from twisted.python.usage import UsageError

from llamaswap import tap
from llamaswap.inherited import Inherited
from llamaswap.service import CannotStart, LlamaSwapService
from llamaswap.tap import Options, endpoints, make_daemon, makeService
from support.daemon import write_config

ONE_MODEL = 'models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}'


@pytest.fixture(autouse=True)
def the_process_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The reactor gets its own clock back after each test, and signals their meaning."""
    from twisted.internet import reactor

    monkeypatch.setattr(reactor, "seconds", reactor.seconds)
    monkeypatch.setattr(reactor, "addSystemEventTrigger", lambda *_: None)
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def parsed(*words: str) -> Options:
    """A command line, understood."""
    options = Options()
    options.parseOptions(list(words))  # type: ignore[no-untyped-call]  # Twisted's
    return options


@pytest.mark.parametrize("flag", ["--config", "-c"])
def test_the_configuration_is_loaded_from_the_file(tmp_path: Path, flag: str) -> None:
    options = parsed(flag, str(write_config(tmp_path, ONE_MODEL)))

    assert options.plan is not None
    assert list(options.plan.config.models) == ["a"]
    assert options.plan.endpoints == ["tcp:8080:interface=127.0.0.1:backlog=4096"]
    assert not options.plan.watch


def test_a_folder_of_configurations_is_merged_in(tmp_path: Path) -> None:
    write_config(tmp_path, ONE_MODEL, "one.yaml")
    write_config(tmp_path, ONE_MODEL.replace("{a:", "{b:"), "two.yml")

    options = parsed("--config-dir", str(tmp_path))

    assert options.plan is not None
    assert list(options.plan.config.models) == ["a", "b"]


def test_addresses_may_be_repeated(tmp_path: Path) -> None:
    config = str(write_config(tmp_path, ONE_MODEL))

    options = parsed("-c", config, "--listen", ":8080", "-l", "unix:/run/x.sock")

    assert options.addresses == [":8080", "unix:/run/x.sock"]


def test_an_address_that_means_nothing_is_a_mistake_of_usage(tmp_path: Path) -> None:
    config = str(write_config(tmp_path, ONE_MODEL))

    with pytest.raises(UsageError, match="neither host:port nor an endpoint"):
        parsed("-c", config, "--listen", "http://h")


def test_every_mistake_of_a_configuration_is_a_line_with_its_place(tmp_path: Path) -> None:
    path = write_config(
        tmp_path,
        """
        models:
          a: {cmd: serve, proxy: "http://h:1", ttl: soon}
          b: {cmd: serve, proxy: "http://h:1", unloadTimeout: [1]}
        """,
    )

    with pytest.raises(SystemExit) as leaving:
        parsed("-c", str(path))

    lines = str(leaving.value).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{path}:3:")
    assert "models.a.ttl" in lines[0]
    assert lines[1].startswith(f"{path}:4:")


@pytest.mark.parametrize("words", [(), ("-c", "/no/such/file.yaml")])
def test_without_a_readable_configuration_there_is_one_line_that_says_so(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as leaving:
        parsed(*words)

    assert isinstance(leaving.value.code, str)
    assert len(leaving.value.code.splitlines()) == 1


def test_an_empty_address_as_of_an_empty_variable_is_none(tmp_path: Path) -> None:
    options = parsed("-c", str(write_config(tmp_path, ONE_MODEL)), "--listen", "")

    assert options.plan is not None
    assert options.plan.endpoints == ["tcp:8080:interface=127.0.0.1:backlog=4096"]


@pytest.mark.parametrize(
    ("words", "endpoints"),
    [
        ((), ["systemd:index=0", "systemd:index=1"]),
        (("--listen", ""), ["systemd:index=0", "systemd:index=1"]),
        (("--listen", "127.0.0.1:1"), ["tcp:1:interface=127.0.0.1:backlog=4096"]),
    ],
)
def test_sockets_that_were_left_to_us_are_listened_on_unless_an_address_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], endpoints: list[str]
) -> None:
    monkeypatch.setattr(tap, "here", lambda: (Inherited(3), Inherited(4)))

    options = parsed("-c", str(write_config(tmp_path, ONE_MODEL)), *words)

    assert options.plan is not None
    assert options.plan.endpoints == endpoints


def test_all_addresses_become_endpoints() -> None:
    assert endpoints(["127.0.0.1:1", "fd:3"]) == ["tcp:1:interface=127.0.0.1:backlog=4096", "fd:3"]


def test_a_step_of_the_systems_clock_moves_no_timer_of_the_daemon(tmp_path: Path) -> None:
    from twisted.internet import reactor

    options = parsed("-c", str(write_config(tmp_path, ONE_MODEL)))
    assert options.plan is not None
    daemon = make_daemon(options.plan)

    assert isinstance(daemon, LlamaSwapService)
    assert reactor.seconds is time.monotonic
    later = reactor.callLater(1000.0, lambda: None)
    assert 0.0 < later.getTime() - time.monotonic() <= 1000.0
    later.cancel()


def test_a_service_comes_of_the_options(tmp_path: Path) -> None:
    service = makeService(parsed("-c", str(write_config(tmp_path, ONE_MODEL)), "-l", "127.0.0.1:0"))

    assert IService.providedBy(service)


def test_a_reason_not_to_start_is_one_line_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = makeService(parsed("-c", str(write_config(tmp_path, ONE_MODEL))))

    def refuses(_: LlamaSwapService) -> None:
        raise CannotStart("cannot listen on tcp:8080: it is taken")

    monkeypatch.setattr(LlamaSwapService, "startService", refuses)
    with pytest.raises(SystemExit) as leaving:
        service.startService()

    assert leaving.value.code == "llamaswap: cannot listen on tcp:8080: it is taken"
