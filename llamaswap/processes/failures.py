"""What can become of a start or a stop that somebody waits for."""

from __future__ import annotations


class LoadFailed(Exception):
    """A model's server did not become ready."""

    def __init__(self, model: str, why: str, output: tuple[str, ...] = ()) -> None:
        """Say which and why.

        Args:
            why: one line, such as "upstream command exited prematurely".
            output: its last lines, oldest first; may be empty.
        """
        super().__init__(f"{model}: {why}")
        self.model = model
        self.why = why
        self.output = output


class ServerGone(Exception):
    """The server was shut down before; there is nothing to stop."""


class ServerStuck(Exception):
    """Something of the server is still there a minute after SIGKILL: it hangs in the kernel."""
