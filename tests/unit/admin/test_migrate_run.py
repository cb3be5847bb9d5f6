"""A run over waves: killed at any moment it resumes, and nothing passes that was not seen."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import Journal
from kgroup.admin.migrate.run import CUT_OFF, Options, WavesRun
from kgroup.admin.migrate.watch import Unowned
from kgroup.admin.migrate.wave_checks import judged
from kgroup.admin.migrate.wave_state import DONE, STEPS, GroupRun, StateFile, WaveRun, continued
from kgroup.admin.migrate.waves import Command, Rules, Wave
from kgroup.admin.models import CONSUMER, GroupDescription, ItemError, Member, OffsetRow
from kgroup.admin.statuses import PartitionStatus, Status
from kgroup.domain import Document
from kgroup.errors import SafetyRefused, StorageError, Unreachable
from kgroup.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tests.sampled import FULL
from tests.unit.admin.groups import classic_group, classic_member, consumer_group, consumer_member
from tests.unit.admin.test_migrate_fleet import brokers

RULES = Rules(stuck_after=5, observe=2)
WAVES = (
    Wave("first", ("a",), ("deploy",), rules=RULES),
    Wave("second", ("b", "c"), ("deploy",), rules=RULES),
    Wave("third", ("d",), None, rules=RULES),
)


class Killed(BaseException):
    """SIGKILL: nothing is done any more."""


class World:
    """A cluster with groups a to d, what their operators' hook does to them, and the state on disk."""

    def __init__(self, folder: Path) -> None:
        self.groups = brokers()
        self.fake = self.groups.fake
        for name in "abcd":
            member = classic_member(f"m-{name}", "orders:0,1", client_id="consumer-1")
            self.groups.add(classic_group(name, member))
            self.groups.committed[name] = {"orders:0": 0, "orders:1": 0}
        self.file = StateFile(folder / "state.json", "fake")
        self.journal = Journal(folder / "journal.jsonl")
        self.started: list[tuple[str, ...]] = []
        self.stored: list[Sequence[WaveRun]] = []
        self.left: int | None = None
        self.hook_survives = True
        self.fails: set[str] = set()
        self.hook_code = 0

    def move(self, name: str) -> None:
        if self.groups.classic.pop(name, None) is not None:
            self.groups.add(consumer_group(name, consumer_member(f"n-{name}", "orders:0,1")))

    def start_hook(self, command: Command, told: Document) -> Hook:
        names = tuple(group["group_id"] for group in told["groups"])  # type: ignore[index, attr-defined]
        self.started.append(names)
        return Hook(self, names)

    def store(self, runs: Sequence[WaveRun]) -> None:
        """Store as the command does, and die when it is time: before the file is written, or after."""
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed
        for run in runs:
            # What counts as done has changed over: a wave passes on nothing else.
            assert run.step != DONE or all(group in self.groups.consumer for group in run.group_ids)
        self.file.write(runs)
        self.stored.append(tuple(runs))

    def run(self, waves: Sequence[Wave] = WAVES, **options: object) -> WavesRun:
        time = self.fake.time
        cluster = ClusterView(self.fake, self.fake.retry(), lambda: int(time.now * 1000), self.journal)
        made = Options(2.0, start_hook=self.start_hook, **options)  # type: ignore[arg-type]
        return WavesRun(cluster, waves, list(self.read(waves)), self.store, made)

    def read(self, waves: Sequence[Wave] = WAVES) -> tuple[WaveRun, ...]:
        return continued(waves, self.file.read())


class Hook:
    """Moves the groups when it is polled for the second time; one that is ended at a kill may live on."""

    def __init__(self, world: World, names: tuple[str, ...]) -> None:
        self.world, self.names, self.polls = world, names, 0

    def poll(self) -> int | None:
        self.polls += 1
        if self.polls == 1:
            return None
        self._deploy()
        return self.world.hook_code

    def end(self) -> int:
        if self.world.hook_survives:
            self._deploy()
        return -15

    def _deploy(self) -> None:
        for name in self.names:
            if name not in self.world.fails:
                self.world.move(name)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def everywhere(folder: Path) -> list[int]:
    """The moments at which a run stores something."""
    folder.mkdir()
    world = World(folder)
    world.move("d")
    assert world.run().go()
    assert {run.step for runs in world.stored for run in runs} == set(STEPS)
    return list(range(len(world.stored)))


def test_killed_at_every_store_it_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the midst of each step: the hook runs once, or again by the operator's word alone."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # a kill takes nothing that was written
    for survives in (True, False):
        for moment in everywhere(tmp_path / f"whole-{survives}"):
            if not FULL and moment % 2 == survives:
                continue  # each moment with one of both
            world = World(tmp_path / f"{survives}-{moment}")
            world.file.path.parent.mkdir()
            world.move("d")
            world.left, world.hook_survives = moment, survives
            with pytest.raises(Killed):
                world.run().go()
            world.left = None
            cut_off = [r for r in world.read() if r.hook is not None and r.hook.ended_ms is None]
            before = list(world.started)
            resumed = world.run()
            if cut_off:
                assert not resumed.go()
                (stop,) = next(run.stops for run in resumed.runs if run.stops)
                assert (stop.why, stop.reason, world.started) == ("unknown", CUT_OFF, before)
                resumed = world.run(hook_again=not survives)
            assert resumed.go(), [run.stops for run in resumed.runs]
            assert [run.step for run in world.read()] == [DONE] * 3
            assert world.started.count(("a",)) + world.started.count(("b", "c")) == len(world.started)
            assert len(world.started) <= 2 + len(cut_off)
            assert set("abcd") <= world.groups.consumer.keys()


def test_an_interrupted_run_says_so_and_ends_its_hook(world: World) -> None:
    made, seen = world.run(), list[bool]()

    def interrupted(runs: Sequence[WaveRun]) -> None:
        world.store(runs)
        seen.append(runs[0].hook is not None and runs[0].hook.ended_ms is None)
        if seen.count(True) == 2:
            seen.clear()
            raise KeyboardInterrupt

    world.hook_survives = False
    made.store = interrupted
    with pytest.raises(KeyboardInterrupt):
        made.go()
    (run, *_) = world.read()
    assert run.hook is not None and run.hook.failure == "it was ended with the run"
    assert [stop.why for stop in run.stops] == ["interrupted"]
    (entry,) = world.journal.entries()
    assert entry.results is not None and entry.results[0]["error_code"] == "INTERRUPTED"
    world.move("d")
    assert world.run().go()
    assert [run.hook and run.hook.attempt for run in world.read()] == [2, 1, None]


def test_a_signal_that_comes_while_a_hook_starts_ends_it_too(world: World) -> None:
    """It ran on for ever where the run was interrupted between the process's start and knowing its pid."""
    ended: list[int] = []
    start = world.start_hook

    def starting(command: Command, told: Document) -> Hook:
        hook = start(command, told)
        signal.raise_signal(signal.SIGINT)
        hook.end = lambda: ended.append(1) or -15  # type: ignore[method-assign, func-returns-value]
        return hook

    world.start_hook = starting  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        world.run().go()
    assert ended == [1]
    (run,) = [run for run in world.read() if run.hook is not None]
    assert run.hook is not None and run.hook.failure == "it was ended with the run"


def test_three_waves_with_one_group_that_fails_in_the_second(world: World) -> None:
    world.fails = {"c"}
    world.move("d")
    assert not world.run().go()
    first, second, third = world.read()
    assert (first.step, second.step, third.step) == ("done", "watch", "waiting")
    assert [(stop.why, stop.group_id) for stop in second.stops] == [("stuck", "c")]
    assert [group.back for group in second.groups] == ["kgroup downgrade execute b", None]
    world.move("c")
    assert world.run().go()
    assert world.started == [("a",), ("b", "c")]


def test_a_wave_that_is_told_to_runs_its_hook_again(world: World) -> None:
    world.fails = {"c"}
    world.move("d")
    assert not world.run().go()
    world.fails = set()
    assert world.run(hook_again=True).go()
    assert world.started == [("a",), ("b", "c"), ("b", "c")]
    assert world.read()[1].groups[0].back == "kgroup downgrade execute b"


def test_a_group_that_cannot_be_seen_never_passes(world: World) -> None:
    """Its coordinator does not answer any more once the hook has run: the wave stops, and it is unknown."""
    made = world.run()
    answer = world.fake.handlers[ConsumerGroupDescribeRequest]

    def mute(node: int, request: ConsumerGroupDescribeRequest) -> object:
        if world.started:
            raise Unreachable("no answer in time")
        return answer(node, request)

    world.fake.on(ConsumerGroupDescribeRequest, mute)
    assert not made.go()
    (run, *_) = world.read()
    assert [(stop.why, stop.reason) for stop in run.stops] == [("unknown", "UNREACHABLE")]
    assert (run.groups[0].members, run.groups[0].moved, run.groups[0].type) == (None, None, None)


def test_time_in_which_nobody_looked_counts_as_perhaps_unowned(world: World) -> None:
    """Killed while the groups moved, resumed an hour later: the rule cannot be shown to hold."""
    world.move("d")
    world.left = 8
    with pytest.raises(Killed):
        world.run().go()
    world.left = None
    world.fake.time.now += 3600
    assert not world.run(hook_again=False).go()
    (run, *_) = world.read()
    assert run.step == "check"
    assert [stop.why for stop in run.stops] == ["unknown"]
    assert "unowned" in run.stops[0].message
    waves = (replace(WAVES[0], rules=replace(RULES, unowned=None)), *WAVES[1:])
    assert world.run(waves).go()


def test_a_state_of_another_cluster_or_of_other_waves_is_refused(world: World) -> None:
    world.move("d")
    assert world.run().go()
    with pytest.raises(StorageError, match="belongs to cluster"):
        StateFile(world.file.path, "other").read()
    with pytest.raises(SafetyRefused, match="second is done"):
        world.read((WAVES[0], WAVES[2]))
    with pytest.raises(SafetyRefused, match="first is done"):
        world.read((replace(WAVES[0], groups=("a", "x")), *WAVES[1:]))


def member(protocol: str = CONSUMER) -> Member:
    return Member("m", None, "c", "h", None, protocol, 1, "stable", ("t",), None, (), ())


def row(committed: int | None, end: int, stable: int | None = None) -> OffsetRow:
    lag = None if committed is None else end - committed
    held = Status(PartitionStatus.HELD_BACK, "info") if stable == committed else None
    return OffsetRow(
        "t", 0, committed, end, lag, None, None, None, None, last_stable_offset=stable, status=held
    )


def description(*rows: OffsetRow, epoch: int = 5, **changes: object) -> GroupDescription:
    lags = [each.lag for each in rows]
    made = GroupDescription(
        "g",
        CONSUMER,
        CONSUMER,
        "Stable",
        group_epoch=epoch,
        members=(member(), member()),
        offsets=rows,
        total_lag=None if None in lags else sum(lag for lag in lags if lag is not None),
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


BEFORE = GroupRun("g", members_before=2, lag_before=0, partitions=1)


def verdicts(
    first: GroupDescription, last: GroupDescription, before: GroupRun = BEFORE, **rules: object
) -> dict[str, str]:
    return {c.rule: c.status for c in judged(replace(Rules(), **rules), before, first, last)}  # type: ignore[arg-type]


def test_all_rules_hold() -> None:
    first, last = description(row(5, 9)), description(row(9, 9))
    assert set(verdicts(first, last).values()) == {"ok"}


@pytest.mark.parametrize(
    ("rule", "status", "first", "last"),
    [
        ("moved", "bad", description(), description(type="classic")),
        ("moved", "bad", description(), description(members=(member(), member("classic")))),
        ("moved", "unknown", description(), description(members=None)),
        ("fewer_members", "bad", description(), description(members=(member(),))),
        ("fewer_members", "unknown", description(), description(members=None)),
        ("lag_growth", "ok", description(), description(row(0, 1000))),
        ("lag_growth", "bad", description(), description(row(0, 1001))),
        ("lag_growth", "unknown", description(), description(row(None, 3))),
        ("lag_growth", "unknown", description(), description(errors=(ItemError("t", "X", "hidden"),))),
        ("commits", "ok", description(row(9, 9)), description(row(9, 12))),
        ("commits", "bad", description(row(5, 9)), description(row(5, 9))),
        ("commits", "ok", description(row(5, 9, stable=5)), description(row(5, 9, stable=5))),
        ("commits", "unknown", description(row(None, 9)), description(row(9, 9))),
        ("commits", "unknown", description(row(5, 9)), description()),
        ("commits", "unknown", description(), description(errors=(ItemError("t", "X", "hidden"),))),
        ("rebalances", "bad", description(epoch=5), description(epoch=6)),
        ("rebalances", "unknown", description(group_epoch=None), description()),
    ],
)
def test_each_rule(rule: str, status: str, first: GroupDescription, last: GroupDescription) -> None:
    assert verdicts(first, last)[rule] == status


@pytest.mark.parametrize(
    ("least", "most", "status"), [(0, 60_000, "ok"), (0, 60_001, "unknown"), (60_001, 70_000, "bad")]
)
def test_time_without_an_owner_is_judged_by_its_bounds(least: int, most: int, status: str) -> None:
    before = replace(BEFORE, unowned_partition_ms=Unowned(least, most))
    assert verdicts(description(), description(), before)["unowned"] == status


def test_what_a_rule_does_not_ask_is_not_judged() -> None:
    none = {"lag_growth": None, "unowned": None, "rebalances": None, "fewer_members": None}
    told = verdicts(description(row(5, 9)), description(row(5, 9)), commits=False, **none)
    assert told == {"moved": "ok", **dict.fromkeys((*none, "commits"), "not_judged")}


def test_a_group_that_was_not_described_is_unknown() -> None:
    assert [c.status for c in judged(Rules(), BEFORE, description(), None)] == ["unknown"]
