"""What a killed daemon leaves of a UNIX socket that it listened on, told from what is in use.

Twisted writes the number of its process beside the socket, and later takes any process of that number for the
one that listens.  In a container it is the same number each time.  So the socket itself is asked.
"""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from pathlib import Path

_PATH = re.compile(r"unix:(?:address=)?((?:[^:\\]|\\.)+)")


def clear(description: str) -> None:
    """Remove the socket of a UNIX endpoint, and the lock beside it, if nobody listens there any more.

    Args:
        description: an endpoint's; of any other kind, and without a lock, nothing is done.
    """
    match = _PATH.match(description)
    if match is None:
        return
    path = Path(re.sub(r"\\(.)", r"\1", match[1]))
    lock = path.with_name(f"{path.name}.lock")
    if lock.is_symlink() and (path.is_socket() or not path.exists()) and not _is_heard(path):
        with suppress(OSError):  # whoever may not remove it is told so by Twisted
            path.unlink(missing_ok=True)
            lock.unlink()


def _is_heard(path: Path) -> bool:
    """Return whether somebody listens on a socket; whatever keeps us from asking counts as somebody."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # there are even more who ask
            return True
    return True
