"""The command line for people who come from the Go program."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import llamaswap
from llamaswap import cli
from llamaswap.cli import BadFlags, main, parse_flags
from support.daemon import write_config
from support.real_daemon_talk import ask

ONE_MODEL = 'models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}'
PATIENCE = 30.0  # seconds for a process on a busy machine


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("", {}),
        ("-config a.yaml", {"config": "a.yaml"}),
        ("--config a.yaml", {"config": "a.yaml"}),
        ("-config=a.yaml", {"config": "a.yaml"}),
        ("--config=a=b.yaml", {"config": "a=b.yaml"}),
        ("-config a -config b", {"config": "b"}),
        ("-config -listen", {"config": "-listen"}),
        ("-config=", {"config": ""}),
        ("-config-dir d", {"config-dir": "d"}),
        ("-tls-cert-file c --tls-key-file=k", {"tls-cert-file": "c", "tls-key-file": "k"}),
        ("-config a word -config b", {"config": "a"}),
        ("-config a -- -config b", {"config": "a"}),
        ("-config a - -config b", {"config": "a"}),
    ],
)
def test_flags_are_read_as_go_reads_them(words: str, values: dict[str, str]) -> None:
    assert parse_flags(words.split()).values == values


@pytest.mark.parametrize(
    ("words", "on"),
    [
        ("-version", True),
        ("--version", True),
        ("-version=true", True),
        ("-version=1", True),
        ("-version=false", False),
        ("-version -version=0", False),
        ("", False),
        ("word -version", False),
    ],
)
def test_a_switch_is_on_when_it_is_named_unless_it_says_otherwise(words: str, *, on: bool) -> None:
    assert parse_flags(words.split()).is_on("version") is on


def test_addresses_may_be_repeated() -> None:
    assert parse_flags(["-listen", ":1", "--listen=:2"]).listen == [":1", ":2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-config", "flag needs an argument: -config"),
        ("-listen", "flag needs an argument: -listen"),
        ("-nonsense", "flag provided but not defined: -nonsense"),
        ("---config a", "flag provided but not defined: --config"),
        ("-version=maybe", "invalid boolean value"),
        ("-Config a", "flag provided but not defined: -Config"),
    ],
)
def test_a_bad_flag_is_named(words: str, message: str) -> None:
    with pytest.raises(BadFlags, match=message):
        parse_flags(words.split())


def leaves(*words: str) -> int | str | None:
    """The exit code with which the program leaves."""
    with pytest.raises(SystemExit) as leaving:
        main(words)
    return leaving.value.code


def test_a_bad_flag_leaves_with_2_and_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert leaves("-nonsense") == 2

    said = capsys.readouterr()
    assert said.err.startswith("flag provided but not defined: -nonsense\nusage: ")
    assert said.out == ""


@pytest.mark.parametrize("word", ["validat", "config.yaml"])
def test_a_first_word_that_is_no_command_is_named(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert leaves(word, "more") == 2

    (first, *_) = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{word!r} is no command (dump, ")
    assert first.endswith("a configuration is named with --config")


def test_the_version_and_the_usage_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["-version"])
    assert capsys.readouterr().out.startswith(f"version: {llamaswap.__version__} ")

    main(["-h"])
    assert "-config FILE" in capsys.readouterr().out


def test_every_mistake_of_a_configuration_is_a_line_and_the_exit_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(
        tmp_path, "healthCheckTimeout: soon\nmodels: {a: {cmd: serve, proxy: 'http://h:1', ttl: x}}"
    )

    assert leaves("-config", str(path)) == 1

    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert [line.startswith(f"{path}:{number}:") for number, line in enumerate(lines, 1)] == [True, True]
    assert "healthCheckTimeout" in lines[0]
    assert "models.a.ttl" in lines[1]
    assert said.out == ""


def test_an_address_that_means_nothing_is_one_line_and_the_exit_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leaves("-config", str(write_config(tmp_path, ONE_MODEL)), "-listen", "http://h") == 1

    assert capsys.readouterr().err.count("\n") == 1


def test_a_question_that_takes_too_long_can_be_interrupted_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run", interrupted)

    assert leaves("tune", "--trace", "t.csv") == 130
    assert capsys.readouterr().err == ""


def asked(redirection: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the program below a shell that does something to its output."""
    program = "from llamaswap.cli import main; main()"
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-c", program, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=Path(llamaswap.__file__).parents[1],
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("words", [("schema",), ("-version",), ("-h",)], ids=str)
def test_an_answer_that_cannot_be_written_is_told_in_one_line(words: tuple[str, ...]) -> None:
    ended = asked(">/dev/full", *words)

    assert (ended.returncode, ended.stderr) == (1, "cannot write the answer: No space left on device\n")


@pytest.mark.parametrize("redirection", ["| true", ">&-", ">&- 2>&-"])
def test_whoever_does_not_read_an_answer_is_told_nothing(redirection: str) -> None:
    assert asked(redirection, "schema").stderr == ""


def test_a_mistake_is_the_exit_code_although_nobody_can_read_of_it() -> None:
    assert asked(">&- 2>&-", "dump", "no/such/config.yaml").returncode == 1


def test_a_name_that_the_terminal_cannot_show_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    config = write_config(tmp_path, "models: {ü: {cmd: serve, proxy: 'http://h:1', ttl: soon}}")

    ended = asked("", "validate", config)

    assert (ended.returncode, ended.stderr) == (1, "")
    assert r"models.\xfc.ttl: expected seconds" in ended.stdout


def start(config: Path, listen: str) -> subprocess.Popen[str]:
    """Start the program in a process of its own."""
    program = "from llamaswap.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, "-config", str(config), "-listen", listen],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(llamaswap.__file__).parents[1],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )


def test_a_taken_port_is_one_line_and_the_exit_code_is_1(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        process = start(write_config(tmp_path, ONE_MODEL), f"127.0.0.1:{port}")
        out, err = process.communicate(timeout=PATIENCE)

    assert process.returncode == 1
    assert err.count("\n") == 1
    assert f"cannot listen on tcp:{port}:interface=127.0.0.1:" in err
    assert "Address already in use" in err
    assert "Traceback" not in out


def test_what_is_printed_is_what_the_configuration_asks_for_and_a_sigterm_is_no_error(tmp_path: Path) -> None:
    config = write_config(tmp_path, f"logLevel: error\n{ONE_MODEL}")
    port = _free_port()
    process = start(config, f"127.0.0.1:{port}")
    _wait_for(process, port)

    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, out, err) == (0, "", "")


def test_the_last_words_are_printed_too_and_in_order(tmp_path: Path) -> None:
    port = _free_port()
    process = start(write_config(tmp_path, ONE_MODEL), f"127.0.0.1:{port}")
    _wait_for(process, port)

    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE)

    said = [
        name
        for line in out.splitlines()
        for name in ("service.started", '"GET /health HTTP/1.1" 200', "service.stopping", "service.stopped")
        if name in line
    ]
    assert said == ["service.started", '"GET /health HTTP/1.1" 200', "service.stopping", "service.stopped"]
    assert (process.returncode, err) == (0, "")


def test_a_daemon_whose_reader_has_gone_serves_on(tmp_path: Path) -> None:
    port = _free_port()
    process = start(write_config(tmp_path, ONE_MODEL), f"127.0.0.1:{port}")
    _wait_for(process, port)
    assert process.stdout is not None
    process.stdout.close()

    for _ in range(3):
        _wait_for(process, port)

    assert process.poll() is None
    process.kill()
    assert process.stderr is not None
    process.stderr.close()
    process.wait(timeout=PATIENCE)


def test_a_daemon_whose_reader_has_stopped_reading_serves_on_and_can_be_stopped(tmp_path: Path) -> None:
    port = _free_port()
    process = start(write_config(tmp_path, ONE_MODEL), f"127.0.0.1:{port}")
    _wait_for(process, port)
    assert process.stdout is not None
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)

    for _ in range(200):  # a line of the log each
        assert ask(port, "GET", "/health").status == 200

    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE) == 0
    out, err = process.communicate(timeout=PATIENCE)
    assert "service.started" in out
    assert err == ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(process: subprocess.Popen[str], port: int) -> None:
    """Wait until the process answers; its end is noticed, too."""
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                probe.settimeout(PATIENCE)
                probe.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
                if probe.recv(4096):
                    return
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(process.communicate())
