"""Durations as people write them, on the command line or in a test; times as they read them, in UTC."""

import re
from datetime import datetime, timedelta

from kgroup.errors import ConfigError

_EPOCH = datetime(1970, 1, 1)  # naive: always UTC here
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

# Java's Duration.parse: days and times, each with a sign of its own; no weeks, months or years.
_ISO = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<d>[-+]?\d+)D)?"
    r"(?P<t>T(?:(?P<h>[-+]?\d+)H)?(?:(?P<m>[-+]?\d+)M)?(?:(?P<s>[-+]?\d+)(?:[.,](?P<f>\d{0,9}))?S)?)?",
    re.IGNORECASE,
)


def iso_duration_ms(text: str) -> int | None:
    """Return the ms of an ISO-8601 duration, such as `P1DT2H30M`, as Java reads it; None for other text.

    Raise ConfigError for one without a number.
    """
    match = _ISO.fullmatch(text)
    if not match:
        return None
    if (match["t"] or "") in ("T", "t") or not any(match[unit] for unit in "dhms"):
        raise ConfigError(f"{text!r} is not a duration", "for example PT2H30M or P7D")
    total = sum(
        int(match[unit] or 0) * ms
        for unit, ms in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))
    )
    fraction = int((match["f"] or "").ljust(9, "0")) // 1_000_000
    total += -fraction if (match["s"] or "").startswith("-") else fraction
    return -total if match["sign"] == "-" else total


def parse_duration(text: str) -> float:
    """Return the seconds of `250ms`, `30s`, `5m`, `2h`, `1d`; a bare number is ms. Raise ConfigError."""
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


def duration_with_unit(text: str) -> float:
    """Return the seconds of `parse_duration`; raise ConfigError for a bare number, too."""
    seconds = parse_duration(text)
    number = text.strip()
    if not number[-1:].isalpha():
        raise ConfigError(f"{text!r} has no unit", f"write {number}s, or {number}ms")
    return seconds


def iso(ms: int) -> str | None:
    """Return `2026-03-01T03:00:00.123Z`; None for an unknown time (below 0) or one in no calendar."""
    moment = _moment(ms) if ms >= 0 else None
    return None if moment is None else moment.isoformat(timespec="milliseconds") + "Z"


def utc(ms: int) -> str:
    """Return `2026-03-01T03:00:00Z`; the number where it is in no calendar."""
    moment = _moment(ms)
    return f"{ms} ms" if moment is None else moment.isoformat(timespec="seconds") + "Z"


def _moment(ms: int) -> datetime | None:
    # Not fromtimestamp: a record may carry any number, and a year beyond 9999 must not crash.
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None
