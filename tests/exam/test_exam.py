"""A sample of the generated exam; `make exam ARGS="--count 20000"` runs as many states as wanted."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from contextlib import closing
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .asking import SKEW_MS, asked, seen
from .detection import weights
from .exam import VIEWS, examined, replayed
from .judging import Answers, faults
from .known import is_known
from .machine import Machine
from .playing import played
from .states import State, drawn

COUNT = 40
FOUND = (
    "protocol=consumer subscription=pattern owner=left log=recreated others=alone",
    "subscription=other-topic log=emptied membership=stuck",
    "protocol=streams owner=left membership=full since=1200",
    "protocol=consumer owner=dead-static log=recreated membership=flapping since=400",
    "owner=dead-static log=bursts since=120 delay=lazy seed=500225",
    "protocol=consumer subscription=pattern owner=hung log=recreated",
    "owner=hung delay=lazy since=400",
    "owner=hung membership=shared-id delay=lazy log=grown since=120",
    "protocol=consumer subscription=pattern owner=hung log=recreated since=400 others=quiet delay=lazy",
    "protocol=streams owner=hung commits=other-id membership=flapping since=1200 delay=lazy seed=8800466",
    "subscription=other-topic log=compacted since=400",
    "subscription=other-topic commits=other-id log=trimmed since=5 others=alone retention=near",
    "log=open since=5 stamps=late",
    "owner=dead-static stamps=late",
    "commits=none since=1200 stamps=backfill",
    "owner=dead-static since=400 stamps=ahead",
    "owner=hung since=120 others=alone stamps=stray",
    "owner=looping others=alone since=120",
    "owner=looping commits=none others=alone since=120 protocol=consumer",
    "owner=looping commits=none since=120",
    "owner=looping log=deleted others=alone",
    "log=open since=400 stamps=ahead",
    "owner=looping others=alone stamps=ahead",
    "owner=looping commits=none others=alone stamps=backfill",
    "commits=old log=control-only delay=lazy stamps=backfill",
    "protocol=consumer subscription=two-applications owner=dead-static log=recreated since=1200 stamps=ahead",
    "protocol=consumer subscription=pattern owner=dead-static log=recreated others=alone since=5",
    "protocol=consumer subscription=pattern owner=dead-static log=recreated others=alone since=20",
    "protocol=consumer owner=dead-static log=recreated others=quiet since=120 seed=4",
    "commits=none log=aborted membership=full",
    "owner=looping commits=none log=aborted others=alone since=120",
    "owner=looping commits=none log=open others=alone since=120 protocol=consumer",
    "owner=overloaded since=1200",
    "owner=looping since=120",
    "delay=interval seed=16",
    "owner=hot since=400 stamps=backfill seed=240000062",
    "owner=dead-static since=400 delay=lazy stamps=late",
    "protocol=consumer owner=hung membership=full since=1200",
    "protocol=consumer commits=none log=grown delay=lazy",
    "protocol=consumer owner=dead-static log=idle others=quiet membership=flapping since=400 seed=1",
    "log=damaged since=20 others=quiet delay=rarely retention=near stamps=backfill seed=820000006",
    "protocol=streams since=1200 delay=rarely seed=820000102",
    "log=compacted since=5 delay=rarely seed=850000297",
    "protocol=consumer commits=transacted log=recreated since=400 second=damaged delay=rarely seed=820000083",
    "since=400 second=open stamps=backfill seed=811000067",
    "protocol=consumer owner=dead-static log=recreated membership=stuck delay=lazy",
    "protocol=share owner=none log=emptied others=quiet",
    "owner=none log=control-only others=quiet",
    "owner=looping commits=none others=alone stamps=stray",
    "owner=overloaded since=1200 protocol=consumer others=alone stamps=late",
    "owner=overloaded since=1200 commits=transacted seed=1",
    "subscription=assign owner=none commits=transacted since=120",
    "owner=looping commits=aborting since=1200 others=alone",
    "protocol=mixed owner=dead-static commits=none since=120 delay=interval seed=1122",
    "protocol=mixed subscription=two-applications owner=looping delay=interval stamps=stray seed=1527",
    "protocol=mixed subscription=pattern owner=looping commits=pending log=recreated since=1200 seed=69",
    "protocol=mixed owner=left membership=stuck since=1200 seed=20139",
    "protocol=mixed owner=hung log=recreated since=1200 stamps=backfill seed=1534",
    "protocol=mixed owner=left membership=flapping seed=5",
    "protocol=mixed owner=hung membership=rebalance seed=2",
    "protocol=mixed owner=dead-static commits=none membership=shared-id log=recreated since=400 seed=4",
    "protocol=consumer owner=none since=120 healed=40 delay=interval seed=11350",
    "protocol=mixed subscription=pattern owner=none log=recreated since=400 healed=8 delay=rarely seed=5587",
    "protocol=consumer owner=none commits=outside log=aborted since=1200 healed=40 delay=rarely seed=2",
    "protocol=share owner=none since=400 healed=8",
    "subscription=two-applications owner=none commits=set-back since=120 crew=six delay=interval seed=700125",
    "owner=looping membership=rebalance since=120 seed=1",
    "owner=looping repeats=all membership=rebalance since=400 width=nine seed=9013104",
    "protocol=consumer owner=none commits=none since=1200 crew=six delay=lazy seed=700585",
    "protocol=streams owner=hung commits=none since=400 seed=1",
)
"""States that an exam found wrong, and that few seeds draw."""


def test_the_commands_say_what_is_true_of_states_that_a_program_makes_up() -> None:
    found = {
        f"{fault.judge}: {fault.why}\n  python -m tests.exam --replay '{state}'"
        for state, bad in examined([*map(drawn, range(COUNT)), *map(State.parse, FOUND)], VIEWS)
        for fault in bad
        if not is_known(fault.judge, fault.why)
    }
    assert not found, "\n".join(sorted(found))


ALONE = (
    "commits=pending log=idle others=quiet since=400",
    "protocol=consumer log=idle membership=stuck others=quiet since=400",
    "protocol=streams log=idle membership=stuck others=quiet since=400",
    "log=open others=alone since=120",
    "subscription=assign owner=none commits=transacted log=open since=5 stamps=late",
)
"""States in which nothing is written any more: nothing shows the time to who is not told the controller's."""


@pytest.mark.parametrize("clock", [clock for clock, ms in SKEW_MS.items() if ms or clock == "right"])
@pytest.mark.parametrize("text", ALONE)
def test_in_a_silent_cluster_nothing_that_lasts_looks_young(text: str, clock: str) -> None:
    assert not replayed(State.parse(text).but(visibility="settings", clock=clock))


LOOKS = ("history", "settings", "transactions", "lag", "assignments")
"""What `doctor --without` takes."""


def test_what_an_operator_leaves_out_breaks_no_check_up() -> None:
    machine = Machine()
    with closing(machine):
        names = [
            group.name for group in played(machine, [*map(drawn, range(COUNT)), *map(State.parse, FOUND)])
        ]
        with seen(machine, "all", "right") as ran:
            done = {look: ran("doctor", *names, "--patience", "0s", "--without", look) for look in LOOKS}
    assert {look: set(each.by_group) for look, each in done.items()} == dict.fromkeys(LOOKS, set(names))


NAMED = "names"
WRONG: Mapping[str, tuple[str, str, Callable[[Any], object]]] = {
    "doctor": ("", "doctor", lambda group: group.update(verdict="sick")),
    "statuses": ("", "lag", lambda group: group["offsets"][0]["status"].update(name="gone", weight="warn")),
    "commands": ("", "wait", lambda group: group.update(held=not group["held"], total_lag=0)),
    "times": ("owner=hung", "lag", lambda group: group["offsets"][0].update(time_lag_ms=86_400_000)),
    "knock-out": ("visibility=settings", "doctor", lambda group: group.update(verdict="sick")),
    "crash": ("", "describe", lambda group: group.update(state="Traceback")),
    NAMED: ("protocol=mixed", "doctor", lambda group: group["findings"][-1].update(message="1 of 2")),
    "cautions": ("owner=none commits=outside since=120", "reset", lambda group: group.update(caution=None)),
}
"""A state, the command of whose answer something is changed, and how: one for each judge."""


@pytest.mark.parametrize("judge", WRONG)
def test_each_judge_marks_an_answer_that_is_wrong(judge: str) -> None:
    """A tuple that was compared with a list once kept two of them from ever being asked."""
    text, command, spoil = WRONG[judge]
    state = State.parse(text)
    machine = Machine()
    with closing(machine):
        (group,) = played(machine, [state])
        full = None
        if state.visibility != "all":
            first = asked(seen(machine, "all", "right"), [group.name], "all", "right")
            full = Answers.of(group.name, first)
        whole = asked(seen(machine, state.visibility, "right"), [group.name], state.visibility, "right")
        assert not list(faults(group, whole, full))
        ran = getattr(whole, command)
        document = deepcopy(ran.document)
        spoil(next(each for each in document["data"]["groups"] if each["group_id"] == group.name))
        wrong = replace(whole, **{command: replace(ran, out=json.dumps(document))})
        found = {fault.judge for fault in faults(group, wrong, full)}
    assert {"cautions": "commands", NAMED: "doctor"}.get(judge, judge) in found


def test_the_exam_does_not_know_how_kgroup_judges() -> None:
    """Nothing of what it examines: the command line is called by its front door."""
    for path in Path(__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith("kgroup.admin"), f"{path.name} imports {name}"
                assert not name.startswith("kgroup.cli.") or name == "kgroup.cli.frame.tree", path.name


@pytest.mark.parametrize("seed", [3, 17, 99])
def test_a_state_is_replayed_from_its_text(seed: int) -> None:
    assert State.parse(str(drawn(seed))) == drawn(seed)


def test_a_reader_that_stopped_is_an_error_though_nobody_else_commits() -> None:
    """One batch an hour, and a cluster in which nothing else moves: only the controller tells the time."""
    said = weights("classic", "dead-static", "hourly", (10, 40, 100))
    assert said == {10: {"ok"}, 40: {"warn"}, 100: {"error"}}
