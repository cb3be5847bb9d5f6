"""Offsets that go back, and offsets that expire."""

from __future__ import annotations

from .playing import incident
from .scene import Scene
from .truth import Says, Truth, at, blamed, event, finding, verdict


@incident(6)
def rewind_by_an_application(scene: Scene) -> Truth:
    """A member seeks back on three of its four partitions and commits."""
    topic, reader = scene.caught_up("tax-a", 50, at=40)
    scene.sleep(1)
    reader.commit({(topic, number): 10 for number in range(3)})
    three = rf"{topic}[-:]0-2|{topic}[-:]0.*{topic}[-:]1.*{topic}[-:]2"
    return Truth(
        who="tax-a, the only member",
        what="three of four partitions went back from 40 to 10",
        when="one second after the commit before",
        why="the application committed lower offsets",
        describe=Says((at("groups", state="Stable"),)),
        lag=Says((at("groups", total_lag="^130$", unknown_partitions="^0$"),)),
        doctor=Says((verdict("healthy"),)),
        blame=Says((blamed("rewind", three), blamed("rewind", "30"), blamed("rewind", "tax-a")), ("reset",)),
        replay_log=Says((event("rewound", detail="30"), event("rewound", detail__cause="tax-a"))),
        cause='tax-a[^"]* owned it',
    )


@incident(6)
def reset_with_kgroup(scene: Scene) -> Truth:
    """An operator resets all four partitions of an empty group with kgroup, and it reads again."""
    topic, reader = scene.caught_up("tax-a", 50)
    reader.close()
    done = scene.kgroup("reset-offsets", scene.group, "--all-topics", "--to-earliest", "--execute", "--yes")
    assert done.code == 0, done
    scene.until_exactly(topic, dict.fromkeys(range(4), 0))
    return Truth(
        who="an operator with kgroup",
        what="all four partitions went back from 50 to 0",
        when="now, while the group had no members",
        why="a reset; the journal has it",
        describe=Says((at("groups", state="Empty"),)),
        lag=Says((at("groups", total_lag="^200$", unknown_partitions="^0$"),)),
        doctor=Says((verdict("healthy"), finding("warn", "set back, and up to 200 records"))),
        blame=Says((blamed("rewind", "kgroup"), blamed("rewind", rf"{topic}[-:]0-3|all 4|4 partitions"))),
        replay_log=Says((event("rewound", cause="kgroup"),), (at("events", suspicious="true"),)),
        cause="kgroup, by",
    )


@incident(13, broker="small")
def offsets_expired(scene: Scene) -> Truth:
    """A group is down for longer than offsets.retention.minutes: its offsets and then the group are gone."""
    _, reader = scene.caught_up("old-a", 50)
    reader.close()
    scene.until(lambda: not scene.committed(), "they expire", 120)
    scene.sleep(3)
    expired = r"offsets\.retention\.minutes"
    return Truth(
        who="the group, which has no members",
        what="its committed offsets are gone, and so is the group",
        when="a minute after its last member left",
        why="offsets.retention.minutes is 1",
        describe=Says(("not found|does not exist|Dead",), code=3),
        lag=Says(
            ("not found|does not exist|no committed offsets",), (at("groups", total_lag="^0$"),), code=3
        ),
        doctor=Says(("not found|does not exist|Dead",), (verdict("healthy"),), code=3),
        blame=Says((blamed("deletion", expired),), ("deleted, or their topic was",)),
        replay_log=Says((event("(offsets|group)-(expired|deleted).*", detail__cause=expired),)),
    )
