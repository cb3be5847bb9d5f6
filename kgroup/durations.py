"""Durations as people write them: on the command line, in a test, in a request to the control port."""

from kgroup.errors import ConfigError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Seconds of `250ms`, `30s`, `5m`, `2h`, `1d`; a bare number is milliseconds. ConfigError otherwise."""
    value = text.strip().lower()
    number = value.rstrip("hmsd")
    unit = value[len(number) :] or "ms"
    try:
        seconds = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        raise ConfigError(f"{text!r} is not a duration", "write 250ms, 30s, 5m or 2h") from None
    if not 0 <= seconds < float("inf"):
        raise ConfigError(f"{text!r} is not a duration", "a duration is not negative and finite")
    return seconds
