"""Each rule and each check removed by hand: the exam must notice, or it examines nothing there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from unittest import mock

from kgroup.history.fold.events import OF_COMMITS, Event

from . import plans
from .asking import Asked, asked_shortly
from .judging import Answers, Fault, faults
from .machine import Machine
from .playing import Group, played
from .states import DIMENSIONS, PLAYED, SOUND, State, possible

DOUBLE = (
    "owner=none commits=outside since=120",
    "log=deleted commits=other-id",
    "log=open since=120",
    "commits=none since=1200",
    "owner=hung commits=other-id since=400 others=alone",
    "owner=looping since=120",
    "owner=none log=trimmed",
    "membership=rebalance owner=hung since=45",
    "protocol=consumer commits=none log=recreated since=120",
    "subscription=pattern-of-nothing membership=flapping",
    "protocol=streams",
    "owner=looping others=alone since=120",
    "owner=looping commits=none others=alone since=120",
    "owner=overloaded since=1200",
    "owner=overloaded since=1200 commits=transacted seed=1",
    "owner=looping commits=aborting since=1200 others=alone",
    "subscription=assign owner=none commits=transacted since=120",
    "subscription=other-topic commits=transacted since=120",
    "owner=dead-static stamps=late",
    "commits=none since=1200 stamps=backfill",
    "owner=dead-static since=400 stamps=ahead",
    "protocol=consumer subscription=pattern owner=dead-static log=recreated others=alone since=20",
    "commits=none log=aborted membership=full",
    "owner=looping commits=none log=aborted others=alone since=120",
    "protocol=consumer commits=none log=grown delay=lazy",
    "delay=interval seed=16",
    "protocol=consumer owner=dead-static log=idle others=quiet membership=flapping since=400 seed=1",
    "log=compacted since=5 delay=rarely seed=850000297",
    "protocol=streams since=1200 delay=rarely seed=820000102",
    "protocol=streams owner=hung commits=none since=400 seed=1",
    "protocol=mixed",
    "protocol=mixed commits=none membership=flapping since=400 seed=5",
    "protocol=mixed owner=dead-static commits=none since=120 seed=1122",
    "protocol=consumer owner=hung commits=none log=bursts membership=flapping since=1200 seed=1970",
    "protocol=mixed owner=hung commits=none log=damaged membership=flapping since=20 seed=919",
    "owner=none log=cut seed=3",
    "commits=old log=cut since=120 width=nine second=open delay=lazy stamps=backfill seed=6",
    "owner=hung since=120 repeats=all",
    "owner=hung since=45 repeats=all",
    "subscription=assign owner=hung since=1200",
    "protocol=share owner=hung since=400 seed=2",
    "protocol=share owner=hung since=45 seed=2",
    "protocol=share owner=releasing since=400 seed=3",
    "protocol=share owner=releasing since=120 seed=2",
    "protocol=share owner=releasing since=120 seed=13",
    "protocol=share delay=interval log=bursts since=120 seed=3",
    "protocol=share owner=looping others=alone since=45 seed=3",
)
"""States without which a check would not be missed."""
VIEWS = ("all", "broker", "replicas", "cleaned")
"""Who looks: one who sees all, one while a broker is down, one while nothing can be stored, and one to whom
compaction has left little."""
PLAN_VIEWS = ("all", "settings", "broker", "replicas", "lagging")
LAG, STATUSES = "kgroup.admin.read.lag", "kgroup.admin.statuses"
TABLES = (
    ("kgroup.admin.read.findings", "_CHECKS"),
    ("kgroup.admin.diagnose.checks", "_CHECKS"),
    ("kgroup.admin.diagnose.checks", "_BY_STATUS"),
)
"""The tables of checks by code, or by status."""
OTHERS = (
    ("kgroup.admin.diagnose.checks", "stopped"),
    ("kgroup.admin.diagnose.checks", "_given_up"),
    ("kgroup.admin.diagnose.checks", "standing_still"),
    ("kgroup.admin.diagnose.checks", "all_given_up"),
)
"""Checks that stand in no table."""
DOUBTS: tuple[tuple[str, object], ...] = (
    ("kgroup.admin.diagnose.reading.Course.left_behind", lambda self, partition, row: row.status),
    ("kgroup.admin.diagnose.reading.judge_fruitless", lambda _, facts, *__: facts),
    ("kgroup.admin.diagnose.reading.Course.mistimed", lambda self: iter(())),
    ("kgroup.admin.read.broker_clock.FUTURE_MS", 10**15),
    ("kgroup.admin.diagnose.doctor.judge_pace", lambda _, facts, *__: facts),
    ("kgroup.admin.diagnose.commits.Marker", ()),
    ("kgroup.admin.diagnose.generations.commits_in", lambda events, **_: _plain(events)),
    ("kgroup.admin.read.outside.commits_in", lambda events, **_: _plain(events)),
    ("kgroup.admin.diagnose.reading.first_read", lambda *_: ()),
    ("kgroup.admin.diagnose.generations.first_read", lambda *_: ()),
    ("kgroup.admin.read.lag.topics_matched", lambda *_: set()),
    ("kgroup.admin.read.in_sync.InSync.too_few", lambda *_: iter(())),
    ("kgroup.admin.diagnose.checks._FOLLOWING", {}),
    ("kgroup.admin.diagnose.reading._learn_waits", lambda *_: None),
    ("kgroup.admin.diagnose.facts.Facts.lost", lambda *_: None),
    ("kgroup.admin.diagnose.reading.Course.not_yet_written", lambda self: iter(())),
    (f"{STATUSES}.LONGEST_MS", 0),
    ("kgroup.admin.diagnose.reading.lost_ends", lambda *_: None),
    ("kgroup.admin.diagnose.reading.Course.unshown", ()),
    ("kgroup.admin.diagnose.reading.Course.earliest_ms", lambda self, *at: self.got_ms(*at)),
    ("kgroup.history.fold.folding.Fold.repeated", lambda *_: {}),
    ("kgroup.admin.diagnose.reading.Course._unsure", frozenset()),
    ("kgroup.admin.diagnose.checks.reads_outside", lambda _: True),
    ("kgroup.admin.diagnose.doctor.unshown", lambda _: iter(())),
    ("kgroup.admin.diagnose.facts.Facts.starts", ()),
    (
        "kgroup.admin.diagnose.reading.Course._speaks_classic",
        lambda self, _: self.facts.group.type == "classic",
    ),
    ("kgroup.admin.diagnose.reading.Course.restores", None),
    ("kgroup.admin.read.leader_epochs.epoch_ends", lambda *_: {}),
    (f"{STATUSES}.Epochs.ahead", False),
    ("kgroup.admin.diagnose.reading._READ_AND_GONE", ()),
    ("kgroup.admin.statuses._unfinished", lambda *_: None),
    ("kgroup.admin.diagnose.handled.Handled.rounds", lambda *_: 0),
    ("kgroup.admin.diagnose.sharing.Sharing.learn", lambda *_: None),
    ("kgroup.admin.diagnose.sharing.Sharing._doubt", lambda *_: None),
    ("kgroup.admin.diagnose.sharing.Sharing._members_ms", -1),
    ("kgroup.admin.diagnose.reading._made", lambda *found: import_module(STATUSES).Progress(found[3])),
)
"""Checks in no table, what keeps a wrong time from deciding, and what is there without them."""
PLANNED = (
    "seed=1",
    "policy=disabled",
    "policy=downgrade seed=1",
    "protocol=consumer policy=upgrade seed=1",
    "protocol=consumer room=one",
    "protocol=consumer subscription=two-applications seed=4",
    "protocol=mixed room=classic-one seed=1",
    "protocol=mixed policy=upgrade seed=1",
    "protocol=mixed policy=disabled seed=5",
    "room=one seed=1",
    "client=user-data",
    "client=librdkafka",
    "client=undecodable seed=1",
    "client=other-type seed=1",
    "subscription=two-applications seed=4",
    "membership=rebalance seed=1",
    "owner=none seed=2",
    "owner=none seed=3",
    "owner=none log=trimmed seed=3",
    "owner=none commits=outside since=120 seed=3",
    "protocol=share owner=none seed=3",
)
"""States in which a plan without one of its checks is wrong."""
MIGRATE, CHANGE = "kgroup.admin.migrate", "kgroup.admin.change"
PASSED = (
    f"{MIGRATE}.checks.policy",
    f"{MIGRATE}.checks.room",
    f"{MIGRATE}.checks._embedded",
    f"{MIGRATE}.downgrade.policy",
    f"{MIGRATE}.downgrade.room",
    f"{MIGRATE}.downgrade._size",
)
"""Checks of migrations, which pass then."""
LESS: tuple[tuple[str, object], ...] = (
    (f"{MIGRATE}.checks._unstored", lambda *_: iter(())),
    (f"{MIGRATE}.checks._user_data_to_come", lambda *_: iter(())),
    (f"{MIGRATE}.checks._foreign", lambda *_: None),
    (f"{MIGRATE}.consequences.POLICIES", {"upgrade": (), "downgrade": ("upgrade", "disabled")}),
    (f"{MIGRATE}.evidence.unstored", lambda *_: {}),
    ("kgroup.admin.read.in_sync.InSync.unseen", lambda *_: iter(())),
    (f"{MIGRATE}.models.MemberEvidence.user_data_bytes", 0),
    (f"{CHANGE}.remove_members._reads", lambda *_: True),
    (f"{CHANGE}.offset_plans._subscribed", lambda *_: frozenset()),
    (f"{CHANGE}.offset_plans.untold", lambda *_: None),
    (f"{CHANGE}.offset_plans.refusal_of", lambda *_: None),
    (f"{CHANGE}.offset_plans.unstored", lambda *_: {}),
    (f"{CHANGE}.offset_plans.GroupNow.may_refuse", False),
    (f"{CHANGE}.delete.EMPTY", "Stable"),
    (f"{CHANGE}.unread.LATEST", -2),
    (f"{CHANGE}.reset.LATEST", -2),
    (f"{MIGRATE}.consequences.session_ahead", lambda _: "9000"),
    ("kgroup.admin.read.staleness.last_written", lambda _, names: dict.fromkeys(names, 0)),
)
"""What else plans judge by, and what is there without it."""
ELSEWHERE = frozenset(
    {
        "KG105",
        "KG106",
        "KG107",
        "KG108",
        "KG109",
        "KG113",
        "KG114",
        "KG115",
        "KG116",
        "KG117",
        "KG118",
        "KG211",
        "KG303",
        "KG304",
        "KG307",
        "KG313",
        "KG315",
        "KG317",
    }
)
"""Codes about what no state of the exam has yet, or that are information: other tests show them."""


def _plain(events: Sequence[Event]) -> Iterator[Event]:
    """The commits but those in transactions."""
    return (event for event in events if event.kind in OF_COMMITS)


def mutants() -> Iterator[tuple[str, mock._patch[object]]]:
    """Yield each mutant's name, and the patch that makes it."""
    statuses = import_module(LAG).status_of.__module__
    rules = import_module(statuses).RULES
    for rule in rules:
        left = tuple(each for each in rules if each is not rule)
        yield f"status{rule.__name__}", mock.patch(f"{statuses}.RULES", left)
    for module, name in TABLES:
        table = getattr(import_module(module), name)
        for key in table:
            if key not in ELSEWHERE:
                rest = {k: v for k, v in table.items() if k != key}
                yield f"{name}[{key}]", mock.patch(f"{module}.{name}", rest)
    for module, name in OTHERS:
        yield name, mock.patch(f"{module}.{name}", lambda *_: iter(()))
    for place, without in DOUBTS:
        yield place, mock.patch(place, without)


def mutants_of_plans() -> Iterator[tuple[str, mock._patch[object]]]:
    """Yield the same of plans."""
    for place in PASSED:
        module, _, name = place.rpartition(".")
        made = getattr(import_module(module), name)
        passes = lambda *given, made=made: replace(made(*given), status="ok")  # noqa: E731
        yield place, mock.patch(place, passes)
    for place, without in LESS:
        yield place, mock.patch(place, without)


def survivors_of_plans() -> Iterator[tuple[str, bool]]:
    """Yield each mutant of plans with whether it lives."""
    machine = Machine()
    with contextlib.closing(machine):
        groups = played(machine, [State.parse(text) for text in PLANNED])
        full = {view: plans.planned(machine, groups, view) for view in PLAN_VIEWS}
        after = {group.name: plans.followed(group, full["all"][group.name]) for group in groups}

        def found() -> set[tuple[str, Fault]]:
            bad = set[tuple[str, Fault]]()
            for view in PLAN_VIEWS:
                made = plans.planned(machine, groups, view)
                for group in groups:
                    mine, known = made[group.name], full["all"][group.name]
                    wrong = (
                        plans.hidden(view, mine, known)
                        if view != "all"
                        else plans.judged(group, mine, after[group.name])
                    )
                    bad |= {(group.name, fault) for fault in wrong}
            return bad

        before = found()
        for name, patch in mutants_of_plans():
            with patch:
                lives = found() <= before
            yield name, lives


def survivors(states: Sequence[State]) -> Iterator[tuple[str, bool]]:
    """Yield each mutant with whether it lives: no fault is found in these states that is not always there."""
    machine = Machine()
    with contextlib.closing(machine):
        groups = played(machine, states)
        names = [group.name for group in groups]
        whole = {view: asked_shortly(machine, names, view) for view in VIEWS}
        before = {view: _found(groups, answers, whole["all"]) for view, answers in whole.items()}
        for name, patch in mutants():
            # A check that is removed changes no row.
            ruled = name.startswith(("status_", "kgroup."))
            with patch:
                lives = all(
                    _found(
                        groups,
                        asked_shortly(machine, names, view, None if ruled else whole[view].describe),
                        whole["all"],
                    )
                    <= before[view]
                    for view in (VIEWS if ruled else VIEWS[:1])
                )
            yield name, lives


def _found(groups: Sequence[Group], answers: Asked, whole: Asked) -> set[tuple[str, Fault]]:
    found: set[tuple[str, Fault]] = set()
    for group in groups:
        more = whole if answers.visibility == "cleaned" else answers
        full = None if answers.visibility == "all" else Answers.of(group.name, more)
        found |= {(group.name, fault) for fault in faults(group, answers, full)}
    return found


def chosen() -> list[State]:
    """States in which one dimension is not sound, and some in which two are not."""
    single = [
        possible(SOUND.but(**{name: value, "protocol": protocol}))
        for protocol in ("classic", "consumer")
        for name in PLAYED
        for value in DIMENSIONS[name]
        if name != "protocol"
    ]
    double = [State.parse(text) for text in DOUBLE]
    return list(dict.fromkeys([*single, *double]))
