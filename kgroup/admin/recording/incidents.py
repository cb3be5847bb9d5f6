"""Incidents: what turned bad, from its first two looks to the two looks that no longer show it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgroup.admin.recording.causes import BROKERS, DOWN, NO_RECORD, Bad
from kgroup.admin.recording.lines import CLOSED, OPEN, OPENED, UPDATED, Incident
from kgroup.admin.recording.look import ABSENT, Look
from kgroup.admin.statuses import ERROR
from kgroup.domain import grouped

LOOKS = 2
"""The number of looks in a row that open an incident, or close it."""
BACK_MS = 600_000
"""An incident that comes back so soon is the same one: what `doctor` compares with may change meanwhile."""
GROUPS, EVIDENCE = 200, 12
"""The number of groups and facts that an incident names."""


@dataclass(frozen=True, slots=True)
class Incidents:
    """The open incidents by cause, what may become one, which are about to end. `number` counts changes.

    What may become one has the number of looks that showed it, the time of the first, and what that showed.
    `closed` are those that may come back, `blind` is what was unseen of the groups as an incident was shown.
    """

    open: Mapping[str, Incident] = field(default_factory=dict)
    waiting: Mapping[str, tuple[int, int, Sequence[Bad]]] = field(default_factory=dict)
    ending: Mapping[str, int] = field(default_factory=dict)
    number: int = 0
    closed: Mapping[str, Incident] = field(default_factory=dict)
    blind: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)

    @classmethod
    def resumed(cls, lines: Iterable[Incident], number: int = 0) -> Incidents:
        """Return the incidents that the lines of a file leave open, after so many changes before it."""
        open_: dict[str, Incident] = {}
        closed: dict[str, Incident] = {}
        for line in lines:
            number = max(number, line.number)
            open_ = {key: incident for key, incident in open_.items() if incident.id != line.id}
            (closed if line.event == CLOSED else open_)[line.key] = line
        return cls(open_, number=number, closed=closed)

    def restated(self, now_ms: int) -> list[Incident]:
        """Return the open ones, for the start of a file."""
        return [replace(incident, at_ms=now_ms, event=OPEN) for incident in self.open.values()]

    def after(self, now: Look, bad: Sequence[Bad]) -> tuple[Incidents, list[Incident]]:
        """Return the incidents after a look, and what changed."""
        by_key = grouped((trouble.key, trouble) for trouble in bad)
        open_ = _rekeyed(self.open, by_key)
        waiting: dict[str, tuple[int, int, Sequence[Bad]]] = {}
        changes: list[Incident] = []
        for key, those in by_key.items():
            if (before := open_.get(key)) is not None:
                made = _merged(before, those, now.at_ms)
                if made is not before:
                    changes.append(made)
                continue
            count, since_ms, first = self.waiting.get(key, (0, now.at_ms, those))
            waiting[key] = count + 1, since_ms, first
            if count + 1 >= LOOKS:
                del waiting[key]
                back = self.closed.get(key)
                changes.append(_opened(key, those, first, since_ms, now.at_ms, back))
        blind = {
            key: _unseen(incident, now) if key in by_key else self.blind.get(key, _unseen(incident, now))
            for key, incident in open_.items()
        }
        ending = {
            key: self.ending.get(key, 0)
            + (_is_seen(open_[key], now) and _unseen(open_[key], now) <= blind[key])
            for key in open_.keys() - by_key.keys()
        }
        for key in [key for key, count in ending.items() if count >= LOOKS]:
            del ending[key]
            changes.append(replace(open_[key], at_ms=now.at_ms, event=CLOSED))
        changes = [replace(change, number=self.number + 1 + n) for n, change in enumerate(changes)]
        closed = {key: old for key, old in self.closed.items() if now.at_ms - old.at_ms <= BACK_MS}
        for change in changes:
            open_[change.key] = change
            closed.pop(change.key, None)
            blind.setdefault(change.key, _unseen(change, now))
            if change.event == CLOSED:
                closed[change.key] = open_.pop(change.key)
        return Incidents(open_, waiting, ending, self.number + len(changes), closed, blind), changes


def _rekeyed(open_: Mapping[str, Incident], by_key: Mapping[str, Sequence[Bad]]) -> dict[str, Incident]:
    """Return the open incidents; one whose cause is known better by now, or less well, goes on."""
    rekeyed = dict(open_)
    for key, those in by_key.items():
        if key in rekeyed:
            continue
        what = {(bad.group, bad.code) for bad in those}
        for before, incident in open_.items():
            same = {(group, code) for group in incident.groups for code in incident.codes} & what
            if same and before not in by_key and before in rekeyed:
                del rekeyed[before]
                rekeyed[key] = replace(incident, key=key)
                break
    return rekeyed


def _opened(
    key: str,
    those: Sequence[Bad],
    first: Sequence[Bad],
    since_ms: int,
    now_ms: int,
    back: Incident | None,
) -> Incident:
    # Only the look that showed it first could compare it with one that did not.
    known = {(bad.group, bad.code): bad for bad in first if bad.caused_by != NO_RECORD}
    those = [
        replace(bad, caused_by=of.caused_by, records=of.records)
        if (of := known.get((bad.group, bad.code)))
        else bad
        for bad in those
    ]
    if back is not None and now_ms - back.at_ms <= BACK_MS and {bad.code for bad in those} & {*back.codes}:
        return replace(_filled(back, those), at_ms=now_ms, event=OPENED)
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    blank = Incident(
        now_ms, 0, OPENED, f"{since_ms}-{digest}", key, since_ms, "", (), (), "", NO_RECORD, (), ""
    )
    return replace(_filled(blank, those), event=OPENED)


def _merged(before: Incident, those: Sequence[Bad], now_ms: int) -> Incident:
    """Return the incident with what is new: more groups, codes or weight; else as it was."""
    made = _filled(before, those)
    same = (
        set(made.groups) <= set(before.groups)
        and set(made.codes) <= set(before.codes)
        and made.severity == before.severity
    )
    return before if same else replace(made, at_ms=now_ms, event=UPDATED)


def _filled(incident: Incident, those: Sequence[Bad]) -> Incident:
    worst = min(those, key=lambda bad: (bad.severity != ERROR, bad.code, bad.group))
    causes = dict.fromkeys(bad.caused_by for bad in those if bad.caused_by != NO_RECORD)
    groups = dict.fromkeys((*incident.groups, *(bad.group for bad in those if bad.group)))
    evidence = dict.fromkeys(fact for bad in those for fact in (*bad.evidence, *bad.records))
    return replace(
        incident,
        severity=worst.severity,
        codes=tuple(dict.fromkeys((*incident.codes, *sorted({bad.code for bad in those})))),
        groups=tuple(groups)[:GROUPS],
        title=worst.title,
        caused_by=next(iter(causes), incident.caused_by),
        evidence=tuple(evidence)[:EVIDENCE],
        run=worst.run,
    )


def _unseen(incident: Incident, now: Look) -> frozenset[tuple[str, str]]:
    """Return what a look could not see of an incident's groups."""
    there = [(name, now.checkups[name]) for name in incident.groups if name in now.checkups]
    return frozenset((name, error.look) for name, checkup in there for error in checkup.unseen)


def _is_seen(incident: Incident, now: Look) -> bool:
    """Return whether a look shows that an incident is over: all of its groups were examined, or are gone."""
    if now.failed is not None:
        return False
    if incident.key == BROKERS:
        return True
    for name in incident.groups:
        checkup = now.checkups.get(name)
        if checkup is None:
            error = now.errors.get(name)
            if now.unseen or (error is not None and error.code != ABSENT):
                return False
        elif any(error.code in DOWN for error in checkup.unseen):
            return False
    return True
