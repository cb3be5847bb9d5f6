"""Times on the command line and in its output: always UTC."""

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from kgroup.durations import duration_ms, iso
from kgroup.errors import ConfigError
from kgroup.numbers import is_whole, whole_number

_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?")
_AGO = re.compile(r"[0-9.]+[smhdw]|P", re.IGNORECASE)
_DAY_MS = 86_400_000


def parse_time(text: str, now_ms: int | None = None) -> int:
    """Return milliseconds since 1970; raise ConfigError for an unsupported `text`.

    Supported are ISO-8601 (UTC by default), a clock time (its last occurrence), a duration with its unit
    (that long ago), and milliseconds since 1970.
    """
    moment = _time(text, int(time.time() * 1000) if now_ms is None else now_ms)
    if moment < 0:
        raise ConfigError(f"{text!r} is before 1970", "the log has no older records")
    return moment


def _time(text: str, now: int) -> int:
    given = text.strip().removesuffix(" ago")
    if is_whole(given) and len(given) >= 12:
        return whole_number(given, "a time in ms since 1970")
    if _CLOCK.fullmatch(given):
        parts = [int(part) for part in given.split(":")]
        if parts[0] > 23 or any(part > 59 for part in parts[1:]):
            raise ConfigError(f"{given!r} is not a time of day")
        seconds = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
        last = now - now % _DAY_MS + seconds * 1000
        return last if last <= now else last - _DAY_MS
    if _AGO.match(given):
        return now - duration_ms(given)
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        hint = "write 2026-03-01T03:00, 03:00 (UTC) or 2h (two hours ago)"
        raise ConfigError(f"{text!r} is not a time", hint) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class Span:
    """A range from `since_ms` to `until_ms`, both included; None is unbounded. `note` explains hours."""

    since_ms: int | None = None
    until_ms: int | None = None
    note: str | None = None

    @property
    def bounded(self) -> bool:
        return self.since_ms is not None or self.until_ms is not None

    def holds(self, ms: int) -> bool:
        """Return whether a time lies in it; an unknown one (below 0) lies in no span that has a bound."""
        if not self.bounded:
            return True
        return max(self.since_ms or 0, 0) <= ms and (self.until_ms is None or ms <= self.until_ms)

    @property
    def text(self) -> str:
        """The span for people."""
        since = "the start" if self.since_ms is None else iso(self.since_ms)
        return f"{since} to {'the end' if self.until_ms is None else iso(self.until_ms)}"


def offset_or_time(text: str) -> tuple[int | None, int | None]:
    """Return an offset, which has fewer digits than a time in ms, or else a time; the other one is None."""
    if is_whole(text) and len(text) < 13:
        return whole_number(text, "an offset"), None
    return None, parse_time(text)


def parse_span(since: str | None, until: str | None, now_ms: int | None = None) -> Span:
    """Return the span of --since and --until; raise ConfigError if nothing can lie between them.

    A time of day is its last occurrence, which the span's `note` says.
    """
    now = int(time.time() * 1000) if now_ms is None else now_ms
    asked = {"--since": since, "--until": until}
    times = {option: parse_time(text, now) for option, text in asked.items() if text}
    read = [
        f"{option} {asked[option]} is {iso(moment)}"
        for option, moment in times.items()
        if _CLOCK.fullmatch((asked[option] or "").strip())
    ]
    note = ", ".join(read) + " (the last time it was that late, UTC)" if read else None
    first, last = times.get("--since"), times.get("--until")
    if first is not None and last is not None and first > last:
        moments = ", ".join(f"{option} {asked[option]} is {iso(moment)}" for option, moment in times.items())
        hint = f"{moments}; write the day, as in 2026-03-01T03:00"
        raise ConfigError("nothing lies between --since and --until: --since is the later one", hint)
    return Span(first, last, note)


def day_and_clock(ms: int) -> tuple[str, str]:
    """Return `2026-03-01` and `03:00:00.123`; dashes for an unknown time."""
    text = iso(ms)
    return (text[:10], text[11:-1]) if text else ("-", "-")
