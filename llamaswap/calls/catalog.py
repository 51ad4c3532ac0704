"""Which model a name means."""

from __future__ import annotations

from collections.abc import Mapping

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

    def find_in_path(self, path: str) -> tuple[ModelConfig, str] | None:
        """Find the model that a path begins with: the longest leading run of segments that is a name.

        Args:
            path: decoded, without a leading slash; ids may contain slashes.

        Returns:
            The model and the length-preserving name as it was found, or None.
        """
        end = len(path)
        if end > self._longest_name:
            # Longer beginnings are no names; trying each of them would cost the square of the path's length.
            end = path.rfind("/", 0, self._longest_name + 1)
        while end >= 0:
            name = path[:end]
            model = self.find(name)
            if model is not None:
                return model, name
            end = path.rfind("/", 0, end)
        return None
