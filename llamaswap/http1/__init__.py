"""HTTP/1.1 from socket to socket: a server, a client and the relay between them.

Nothing in here knows what the requests mean or who answers them.
"""

from __future__ import annotations
