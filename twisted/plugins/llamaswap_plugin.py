"""Makes `llamaswap` a command of twistd."""

from __future__ import annotations

from twisted.application.service import ServiceMaker

llamaswap = ServiceMaker(
    "llamaswap", "llamaswap.tap", "One GPU, many models, many people: a proxy with priorities.", "llamaswap"
)
