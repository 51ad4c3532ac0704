"""Which model a name means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from llamaswap.config.model import Config, ModelConfig


class Catalog:
    """The names that clients may use: ids first, then aliases; exact and case-sensitive."""

    def __init__(self, config: Config) -> None:
        self._models = config.models
        self._names = config.names
        self._longest_name = max(map(len, (*config.models, *config.names)), default=0)

    @property
    def models(self) -> Mapping[str, ModelConfig]:
        """Every local model by id, sorted."""
        return self._models

    def find(self, name: str) -> ModelConfig | None:
        """Return the model that a requested name means, or None."""
        model = self._models.get(name)
        return model if model is not None else self._models.get(self._names.get(name, ""))

    def find_in_path(self, path: str) -> ModelConfig | None:
        """Return the model that a path begins with: the longest leading run of segments that is a name.

        Args:
            path: decoded, without a leading slash; ids may contain slashes.
        """
        found = map(self.find, beginnings(path, self._longest_name))
        return next((model for model in found if model is not None), None)


def beginnings(path: str, longest: int) -> Iterator[str]:
    """Yield what a path begins with, whole segments only, the longest first.

    Args:
        longest: characters of a name; trying longer ones would cost the square of the path's length.
    """
    end = len(path) if len(path) <= longest else path.rfind("/", 0, longest + 1)
    while end >= 0:
        yield path[:end]
        end = path.rfind("/", 0, end)
