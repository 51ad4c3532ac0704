"""Profiles: sets of pins, one of which may be switched on while the daemon runs.

Pure.  A pin sends a requested name to another one, once, before anything else
looks at it.  Who is told of a change is the caller's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from llamaswap.config.model import ProfileConfig
from llamaswap.errors import BadRequest, Refusal

JsonObject = dict[str, Any]


class ProfileNotFound(Refusal):
    """There is no profile of this name."""

    status = 404

    def __init__(self, name: str) -> None:
        super().__init__(f"profile {json.dumps(name, ensure_ascii=False)} not found")


@dataclass(frozen=True, slots=True)
class Pin:
    """What an active pin says."""

    name: str
    target: str  # '' = requests for the name are refused


class ActiveProfile:
    """The profiles of a configuration, and which one is on; none at first."""

    def __init__(self, profiles: Mapping[str, ProfileConfig]) -> None:
        self._profiles = profiles
        self._active: ProfileConfig | None = None

    @property
    def active(self) -> str | None:
        """The name of the profile that is on."""
        return None if self._active is None else self._active.id

    @property
    def pins(self) -> Mapping[str, str]:
        """Requested name to target, '' for a disabled one; empty while no profile is on."""
        return {} if self._active is None else self._active.pins

    def pin(self, name: str) -> Pin | None:
        """Return the pin of exactly this name, if it is on."""
        if self._active is None:
            return None
        target = self._active.pins.get(name)
        return None if target is None else Pin(name, target)

    def pin_in_path(self, path: str) -> Pin | None:
        """Return the longest pin that a path (decoded, no leading slash) begins with, whole segments only."""
        found = [name for name in self.pins if path == name or path.startswith(name + "/")]
        return self.pin(max(found, key=len)) if found else None

    def switch(self, name: str | None) -> bool:
        """Switch a profile on, or all off with None.

        Returns:
            Whether that is a change.

        Raises:
            ProfileNotFound: nothing has changed.
        """
        if name is not None and name not in self._profiles:
            raise ProfileNotFound(name)
        before = self.active
        self._active = None if name is None else self._profiles[name]
        return name != before

    def listing(self) -> JsonObject:
        """Return the answer of `GET /api/profiles`, sorted by name."""
        profiles = [
            {"id": profile.id, "description": profile.description, "pins": dict(sorted(profile.pins.items()))}
            for _, profile in sorted(self._profiles.items())
        ]
        return {"active": self.active, "profiles": profiles}

    def standing(self) -> JsonObject:
        """Return the answer of `PUT /api/profiles/active`, also what an event says of it."""
        return {"active": self.active}


def requested_profile(body: bytes) -> str | None:
    """Read the body of `PUT /api/profiles/active`; None asks for no profile.

    Raises:
        BadRequest: it is no JSON object, lacks `name`, or that is neither text nor null.
    """
    try:
        asked = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadRequest("invalid profile request") from error
    if asked is not None and not isinstance(asked, dict):
        raise BadRequest("invalid profile request")
    if asked is None or "name" not in asked:
        raise BadRequest("profile name is required")
    name = asked["name"]
    if name is not None and not isinstance(name, str):
        raise BadRequest("profile name must be a string or null")
    return name or None
