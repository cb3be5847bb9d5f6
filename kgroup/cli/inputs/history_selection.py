"""The selection of a command over `__consumer_offsets`: groups, time range, events and files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kgroup.cli.env.invocation import Env
from kgroup.cli.inputs.group_names import is_glob, matches
from kgroup.cli.output.times import Span, parse_span
from kgroup.domain import Document
from kgroup.durations import iso
from kgroup.errors import ConfigError
from kgroup.history.fold.events import Event, Kind


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected groups, and their selected events."""

    patterns: tuple[str, ...] = ()
    span: Span = Span()
    instances: frozenset[str] = frozenset()
    kinds: frozenset[Kind] = frozenset()
    collapse: bool = True

    @classmethod
    def of(
        cls,
        groups: Sequence[str] = (),
        since: str | None = None,
        until: str | None = None,
        kinds: str | None = None,
        instances: Sequence[str] = (),
        collapse: bool = True,
    ) -> "Selection":
        """Return the selection of the options; raise ConfigError for an invalid one."""
        chosen = {part.strip() for part in (kinds or "").split(",") if part.strip()}
        unknown = sorted(chosen - {kind.value for kind in Kind})
        if unknown:
            raise ConfigError(f"--events: there is no event {unknown[0]!r}", "one of " + ", ".join(Kind))
        return cls(
            patterns=tuple(groups),
            span=parse_span(since, until),
            instances=frozenset(instances),
            kinds=frozenset(Kind(name) for name in chosen),
            collapse=collapse,
        )

    @property
    def names(self) -> list[str] | None:
        """The group ids, if only ids were given; None when globs have to be matched."""
        if not self.patterns or any(map(is_glob, self.patterns)):
            return None
        return list(dict.fromkeys(self.patterns))

    @property
    def wanted(self) -> Callable[[str], bool] | None:
        """A predicate for groups, by glob; None for all groups, and for exact names (see `names`)."""
        if not self.patterns or self.names is not None:
            return None
        return Globs(self.patterns)

    def chosen(self, events: Sequence[Event]) -> list[Event]:
        """Return the selected events; gaps in the log are always included."""
        from kgroup.history.replay import chosen

        kept = chosen(
            events,
            since_ms=self.span.since_ms,
            until_ms=self.span.until_ms,
            instances=self.instances,
            kinds=self.kinds,
        )
        # By identity: a long story has a million events, and two of them are compared field by field.
        asked = set(map(id, kept))
        return [e for e in events if e.kind is Kind.LOG_COMPACTED or id(e) in asked]

    def outside(self, events: Sequence[Event]) -> "Outside":
        """Return how many selected events lie before and after the span, or have no time to place them."""
        if not self.span.bounded:
            return Outside()
        every = [e for e in replace(self, span=Span()).chosen(events) if e.group]
        since, until = self.span.since_ms, self.span.until_ms
        before = [e.last_ms for e in every if since is not None and 0 <= e.last_ms < since]
        after = [e.timestamp_ms for e in every if until is not None and e.timestamp_ms > until]
        untimed = sum(e.last_ms < 0 for e in every)
        return Outside(len(before), max(before, default=-1), len(after), min(after, default=-1), untimed)

    def span_json(self, events: Sequence[Event]) -> Document | None:
        """Return the span in a document, with how many events lie outside; None without a span."""
        if not self.span.bounded:
            return None
        since, until, out = self.span.since_ms, self.span.until_ms, self.outside(events)
        return {
            "since_ms": since,
            "since": None if since is None else iso(since),
            "until_ms": until,
            "until": None if until is None else iso(until),
            "events_before": out.before,
            "events_after": out.after,
            "events_without_time": out.untimed,
        }


@dataclass(frozen=True, slots=True)
class Outside:
    """Events outside of a span: how many, and when (ms) the nearest ones were, -1 for none.

    For the `untimed` it is unknown whether they are outside.
    """

    before: int = 0
    last_before_ms: int = -1
    after: int = 0
    first_after_ms: int = -1
    untimed: int = 0

    @property
    def text(self) -> str:
        """The position of the events, for people; "" if there are none outside."""
        parts = [f"{self.before} before it, the last at {iso(self.last_before_ms)}"] if self.before else []
        parts += [f"{self.after} behind it, the first at {iso(self.first_after_ms)}"] if self.after else []
        parts += [f"{self.untimed} without a time"] if self.untimed else []
        return " and ".join(parts)


def without_paths(names: Sequence[str], files: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return groups and files as intended: a shell expands `--files backup/*.log` to several words.

    With --files given, a name that is a segment on this disk, or a folder of them, is one more of the files.
    """
    if not files:
        return list(names), []
    from kgroup.history.sources.logs import looks_like_segments

    more = [name for name in names if looks_like_segments(name)]
    return [name for name in names if name not in more], [*files, *more]


def note_span(env: Env, selection: Selection) -> None:
    """Report which day a time of day was taken for: another may have been meant."""
    if selection.span.note:
        env.note(selection.span.note)


@dataclass(frozen=True, slots=True)
class Globs:
    """A predicate whether one of the patterns matches a group; a value, as it is sent to other processes."""

    patterns: tuple[str, ...]

    def __call__(self, group: str) -> bool:
        return any(matches(pattern, group) for pattern in self.patterns)
