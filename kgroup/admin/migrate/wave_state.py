"""The progress of a run and its observations, in one file that is replaced as a whole.

Field names are the JSON names of `upgrade run`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from kgroup.admin.as_json import document
from kgroup.admin.migrate.watch import Unowned
from kgroup.admin.migrate.waves import Wave
from kgroup.errors import SafetyRefused, StorageError
from kgroup.history.typed_json import Plain
from kgroup.portable import lock
from kgroup.runtime.kept_file import KeptFile

WAITING, PLAN, MOVE, WATCH, CHECK, DONE = "waiting", "plan", "move", "watch", "check", "done"
STEPS = (WAITING, PLAN, MOVE, WATCH, CHECK, DONE)
BLOCKED, UNKNOWN, HOOK, STUCK, RULE, INTERRUPTED = (
    "blocked",
    "unknown",
    "hook",
    "stuck",
    "rule",
    "interrupted",
)
OK, BAD, NOT_JUDGED = "ok", "bad", "not_judged"


@dataclass(frozen=True, slots=True)
class Stop:
    """A reason why a wave stopped the run; `reason` is the code of the failure behind it, if any."""

    why: Annotated[str, (BLOCKED, UNKNOWN, HOOK, STUCK, RULE, INTERRUPTED)]
    group_id: Annotated[str | None, "null: the wave as a whole"]
    message: str
    hint: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class HookRun:
    """The last start of a wave's hook; times in ms since 1970."""

    attempt: int
    started_ms: int
    ended_ms: Annotated[int | None, "null: it runs, or the run ended before it did"] = None
    exit_code: Annotated[int | None, "null: unknown, or it was not started"] = None
    failure: Annotated[str | None, "why there is no exit code"] = None

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """A rule and its measurement."""

    rule: Annotated[str, ("moved", "fewer_members", "lag_growth", "commits", "rebalances", "unowned")]
    status: Annotated[str, (OK, BAD, UNKNOWN, NOT_JUDGED)]
    message: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class GroupRun:
    """A group of a wave: its state before the wave, its last poll, and its checks.

    `unowned_partition_ms` bounds how long its partitions had no owner since the wave began to move.
    """

    group_id: str
    verdict: Annotated[str | None, "of the last plan"] = None
    type_before: str | None = None
    members_before: int | None = None
    lag_before: int | None = None
    partitions: int | None = None
    type: str | None = None
    state: str | None = None
    members: Annotated[int | None, "null: not seen"] = None
    moved: Annotated[int | None, "members with the new protocol"] = None
    remaining: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    unowned_partition_ms: Unowned = Unowned()
    seen_ms: int | None = None
    checks: tuple[RuleCheck, ...] = ()
    back: Annotated[str | None, "the command that takes it back, once it has changed over"] = None


@dataclass(frozen=True, slots=True)
class WaveRun:
    """A wave: its current step, its groups, its hook, and what stopped it."""

    name: str
    step: Annotated[str, STEPS]
    groups: tuple[GroupRun, ...]
    hook: Annotated[HookRun | None, "null: not started"] = None
    journal_id: Annotated[str | None, "of its last change"] = None
    stops: tuple[Stop, ...] = ()
    started_ms: int | None = None
    ended_ms: int | None = None

    @property
    def group_ids(self) -> tuple[str, ...]:
        return tuple(group.group_id for group in self.groups)


def fresh(wave: Wave) -> WaveRun:
    """Return a wave that has not begun."""
    return WaveRun(wave.name, WAITING, tuple(map(GroupRun, wave.groups)))


@dataclass(frozen=True, slots=True)
class StateFile:
    """The state of one run on one cluster, at `path`; StorageError when it is unusable or invalid."""

    path: Path
    cluster_id: str

    def read(self) -> tuple[WaveRun, ...]:
        """Return the waves as stored last; none where there is no file."""
        if not self.path.exists():
            return ()
        return tuple(self._file().read(_wave))

    def write(self, waves: Sequence[WaveRun]) -> None:
        """Store the waves, durably, in one step."""
        self._file().write([document(wave) for wave in waves])

    def _file(self) -> KeptFile:
        hint = "name another with --state, or move it aside to begin with the first wave"
        return KeptFile(self.path, self.cluster_id, "waves", "is not the state of this run", hint)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other run with this state out; raise SafetyRefused while there is one."""
        beside = self.path.with_name(f"{self.path.name}.lock")
        try:
            descriptor = os.open(beside, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StorageError(f"cannot write {beside}: {error.strerror}") from None
        try:
            try:
                lock(descriptor)
            except BlockingIOError:
                hint = "wait for it to end, or end it: its state is kept"
                raise SafetyRefused(f"{self.path} is in use by another run", hint) from None
            yield
        finally:
            os.close(descriptor)


def _wave(stored: Plain) -> WaveRun:
    made = WaveRun(
        **{
            **stored,
            "groups": tuple(
                GroupRun(
                    **{
                        **group,
                        "unowned_partition_ms": Unowned(**group["unowned_partition_ms"]),
                        "checks": tuple(RuleCheck(**check) for check in group["checks"]),
                        **{name: tuple(group[name]) for name in ("remaining", "waits")},
                    }
                )
                for group in stored["groups"]
            ),
            "hook": None if stored["hook"] is None else HookRun(**stored["hook"]),
            "stops": tuple(Stop(**stop) for stop in stored["stops"]),
        }
    )
    if made.step not in STEPS:
        raise ValueError(f"{made.step!r} is no step")
    return made


def continued(waves: Sequence[Wave], stored: Sequence[WaveRun]) -> tuple[WaveRun, ...]:
    """Return where the run resumes: what is done stays, a wave whose groups have changed is planned again.

    Raise SafetyRefused when a wave that is done is not in the file as it was.
    """
    known = {run.name: run for run in stored}
    resumed = []
    for wave in waves:
        run = known.pop(wave.name, None)
        if run is None:
            resumed.append(WaveRun(wave.name, WAITING, tuple(map(GroupRun, wave.groups))))
        elif run.group_ids == wave.groups:
            resumed.append(run)
        elif run.step == DONE:
            raise _changed(run)
        else:
            # The groups' state before the wave stays; a wave with new groups begins again.
            before = {group.group_id: group for group in run.groups}
            groups = tuple(before.get(group_id) or GroupRun(group_id) for group_id in wave.groups)
            step = run.step if before.keys() >= set(wave.groups) else WAITING
            resumed.append(replace(run, step=step, groups=groups))
    for run in known.values():
        if run.step == DONE:
            raise _changed(run)
    return tuple(resumed)


def _changed(run: WaveRun) -> SafetyRefused:
    return SafetyRefused(
        f"the wave {run.name} is done, and the file has it no more, or with other groups",
        "put it back as it was, or begin another run with --state FILE",
    )
