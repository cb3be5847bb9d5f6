"""Programs of joins, leaves, expiries and commits: log → scenario → play → the same scenario."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from kgroup.history.fold.folding import Extras, Fold, Note
from kgroup.history.replay import replay
from kgroup.history.sources.live import LiveTopic
from kgroup.scenario.recorded import Commit, Recorded, Step, Stop, read_scenario, text_of
from kgroup.scenario.recording import record
from kgroup.simulation.play.planning import GROUP, TOPIC, Size, Stage
from kgroup.simulation.play.scenario import ScenarioStep
from kgroup.testing import Cluster
from tests.unit.history.logs import items

VERBS = ("restart", "start", "stop", "kill", "wait")
STEPS = st.builds(
    ScenarioStep,
    st.sampled_from(VERBS),
    share=st.sampled_from((0.3, 0.5, 1.0)),
    down_ms=st.sampled_from((500, 5_000, 60_000)),
    pause_ms=st.sampled_from((0, 2_000)),
    wait_ms=st.sampled_from((0, 20_000)),
    spread=st.booleans(),
)


def happened(
    protocol: str, static: bool, seed: int, members: int, steps: Iterable[ScenarioStep]
) -> list[Note]:
    """What a simulated group's log has: its members join, leave, crash and commit as the steps say."""
    stage = Stage(Size(members=members, partitions=6), protocol, static=static, seed=seed)
    stage.fill()
    stage.settle()
    for step in steps:
        # Nobody is left to come to rest, where all of its members leave.
        running = sum(process.wanted for process in stage.processes)
        if step.verb != "stop" or max(1, round(step.share * members)) < running:
            stage.play(step)
    stage.settle()
    log = stage.world.brokers.partitions[0].log
    names = {topic.topic_id: name for name, topic in stage.world.image.by_name.items()}
    fold = Fold(0, names, extras=Extras(keep_notes=True))
    for item in items(log.read(0, 1 << 30)):
        fold.apply(item)
    fold.finish()
    assert fold.notes is not None
    return fold.notes[GROUP]


def notes_of(kafka: Cluster) -> list[Note]:
    with kafka.admin() as admin:
        topic = LiveTopic(admin.transport, 30)
        logs = [topic.log(partition) for partition in topic.by_partition([GROUP])]
        story = replay(logs, topic_names=topic.topic_names, names=[GROUP], extras=Extras(keep_notes=True))
    (fold,) = story.folds.values()
    assert fold.notes is not None
    return fold.notes[GROUP]


def untimed(recorded: Recorded) -> list[Step]:
    """The steps without times, what follows from ages, and how many commits the last ones stood for."""
    found: list[Step] = []
    for step in recorded.steps:
        match step:
            case Stop():
                found.append(replace(step, at_ms=None, possible=(), cause=""))
            case Commit():
                found.append(replace(step, at_ms=None, commits=None))
            case _:
                found.append(replace(step, at_ms=None))
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each example is a cluster: none is made smaller
)
@example(  # members that came and went without a generation, in an empty group and in one that was emptied
    static=False,
    seed=362,
    members=1,
    steps=[
        ScenarioStep("kill", share=0.3, pause_ms=0, wait_ms=20_000, spread=True),
        ScenarioStep("kill", share=0.3, down_ms=60_000, pause_ms=0, wait_ms=20_000),
        ScenarioStep("restart", down_ms=60_000),
        ScenarioStep("restart", down_ms=60_000, pause_ms=0, spread=True),
    ],
)
@example(  # restarts and a start in one rebalance: the next leader is the first that came
    static=True,
    seed=57,
    members=3,
    steps=[
        ScenarioStep("start", share=0.3, down_ms=500, pause_ms=0, spread=True),
        ScenarioStep("stop", share=1.0, pause_ms=0),
        ScenarioStep("kill", share=1.0, down_ms=500, pause_ms=0, wait_ms=20_000),
        ScenarioStep("kill", share=0.5, down_ms=60_000, pause_ms=0, spread=True),
    ],
)
@example(  # all ended, and the sessions of some: who leads now joined an empty group
    static=True,
    seed=591,
    members=2,
    steps=[
        ScenarioStep("wait", pause_ms=0, wait_ms=20_000),
        ScenarioStep("start", share=0.5, down_ms=60_000, pause_ms=2_000),
        ScenarioStep("kill", share=1.0, pause_ms=2_000),
        ScenarioStep("kill", share=1.0, down_ms=60_000, pause_ms=2_000, spread=True),
    ],
)
@given(
    static=st.booleans(),
    seed=st.integers(0, 1_000),
    members=st.integers(1, 4),
    steps=st.lists(STEPS, max_size=4),
)
def test_what_was_played_is_recorded_as_what_was_recorded(
    protocol: str, static: bool, seed: int, members: int, steps: list[ScenarioStep]
) -> None:
    recorded = record(GROUP, happened(protocol, static, seed, members, steps))
    with tempfile.TemporaryDirectory() as folder, Cluster({TOPIC: 6}) as kafka:
        path = Path(folder) / "scenario.yaml"
        path.write_text(text_of(recorded))
        assert read_scenario(path) == recorded
        kafka.play(path, timeout_s=20)
        assert untimed(record(GROUP, notes_of(kafka))) == untimed(recorded)
