"""What the kernel says about processes, asked about this one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

from bench.accounting import (
    children,
    command_line,
    cpu_seconds,
    listeners,
    rss_kib,
    thread_cpu_seconds,
    voluntary_switches,
)

ME = os.getpid()


def work(seconds: float) -> None:
    """Use so much processor time in this thread."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_processor_time_is_what_the_process_itself_is_told() -> None:
    before = time.process_time()
    seen = cpu_seconds([ME])
    after = time.process_time()

    assert before <= seen <= after


def test_threads_that_have_ended_are_counted() -> None:
    before = cpu_seconds([ME])

    thread = threading.Thread(target=work, args=(0.05,))
    thread.start()
    thread.join()
    # Python says that a thread has ended a moment before the kernel does.
    until = time.monotonic() + 10
    while thread.native_id in thread_cpu_seconds(ME) and time.monotonic() < until:
        time.sleep(0.001)

    assert thread.native_id not in thread_cpu_seconds(ME)
    assert cpu_seconds([ME]) - before >= 0.05


def test_each_thread_has_its_own_share() -> None:
    before = thread_cpu_seconds(ME)[threading.get_native_id()]

    work(0.05)

    # The kernel writes a running thread's time down at its ticks.
    assert thread_cpu_seconds(ME)[threading.get_native_id()] - before >= 0.03


def test_going_to_sleep_is_counted() -> None:
    me = threading.get_native_id()
    before = voluntary_switches(ME)[me]

    for _ in range(10):
        time.sleep(0.001)

    assert voluntary_switches(ME)[me] - before >= 10


def test_memory_that_is_touched_is_seen() -> None:
    before = rss_kib(ME)

    kept = bytearray(os.urandom(1) * (64 << 20))

    assert rss_kib(ME) - before > 60 << 10
    assert len(kept) == 64 << 20


def test_a_child_is_found_with_its_words() -> None:
    words = [sys.executable, "-c", "import sys; sys.stdin.read()", "a b"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as child:
        assert child.pid in children(ME)
        assert command_line(child.pid) == words

    assert child.pid not in children(ME)
    assert command_line(child.pid) == []


def test_who_listens_on_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            assert listeners(port) == [ME]

    assert listeners(port) == []
