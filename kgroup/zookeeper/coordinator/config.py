"""The coordinator's settings; the draft names few of them and gives no defaults (era 11)."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from kgroup.errors import ConfigError
from kgroup.numbers import whole_number

_LEAST = {"commit_interval_ms": 100, "zk_session_ms": 600, "max_multi_ops": 2, "join_window_ms": 0}
"""The least value where 1 is too low: a commit every ms or leases shorter than a round trip are mistakes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyConfig:
    """Settings of one broker's coordinator, times in ms; ConfigError for values it cannot work with."""

    rebalancers: int = 4
    queue_size: int = 1000
    min_session_ms: int = 1000
    max_session_ms: int = 30_000
    max_failed_pings: int = 3
    commit_interval_ms: int = 10_000
    max_rebalance_retries: int = 4
    rebalance_backoff_ms: int = 2000
    retry_endless: bool = False
    zk_session_ms: int = 6000
    empty_group_ms: int = 600_000
    join_window_ms: int = 0
    max_multi_ops: int = 500
    max_multi_bytes: int = 512 * 1024
    max_frame_bytes: int = 1024 * 1024
    max_outbound_bytes: int = 1024 * 1024
    header: bool = False
    commit: bool = False

    def __post_init__(self) -> None:
        for setting in fields(self):
            value, least = getattr(self, setting.name), _LEAST.get(setting.name, 1)
            if not isinstance(value, bool) and value < least:
                # With 0, partitions would move before a paused consumer has stopped (era 5.4).
                raise ConfigError(f"{setting.name}={value} is below the least value {least}")
        if self.min_session_ms >= self.max_session_ms:
            raise ConfigError(
                f"min_session_ms={self.min_session_ms} must be less than max_session_ms={self.max_session_ms}"
            )


def read_settings(given: Mapping[str, str]) -> LegacyConfig:
    """Return the settings given; ConfigError for an unknown name or an invalid value."""
    defaults = LegacyConfig()
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name not in {setting.name for setting in fields(LegacyConfig)}:
            known = ", ".join(setting.name for setting in fields(LegacyConfig))
            raise ConfigError(f"the legacy coordinator has no setting {name!r}", f"one of {known}")
        if isinstance(getattr(defaults, name), bool):
            if text not in ("true", "false"):
                raise ConfigError(f"{name}={text} is neither true nor false")
            values[name] = text == "true"
        else:
            values[name] = whole_number(text, name)
    return LegacyConfig(**values)
