"""Properties with the source of each, so that an error can say where to look."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgroup.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Given:
    """Values by name, and where each came from; a value of only spaces is none."""

    values: Mapping[str, str] = field(repr=False)
    origins: Mapping[str, str] = field(default_factory=dict)

    def get(self, *names: str) -> str | None:
        """Return the value of the first of these names that has one."""
        for name in names:
            value = self.values.get(name, "")
            if value.strip():
                return value
        return None

    def named(self, *names: str) -> str:
        """Return the first of these names that has a value, with its origin: `x (client.properties)`."""
        name = next((name for name in names if self.values.get(name, "").strip()), names[0])
        origin = self.origins.get(name)
        return f"{name} ({origin})" if origin else name

    def flag(self, *names: str, default: bool) -> bool:
        """Return a boolean as Java reads it; ConfigError for any other value."""
        value = self.get(*names)
        if value is None:
            return default
        if value.strip().lower() not in ("true", "false"):
            raise ConfigError(f"{self.named(*names)} is neither true nor false")
        return value.strip().lower() == "true"

    def number(self, *names: str, default: float, least: float = 0.0) -> float:
        """Return a number of at least `least`; ConfigError for any other value, never quoting it."""
        value = self.get(*names)
        if value is None:
            return default
        try:
            number = float(value)
        except ValueError:
            raise ConfigError(f"{self.named(*names)} is not a number") from None
        if not least <= number < float("inf"):
            raise ConfigError(f"{self.named(*names)} must be {least:g} or more")
        return number
