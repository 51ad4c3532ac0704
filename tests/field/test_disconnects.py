"""Cases from the field: clients that leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.field import Field
from support.field_client import Leave
from support.field_scale import Scale
from support.real_daemon_processes import probe_timers

pytestmark = pytest.mark.integration

STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@STREAMS
@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("begun", [False, True], ids=["before the first byte", "in the middle"])
def test_case_062_who_leaves_frees_the_server_at_once(
    how: Leave, stream: bool, begun: bool, tmp_path: Path
) -> None:
    # The next one evicts its server at once; it lingers for as long as it takes to write down why.
    with Field(tmp_path, {"A": "--term-lag 0.3", "B": ""}) as field:
        wish = {"tokens": 100, "gap": 0.2} if begun else {"first": 20}
        gone = field.send("A", stream=stream, stub=wish, tag="gone")
        field.until(lambda: field.records("arrived", tag="gone"), "its arrival")
        if begun and stream:
            field.until(lambda: gone.text, "its first words")
        following = field.send("B")
        field.until(lambda: field.daemon.waiting() == 1, "the next one to wait")

        gone.leave(how, after=0.2).wait()
        left_at = gone.client.left_at
        assert left_at is not None
        field.until(lambda: field.records("request", tag="gone"), "the stub to see that", 5.0)
        (note,) = field.records("request", tag="gone")
        assert note["left"]
        assert 0.0 <= note["at"] - left_at < 1.0
        assert following.wait(10.0).wrong() == ""
        (arrival,) = field.records("arrived", "B")
        assert arrival["at"] - left_at < 2.0
        assert len(field.rows(2)) == 2


@pytest.mark.lasts(seconds=30)
@STREAMS
def test_case_062_who_closes_only_its_own_side_is_answered(
    stream: bool, tmp_path: Path, scale: Scale
) -> None:
    silence = scale.seconds(20.0, 2.0)
    with Field(tmp_path, {"A": "", "B": ""}) as field:
        half = field.send("A", stream=stream, stub={"first": silence, "tokens": 10, "gap": 0.05}, tag="half")
        field.until(lambda: field.records("arrived", tag="half"), "its arrival")

        half.leave("half")

        assert half.wait(silence + 10.0).wrong() == ""
        assert half.took >= silence
        (note,) = field.records("request", tag="half")
        assert not note["left"]


@STREAMS
def test_case_062_who_closes_only_its_own_side_while_queued_is_answered(stream: bool, tmp_path: Path) -> None:
    with Field(tmp_path, {"A": "", "B": ""}) as field:
        running = field.send("A", stub={"first": 1.0}, tag="running")
        field.until(lambda: field.records("arrived", tag="running"), "its arrival")
        queued = field.send("B", stream=stream)
        field.until(lambda: field.daemon.waiting() == 1, "the next one to wait")

        queued.leave("half")

        assert running.wait().wrong() == ""
        assert queued.wait().wrong() == ""


def test_who_vanishes_without_a_word_is_noticed_within_two_minutes(tmp_path: Path) -> None:
    """Nothing comes from a machine that has lost its power or its network, be it a client's or a server's."""
    with Field(tmp_path, {"A": "", "B": ""}) as field:
        running = field.send("A", stub={"hang": True}, tag="running")
        field.until(lambda: field.records("arrived", tag="running"), "its arrival")
        queued = field.send("B")
        field.until(lambda: field.daemon.waiting() == 1, "the next one to wait")

        # Two clients, one model's server.
        field.until(lambda: len(probe_timers(field.daemon.pid)) >= 3, "all connections to be silent")
        assert max(probe_timers(field.daemon.pid)) <= 30

        running.leave()
        assert queued.wait(10.0).wrong() == ""
