"""Lets `twistd --reactor llamaswap` run on the quick reactor."""

from __future__ import annotations

from twisted.application.reactors import Reactor

quick = Reactor("llamaswap", "llamaswap.polling", "epoll, with less done around each event.")
