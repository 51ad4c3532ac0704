"""The upstream of the corpus: answers as its callers ask it to, and records every request.

Run as a program, by models and as a peer:

    --port N             where it listens
    --name TEXT          what it says it is
    --record FILE        where it notes requests, one JSON object a line; several stubs may share it
    --load SECONDS       until then, health is 503
    --health PATH        instead of /health; probes are not noted
    --say TEXT           a line for standard output, at start
    --code N             exit with it at once
    --slow-term SECONDS  how long it takes to end after SIGTERM
    --ignore-term        it does not

A request says in its `X-Stub` field, as JSON, what it wants:

    status, reason       instead of `200 Stub`
    headers              [[name, value], ...], added; `ct` is the Content-Type, "" for none
    body, b64, fill      text, bytes in base64, or so many bytes
    gzip                 compressed
    length               a Content-Length that is not true
    chunks, gap          pieces, and the seconds after each
    trailers             [[name, value], ...] after the pieces
    delay                seconds before the head
    info                 103 first
    early                before the head: `exit`, `reset` or `close`
    end                  the same after the body
    refuse               do not upgrade

Without it, the answer is JSON: its name, the path, and that all is well.  An upgrade is granted, and every
piece of data comes back as `<data>`, until one ends in `bye`.

Hundreds are started in one run, so it imports little: no argparse, no dataclasses, no pathlib.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

PIECE = 65536
LONGEST_NOTE = 50_000  # bytes of a body that are noted; of a longer one, only its size is
WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3


class Options:
    """The command line."""

    def __init__(self, words: list[str]) -> None:
        given: dict[str, str] = {}
        rest = iter(words)
        for word in rest:
            name = word.removeprefix("--")
            given[name] = "" if name == "ignore-term" else next(rest)
        self.port = int(given.get("port", "0"))
        self.name = given.get("name", "")
        self.record = given.get("record")
        self.load = float(given.get("load", "0"))
        self.health = given.get("health", "/health")
        self.say = given.get("say")
        self.code = int(given["code"]) if "code" in given else None
        self.slow_term = float(given.get("slow-term", "0"))
        self.ignore_term = "ignore-term" in given


class Request:
    """One request, its body read."""

    def __init__(self, head: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, self.protocol = lines[0].split(" ", 2)
        split = [line.partition(":") for line in lines[1:]]
        self.headers = [[name, value.strip()] for name, _, value in split]
        self.body = b""
        self.framing = "none"

    def get(self, name: str) -> str:
        """Return the first value of a field, '' for none."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def wishes(self) -> dict[str, Any]:
        """What `X-Stub` says."""
        try:
            wishes: dict[str, Any] = json.loads(self.get("x-stub") or "{}")
        except ValueError:
            return {}
        return wishes

    @property
    def upgrades(self) -> bool:
        """Whether it asks for another protocol."""
        return "upgrade" in self.get("connection").lower() and self.get("upgrade") != ""

    def note(self) -> dict[str, Any]:
        """What is recorded of it."""
        note: dict[str, Any] = {
            "line": f"{self.method} {self.target}",
            "proto": self.protocol,
            "headers": self.headers,
            "framing": self.framing,
            "size": len(self.body),
        }
        if len(self.body) >= LONGEST_NOTE:
            return {**note, "body": "..."}
        try:
            return {**note, "body": self.body.decode()}
        except UnicodeDecodeError:
            return {**note, "body_b64": base64.b64encode(self.body).decode()}


class Stub:
    """What all connections share."""

    def __init__(self, options: Options) -> None:
        self.name = options.name
        self.health = options.health
        self._ready_at = time.monotonic() + options.load
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._record = os.open(options.record, append, 0o600) if options.record else None

    def is_loaded(self) -> bool:
        """Whether its health is good."""
        return time.monotonic() >= self._ready_at

    def note(self, **facts: Any) -> None:
        """Record something, in one write, so that lines of several stubs do not mix."""
        if self._record is not None:
            os.write(self._record, (json.dumps({"model": self.name, **facts}) + "\n").encode())


class Connection:
    """One connection, on a thread of its own."""

    def __init__(self, wire: socket.socket, stub: Stub) -> None:
        self._wire = wire
        self._stub = stub
        self._buffer = b""

    def serve(self) -> None:
        """Answer until somebody hangs up."""
        try:
            while self._answer_next():
                pass
        except (EOFError, OSError):
            pass
        finally:
            self._wire.close()

    def _more(self) -> None:
        piece = self._wire.recv(PIECE)
        if not piece:
            raise EOFError
        self._buffer += piece

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._more()
        before, _, self._buffer = self._buffer.partition(mark)
        return before

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _answer_next(self) -> bool:
        """Serve one request; returns whether another may follow."""
        request = Request(self._until(b"\r\n\r\n"))
        if request.method == "GET" and request.target == self._stub.health and not request.get("x-stub"):
            return self._probe()
        self._read_body(request)
        self._stub.note(**request.note())
        wishes = request.wishes
        if request.upgrades and not wishes.get("refuse"):
            return self._tunnel(request)
        self._break_off(wishes.get("early"))
        if wishes.get("info"):
            self._wire.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n")
        time.sleep(wishes.get("delay", 0))
        return self._answer(request, wishes)

    def _probe(self) -> bool:
        status = b"200 OK" if self._stub.is_loaded() else b"503 Busy"
        fields = b"Content-Type: application/json\r\nContent-Length: 2\r\n"
        self._wire.sendall(b"HTTP/1.1 %s\r\n%s\r\n{}" % (status, fields))
        return True

    def _read_body(self, request: Request) -> None:
        if request.get("expect").lower() == "100-continue":
            self._wire.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in request.get("transfer-encoding").lower():
            request.framing = "chunked"
            while size := int(self._until(b"\r\n").partition(b";")[0], 16):
                request.body += self._take(size)
                self._take(2)
            while self._until(b"\r\n"):
                pass
        elif length := request.get("content-length"):
            request.framing = "length"
            request.body = self._take(int(length))

    def _tunnel(self, request: Request) -> bool:
        from hashlib import sha1

        accept = base64.b64encode(sha1(request.get("sec-websocket-key").encode() + WEBSOCKET).digest())
        self._wire.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %s\r\nX-Up: ws\r\n\r\n" % (request.get("upgrade").encode(), accept)
        )
        while not self._buffer.endswith(b"bye"):
            if self._buffer:
                self._wire.sendall(b"<" + self._buffer + b">")
                self._buffer = b""
            self._more()
        self._wire.sendall(b"<" + self._buffer + b">")
        return False

    def _answer(self, request: Request, wishes: dict[str, Any]) -> bool:
        status = wishes.get("status", 200)
        body, encoding = self._body(request, wishes)
        chunks = wishes.get("chunks")
        fields = [["Content-Type", wishes.get("ct", "application/json")], *wishes.get("headers", [])]
        fields = [field for field in fields if field != ["Content-Type", ""]] + encoding
        if chunks is not None:
            fields.append(["Transfer-Encoding", "chunked"])
            if "trailers" in wishes:
                fields.append(["Trailer", ", ".join(name for name, _ in wishes["trailers"])])
        elif status not in (204, 304):
            fields.append(["Content-Length", str(wishes.get("length", len(body)))])
        start = f"HTTP/1.1 {status} {wishes.get('reason', 'Stub')}\r\n"
        self._wire.sendall((start + _lines(fields) + "\r\n").encode("latin-1"))
        if request.method == "HEAD" or status in (204, 304):
            return True
        if chunks is not None:
            return self._stream(chunks, wishes)
        self._wire.sendall(body)
        self._break_off(wishes.get("end"))
        return "length" not in wishes

    def _body(self, request: Request, wishes: dict[str, Any]) -> tuple[bytes, list[list[str]]]:
        """The whole body, and the field that tells its encoding."""
        if "b64" in wishes:
            body = base64.b64decode(wishes["b64"])
        elif "body" in wishes:
            body = wishes["body"].encode()
        elif "fill" in wishes:
            body = b"x" * wishes["fill"]
        else:
            body = json.dumps({"model": self._stub.name, "path": request.target, "ok": True}).encode()
        if not wishes.get("gzip"):
            return body, []
        import gzip

        return gzip.compress(body, mtime=0), [["Content-Encoding", "gzip"]]

    def _stream(self, chunks: list[str], wishes: dict[str, Any]) -> bool:
        for piece in map(str.encode, chunks):
            self._wire.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            time.sleep(wishes.get("gap", 0))
        self._break_off(wishes.get("end"))
        self._wire.sendall(b"0\r\n" + _lines(wishes.get("trailers", [])).encode() + b"\r\n")
        return True

    def _break_off(self, how: str | None) -> None:
        if not how:
            return
        time.sleep(0.1)  # what was sent so far shall arrive first
        if how == "exit":
            os._exit(3)
        if how == "reset":  # lingering for no time: the kernel sends a reset
            self._wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        raise EOFError


def _lines(fields: list[list[str]]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in fields)


def _obey_sigterm(options: Options) -> None:
    def end(*_: object) -> None:
        time.sleep(options.slow_term)
        os._exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if options.ignore_term else end)


def _end_with(parent: int) -> NoReturn:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def main(words: list[str]) -> None:
    """Start and serve for ever."""
    options = Options(words)
    if options.say is not None:
        sys.stdout.write(options.say + "\n")
        sys.stdout.flush()
    if options.code is not None:
        os._exit(options.code)
    _obey_sigterm(options)
    stub = Stub(options)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with socket.create_server(("127.0.0.1", options.port), backlog=256) as door:
        while True:
            wire, _ = door.accept()
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=Connection(wire, stub).serve, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1:])
