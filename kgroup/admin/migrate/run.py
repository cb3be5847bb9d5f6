"""Move a fleet in waves: plan, hook, watch, check, next; or stop and report why, and how to go back.

The state is stored at each step and each poll, so a run that is killed resumes where it was. A wave passes
only on what was seen: an unknown stops it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from kgroup.admin.discovery import ClusterView
from kgroup.admin.migrate.execute import before_conversion, convert, converted, listed
from kgroup.admin.migrate.fleet import Fleet, FleetRow, plan_fleet
from kgroup.admin.migrate.hook import HookFailed, Process, Running, failure_of, shown
from kgroup.admin.migrate.models import READY, UPGRADE
from kgroup.admin.migrate.watch import DONE as MOVED
from kgroup.admin.migrate.watch import Eyes, Look, Tracker, Unowned
from kgroup.admin.migrate.wave_checks import broken, judged, lag_unknown
from kgroup.admin.migrate.wave_state import (
    BAD,
    BLOCKED,
    CHECK,
    DONE,
    HOOK,
    INTERRUPTED,
    MOVE,
    PLAN,
    RULE,
    STUCK,
    UNKNOWN,
    WATCH,
    GroupRun,
    HookRun,
    Stop,
    WaveRun,
)
from kgroup.admin.migrate.waves import Command, Wave
from kgroup.admin.models import CONSUMER, EMPTY, ChangeStatus, Committed, GroupDescription
from kgroup.admin.read.conditions import raised
from kgroup.admin.read.describe import describe
from kgroup.admin.read.visibility import sees_every_topic, unseen_offsets
from kgroup.admin.refusals import code_name
from kgroup.admin.shell import command
from kgroup.domain import Document, count_of, first_of
from kgroup.errors import KgroupError, SafetyRefused
from kgroup.interrupts import uninterrupted

CUT_OFF = "HOOK_CUT_OFF"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run. `hook_again` None: a hook runs again only if it failed.

    `target` are the command line options that name the cluster, for printed commands.
    """

    interval_s: float = 0.5
    hook_again: bool | None = None
    target: Sequence[str] = ()
    start_hook: Callable[[Command, Document], Running] = Process


class Stopped(KgroupError):
    """A wave that ends the run, for these reasons."""

    def __init__(self, *stops: Stop) -> None:
        super().__init__(stops[0].message, stops[0].hint)
        self.stops = stops


@dataclass(slots=True)
class WavesRun:
    """A run over the waves that resumes at `runs`; `store` gets all of it at each step and poll."""

    cluster: ClusterView
    waves: Sequence[Wave]
    runs: list[WaveRun]
    store: Callable[[Sequence[WaveRun]], None]
    options: Options = Options()
    _at: int = 0
    _trackers: dict[str, Tracker] = field(default_factory=dict)
    _earlier: dict[str, Unowned] = field(default_factory=dict)
    _eyes: Eyes = field(init=False)

    def __post_init__(self) -> None:
        self._eyes = Eyes(self.cluster, UPGRADE)

    def go(self) -> bool:
        """Take each wave through its steps; return whether all are done. KeyboardInterrupt ends it."""
        for at, run in enumerate(self.runs):
            if run.step == DONE:
                continue
            self._at = at
            try:
                self._wave()
            except Stopped as stopped:
                self._put(stops=stopped.stops, ended_ms=self.cluster.now_ms())
                return False
            except KeyboardInterrupt:
                message = f"the run was interrupted in step {self._run.step} of {self._run.name}"
                stop = Stop(INTERRUPTED, None, message, "the same command resumes there")
                self._put(stops=(stop,), ended_ms=self.cluster.now_ms())
                raise
        return True

    @property
    def _wave_now(self) -> Wave:
        return self.waves[self._at]

    @property
    def _run(self) -> WaveRun:
        return self.runs[self._at]

    def _put(self, **changes: object) -> None:
        self.runs[self._at] = replace(self._run, **changes)  # type: ignore[arg-type]
        self.store(self.runs)

    def _put_groups(self, groups: Mapping[str, GroupRun], **changes: object) -> None:
        self._put(groups=tuple(groups[group.group_id] for group in self._run.groups), **changes)

    def _wave(self) -> None:
        again = goes_on_at(self._run, self.options.hook_again)
        self._put(stops=(), ended_ms=None, started_ms=self._run.started_ms or self.cluster.now_ms())
        if again == PLAN:
            self._put(step=PLAN)
            rows = self._planned()
            self._begin_watching()
            self._move(rows)
        else:
            self._begin_watching()
            if self._run.hook is not None and self._run.hook.ended_ms is None:
                self._hook_ended(None, "it was cut off, and passed over by --no-hook-again")
        self._put(step=WATCH)
        self._watch()
        self._put(step=CHECK)
        self._check()
        self._put(step=DONE, ended_ms=self.cluster.now_ms())

    def _planned(self) -> Mapping[str, FleetRow]:
        """Plan the wave's groups, and keep their state before anything moved."""
        fleet = plan_fleet(self.cluster, self._run.group_ids)
        rows = {row.group_id: row for row in fleet.rows}
        verdicts = {
            group.group_id: replace(group, verdict=rows[group.group_id].verdict)
            if group.group_id in rows
            else group
            for group in self._run.groups
        }
        self._put_groups(verdicts)
        if stops := tuple(against(fleet)):
            raise Stopped(*stops)
        if any(group.seen_ms is None for group in self._run.groups):
            self._baseline()
        return rows

    def _baseline(self) -> None:
        """Measure the groups not measured before; an unknown value that a rule needs stops the wave here."""
        rules = self._wave_now.rules
        unmeasured = [group.group_id for group in self._run.groups if group.seen_ms is None]
        described, now_ms = self._described(unmeasured), self.cluster.now_ms()
        groups, stops = {group.group_id: group for group in self._run.groups}, []
        for group_id in unmeasured:
            group = described[group_id]
            if isinstance(group, KgroupError):
                stops.append(Stop(UNKNOWN, group_id, group.message, group.hint, code_name(group)))
                continue
            if group.members is None:
                stops.append(Stop(UNKNOWN, group_id, f"{group_id}: its members are unknown"))
            elif group.members and rules.lag_growth is not None and (unknown := lag_unknown(group)):
                hint = "let it commit first, or set rules: {lag_growth: null, commits: false} for its wave"
                message = f"{group_id}: its lag is unknown: {unknown[0]}"
                stops.append(Stop(UNKNOWN, group_id, message, hint, unknown[1]))
            else:
                groups[group_id] = replace(
                    groups[group_id],
                    type_before=group.type,
                    members_before=len(group.members),
                    lag_before=group.work,
                    partitions=len(group.offsets),
                    type=group.type,
                    state=group.state,
                    members=len(group.members),
                    seen_ms=now_ms,
                )
        self._put_groups(groups)
        if stops:
            raise Stopped(*stops)

    def _described(self, group_ids: Sequence[str]) -> dict[str, GroupDescription | KgroupError]:
        """Return each group with offsets, or why it cannot be described."""
        try:
            described = describe(self.cluster, group_ids, expected=False, topologies=False)
        except KgroupError as error:
            return dict.fromkeys(group_ids, error)
        answers: dict[str, GroupDescription | KgroupError] = {e.item: raised(e) for e in described.errors}
        return answers | {group.group_id: group for group in described.groups}

    def _move(self, rows: Mapping[str, FleetRow]) -> None:
        """Convert the wave's empty groups, and watch while its hook runs: one journal entry."""
        hook, empty = self._wave_now.hook, self._empty(rows)
        self._put(step=MOVE)
        if hook is None and not empty:
            return
        rest = [] if hook is None else [name for name in self._run.group_ids if name not in empty]
        items = [{"group_id": group_id} for group_id in (*empty, *rest)]
        attempt = 1 if self._run.hook is None else self._run.hook.attempt + 1
        plan: Document = {
            "wave": self._run.name,
            "hook": None if hook is None else shown(hook),
            "attempt": attempt,
            "groups": [item["group_id"] for item in items],
        }
        image: Document = {
            "groups": [[row.group_id, row.type, row.state, row.members] for row in rows.values()],
            "offsets": {group_id: listed(offsets) for group_id, offsets in empty.items()},
        }
        with self.cluster.change("upgrade run", plan, image, items) as change:
            self._put(journal_id=change.id)
            for group_id, offsets in empty.items():
                with self._stopping(group_id):
                    _, changed = convert(self.cluster, group_id, UPGRADE, offsets)
                change.results.append({"group_id": group_id, **converted(changed)})
            if hook is None:
                return
            self._put(hook=HookRun(attempt, self.cluster.now_ms()))
            self._until_ended(hook, attempt, rows)
            ended = self._run.hook
            assert ended is not None
            effect = ended.failure or f"exit code {ended.exit_code}"
            result: Document = {"result": ChangeStatus.DONE, "effect": effect}
            if not ended.succeeded:
                result = {"result": ChangeStatus.FAILED, "error_code": "HOOK_FAILED", "effect": effect}
            change.results += [{**item, **result} for item in items[len(empty) :]]
        if not ended.succeeded:
            message = f"the hook of {self._run.name} failed: {effect}"
            hint = "the same command plans the wave and runs the hook again"
            raise Stopped(Stop(HOOK, None, message, hint))

    def _empty(self, rows: Mapping[str, FleetRow]) -> dict[str, Committed]:
        """Return the empty groups, which no hook can restart, with their offsets; raise Stopped if hidden."""
        offsets: dict[str, Committed] = {}
        for group_id in (r.group_id for r in rows.values() if r.verdict == READY and r.state == EMPTY):
            with self._stopping(group_id):
                if not sees_every_topic(self.cluster):
                    # Offsets are proven the same, or nothing is converted.
                    raise raised(unseen_offsets(group_id))
                offsets[group_id] = before_conversion(self.cluster, group_id, UPGRADE)
        return offsets

    @contextmanager
    def _stopping(self, group_id: str) -> Iterator[None]:
        """Turn a group's failure to convert into a stop of the wave."""
        try:
            yield
        except SafetyRefused as error:
            raise Stopped(Stop(BLOCKED, group_id, error.message, error.hint)) from None
        except KgroupError as error:
            raise Stopped(Stop(UNKNOWN, group_id, error.message, error.hint, code_name(error))) from None

    def _until_ended(self, hook: Command, attempt: int, rows: Mapping[str, FleetRow]) -> None:
        """Poll while the hook runs; end it when its time is up, or the run is interrupted."""
        document: Document = {
            "wave": self._run.name,
            "number": self._at + 1,
            "attempt": attempt,
            "cluster_id": self.cluster.cluster_id(),
            "groups": [
                {"group_id": row.group_id, "state": row.state, "members": row.members, "verdict": row.verdict}
                for row in rows.values()
            ],
        }
        limit_s = self._wave_now.hook_timeout
        running: Running | None = None
        try:
            with uninterrupted():
                running = self.options.start_hook(hook, document)
            for _ in self.cluster.retry.looks(self.options.interval_s, limit_s):
                code = running.poll()
                if code is not None:
                    self._hook_ended(code if code >= 0 else None, failure_of(code))
                    return
                self._poll()
            running.end()
            self._hook_ended(None, f"it did not end within {limit_s:g} s, and was ended")
        except HookFailed as error:
            self._hook_ended(None, error.message)
        except BaseException:
            if running is None:
                self._hook_ended(None, "the run was interrupted before it started")
            else:
                running.end()
                self._hook_ended(None, "it was ended with the run")
            raise

    def _hook_ended(self, code: int | None, failure: str | None) -> None:
        assert self._run.hook is not None
        ended_ms = self.cluster.now_ms()
        self._put(hook=replace(self._run.hook, ended_ms=ended_ms, exit_code=code, failure=failure))

    def _begin_watching(self) -> None:
        """Watch from here on; partitions may have had no owner between the last poll and the next."""
        stuck_ms = int(self._wave_now.rules.stuck_after * 1000)
        groups = self._run.groups
        self._trackers = {
            g.group_id: Tracker(g.group_id, UPGRADE, stuck_ms, most=g.members_before or 0) for g in groups
        }
        now_ms = self.cluster.now_ms()
        self._earlier = {}
        for group in groups:
            gap_ms = 0 if group.seen_ms is None else max(now_ms - group.seen_ms, 0)
            known = group.unowned_partition_ms
            at_most = known.at_most + gap_ms * (group.partitions or 0)
            self._earlier[group.group_id] = Unowned(known.at_least, at_most)

    def _poll(self) -> Mapping[str, Look]:
        """Poll every group of the wave, and store the result."""
        seen, now_ms = self._eyes.see(self._run.group_ids), self.cluster.now_ms()
        looks = {name: tracker.look(now_ms, seen[name]) for name, tracker in self._trackers.items()}
        groups = {}
        for group in self._run.groups:
            look, before = looks[group.group_id], self._earlier[group.group_id]
            since = look.unowned_partition_ms
            # Where the poll failed, members and state are unknown.
            unseen = look.type is None
            unowned = Unowned(before.at_least + since.at_least, before.at_most + since.at_most)
            back = group.back
            if look.type == CONSUMER and group.type_before != CONSUMER:
                back = command("downgrade execute", group.group_id, options=" ".join(self.options.target))
            groups[group.group_id] = replace(
                group,
                type=look.type,
                state=look.state,
                members=None if unseen else look.members,
                moved=None if unseen else look.moved,
                remaining=look.remaining,
                waits=tuple(wait.message for wait in look.waits),
                unowned_partition_ms=unowned,
                seen_ms=group.seen_ms if unseen else look.timestamp_ms,
                back=back,
            )
        self._put_groups(groups)
        return looks

    def _watch(self) -> None:
        """Poll until every group has moved; stop when nothing moves, or time is up."""
        rules = self._wave_now.rules
        for _ in self.cluster.retry.looks(self.options.interval_s, rules.within):
            looks = self._poll()
            left = [look for look in looks.values() if look.status != MOVED]
            if not left:
                return
            stalled_s = min(look.stalled_ms for look in looks.values()) / 1000
            if stalled_s >= rules.stuck_after:
                raise Stopped(*_stuck(left, f"nothing has changed for {stalled_s:.0f} s"))
        raise Stopped(*_stuck(left, f"not all have moved within {rules.within:g} s"))

    def _check(self) -> None:
        """Observe the groups, and compare the measurements with the rules."""
        rules, names = self._wave_now.rules, self._run.group_ids
        first = self._described(names)
        for _ in self.cluster.retry.looks(self.options.interval_s, rules.observe):
            self._poll()
        last = self._described(names)
        groups, stops = {}, []
        for group in self._run.groups:
            pair = [
                described if isinstance(described, GroupDescription) else None
                for described in (first[group.group_id], last[group.group_id])
            ]
            checks = judged(rules, group, *pair)
            groups[group.group_id] = replace(group, checks=checks)
            for check in broken(checks):
                why = RULE if check.status == BAD else UNKNOWN
                message = f"{group.group_id}: {check.rule}: {check.message}"
                stops.append(Stop(why, group.group_id, message, None, check.reason))
        self._put_groups(groups)
        if stops:
            raise Stopped(*stops)


def goes_on_at(run: WaveRun, hook_again: bool | None) -> str:
    """Return the step at which a wave resumes: PLAN or WATCH; raise Stopped when a hook was cut off.

    A hook that may or may not have ended is neither run again nor skipped without asking.
    """
    hook = run.hook
    if hook is not None and hook_again is not None:
        return PLAN if hook_again else WATCH
    if hook is not None and hook.ended_ms is None:
        raise Stopped(
            Stop(
                UNKNOWN,
                None,
                f"the run ended while the hook of {run.name} ran: whether it ended, and how, is unknown",
                "look at what it did, then --hook-again runs it again, and --no-hook-again only watches",
                CUT_OFF,
            )
        )
    moved = run.step == MOVE and hook is not None and hook.succeeded
    return WATCH if moved or run.step in (WATCH, CHECK) else PLAN


def against(fleet: Fleet) -> Iterator[Stop]:
    """Yield what keeps groups from being moved now: blocked, of another kind, unknown."""
    for error in fleet.errors:
        yield Stop(UNKNOWN, error.item, error.message, error.hint, error.code)
    for out in fleet.left_out:
        hint = "remove it from the waves"
        yield Stop(BLOCKED, out.group_id, f"{out.group_id} has no consumer protocol: {out.reason}", hint)
    for row in fleet.rows:
        for check in row.blockers:
            message = f"{row.group_id}: blocked: {check.code.replace('_', ' ')}: {check.message}"
            yield Stop(BLOCKED, row.group_id, message, check.hint)
        for check in row.unknown if row.verdict == UNKNOWN else ():
            message = f"{row.group_id}: not known: {check.code.replace('_', ' ')}: {check.message}"
            yield Stop(UNKNOWN, row.group_id, message, check.hint, check.reason)


def _stuck(left: Sequence[Look], why: str) -> Iterator[Stop]:
    for look in left:
        waits = first_of([wait.message for wait in look.waits], 3)
        hint = next((wait.hint for wait in look.waits if wait.hint), None)
        if look.type is None:
            yield Stop(
                UNKNOWN, look.group_id, f"{look.group_id} cannot be seen: {waits}", hint, "UNREACHABLE"
            )
        else:
            moved = f"{look.moved} of {count_of(look.members, 'member')} moved"
            yield Stop(STUCK, look.group_id, f"{look.group_id}: {why}: {moved}: {waits}", hint)
