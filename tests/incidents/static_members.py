"""Static members that die, come back, or are two."""

from __future__ import annotations

from .playing import incident
from .scene import LONG_MS, Scene
from .truth import Next, Says, Truth, at, blamed, event, finding, verdict


@incident(1, sample=True)
def static_member_killed_within_its_session(scene: Scene) -> Truth:
    """A static member is killed with -9; until its session ends nobody reads its partitions."""
    topic = scene.topic(6)
    scene.produce(topic, 10, 6)
    alive = scene.reader("orders-a", topic, instance="orders-0", session_ms=LONG_MS)
    dead = scene.reader("orders-b", topic, instance="orders-1", session_ms=LONG_MS)
    scene.settled(topic, 6, alive, dead, each=3)
    scene.until_read(topic, dict.fromkeys(range(6), 10))
    mine = sorted(number for _, number in dead.state().assignment)
    theirs = sorted(set(range(6)) - set(mine))
    dead.kill()
    scene.produce(topic, 50, 6)
    scene.until_read(topic, dict.fromkeys(theirs, 60))
    scene.sleep(8)
    parts = "|".join(map(str, mine))

    def back(_: Scene) -> None:
        scene.again(dead)

    def all_read(_: Scene) -> None:
        scene.until_read(topic, dict.fromkeys(range(6), 60))
        assert {m["instance_id"] for m in scene.members()} == {"orders-0", "orders-1"}

    silent = rf"orders-1.*({topic}-({parts}))|({topic}-({parts})).*orders-1"
    return Truth(
        who="orders-1 (client orders-b), one of two static members",
        what="killed with -9; its three partitions stand still, 50 records each are unread",
        when="some seconds ago; its session lasts 60 s",
        why="a static member keeps its place until its session ends",
        describe=Says(
            (at("groups", state="Stable"), at("groups.members", instance_id="orders-1")),
        ),
        lag=Says((at("groups", total_lag="^150$", unknown_partitions="^0$"),)),
        doctor=Says(
            (verdict("sick"), finding("error", silent), finding("error", r"session|60 ?s")),
            code=8,
        ),
        blame=Says((blamed("rebalance", "orders-1|joined"),), (event("member-left-or-expired"),)),
        replay_log=Says(
            (event("member-joined", instance_id="orders-1"),), (event("member-left-or-expired"),)
        ),
        cause=r"orders-1[^\"]*(has committed nothing|no commit|stands? still|stalled|stopped|silent|not committed)",
        next=Next(r"orders-1", all_read, by_hand=back),
    )
