"""Durations as people write them, on the command line or in a test; times as they read them, in UTC."""

import re
from datetime import datetime, timedelta

from kgroup.errors import ConfigError
from kgroup.numbers import is_whole

_EPOCH = datetime(1970, 1, 1)  # naive: always UTC here
_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_PARTS = re.compile("".join(rf"(?:(?P<{unit}>[0-9]+(?:\.[0-9]+)?){unit})?" for unit in _UNITS))
_WEEKS = re.compile(r"P([0-9]{1,9})W")
LONGEST_MS = 36_500 * _UNITS["d"]
FORMS = "write 250ms, 30s, 5m, 12h, 7d or 1h30m; or as ISO-8601: PT5M, P1W"
"""How a duration is written, for errors and help."""

# Java's Duration.parse: days and times, each with a sign of its own; no weeks, months or years.
_ISO = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<d>[-+]?[0-9]{1,18})D)?"
    r"(?P<t>T(?:(?P<h>[-+]?[0-9]{1,18})H)?(?:(?P<m>[-+]?[0-9]{1,18})M)?(?:(?P<s>[-+]?[0-9]{1,18})(?:[.,](?P<f>[0-9]{0,9}))?S)?)?",
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
    total = sum(int(match[unit] or 0) * ms for unit, ms in _UNITS.items() if unit in match.groupdict())
    fraction = int((match["f"] or "").ljust(9, "0")) // 1_000_000
    total += -fraction if (match["s"] or "").startswith("-") else fraction
    return -total if match["sign"] == "-" else total


def parse_duration(text: str, what: str = "") -> float:
    """Return the seconds of `250ms`, `30s`, `1h30m`, `7d`, `2w`, `PT5M` or `P1W`; raise ConfigError.

    `what` is the option or setting that the error names. A number without a unit is none, nor is `1M`.
    """
    ms = _milliseconds(text.strip())
    where = f"{what}: " if what else ""
    if ms is None and text.startswith("-") and _milliseconds(text[1:]) is not None:
        ms = -1
    if ms is None:
        why = "has no unit" if is_whole(text.strip()) else "is not a duration"
        raise ConfigError(f"{where}{text!r} {why}", FORMS)
    if ms < 0:
        raise ConfigError(f"{where}{text!r} is not a duration", "a duration is not negative")
    if ms > LONGEST_MS:
        raise ConfigError(f"{where}{text!r} is too long", "at most 36500d, a hundred years")
    return ms / 1000


def duration_ms(text: str, what: str = "") -> int:
    """Return the ms of a duration; raise ConfigError as `parse_duration`."""
    return round(parse_duration(text, what) * 1000)


def _milliseconds(text: str) -> float | None:
    """Return the ms of a duration in any of its forms; None for other text."""
    if weeks := _WEEKS.fullmatch(text):
        return int(weeks[1]) * _UNITS["w"]
    if _ISO.fullmatch(text):
        try:
            return iso_duration_ms(text)
        except ConfigError:
            return None
    parts = _PARTS.fullmatch(text)
    given = {unit: number for unit, number in parts.groupdict().items() if number} if parts else {}
    # More digits could overflow a float.
    if not given or any(len(number) > 40 for number in given.values()):
        return None
    return sum(float(number) * _UNITS[unit] for unit, number in given.items())


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
