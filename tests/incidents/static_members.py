"""Static members that die, come back, or are two."""

from __future__ import annotations

from .playing import KINDS, incident
from .scene import FIVE_MINUTES, LONG_MS, Scene
from .truth import HEALTHY, Next, Recorded, Says, Truth, at, blamed, event, finding, verdict

ORDERS: dict[str, dict[str, str]] = {
    "orders-a": {"instance": "orders-0"},
    "orders-b": {"instance": "orders-1"},
}


@incident(1, sample=KINDS)
def static_member_killed_within_its_session(scene: Scene) -> Truth:
    """A static member is killed with -9; until its session ends nobody reads its partitions."""
    topic, (alive, dead) = scene.sharing(ORDERS, 6, session_ms=LONG_MS)
    scene.until_regular(topic)
    mine = sorted(number for _, number in dead.state().assignment)
    dead.kill()
    scene.sleep(20)
    ends = scene.ends(topic)
    parts = "|".join(map(str, mine))

    def others_read_it(_: Scene) -> None:
        scene.settled(topic, 6, alive)
        scene.until_read(topic, ends)
        assert [m["instance_id"] for m in scene.members()] == ["orders-0"]

    return Truth(
        who="orders-1 (client orders-b), one of two static members",
        what="killed with -9; its three partitions stand still while records flow",
        when="some seconds ago; its session lasts 5 minutes",
        why="a static member keeps its place until its session ends",
        describe=Says((at("groups", state="Stable"), at("groups.members", instance_id="orders-1"))),
        lag=Says((at("groups", total_lag=r"^[1-9]\d\d$", unknown_partitions="^0$"),)),
        doctor=Says(
            (
                verdict("sick"),
                finding("error", "orders-1"),
                finding("error", rf"{topic}[-:]({parts})"),
                finding("error", rf"session[^.]*{FIVE_MINUTES}"),
                finding("error", "orders-b"),
            ),
            code=8,
        ),
        blame=Says((blamed("rebalance", "orders-1 joined"),), ("member-left-or-expired",)),
        replay_log=Says(
            (event("member-joined", instance_id="orders-1"),), (event("member-left-or-expired"),)
        ),
        cause=r"orders-1[^\"]*(nothing|no commit|stands? still|stalled|stopped|silent|not committed)",
        next=Next(r"kgroup remove-members \S+ --instance-id orders-1", others_read_it),
        record=Recorded(r"^group app\d\d$", "KG310"),
    )


@incident(1)
def static_member_killed_past_its_session(scene: Scene) -> Truth:
    """A static member is killed with -9; its session ends, and the other member takes its partitions."""
    topic, (alive, dead) = scene.sharing(ORDERS, 6, session_ms=4000)
    scene.until_read(topic, dict.fromkeys(range(6), 5))
    dead.kill()
    scene.settled(topic, 6, alive)
    scene.until_read(topic, scene.ends(topic))
    return Truth(
        who="orders-1 (client orders-b), one of two static members",
        what="killed with -9; taken out, and its partitions are read by orders-0",
        when="4 s after its last heartbeat, when its session ended",
        why="its session ended before it came back",
        describe=Says(
            (at("groups", state="Stable", members="orders-0"),), (at("groups", members="orders-1"),)
        ),
        lag=Says((at("groups", total_lag=r"^\d+$", unknown_partitions="^0$"),)),
        doctor=HEALTHY,
        blame=Says(
            (blamed("rebalance", "orders-1.*4 s"),), ("orders-1 shut down", "orders-0 (left|expired)")
        ),
        replay_log=Says((event("member-left-or-expired", instance_id="orders-1", cause="4 s"),)),
        cause="orders-1 left or expired",
    )


@incident(7)
def two_processes_one_instance_id_classic(scene: Scene) -> Truth:
    """Two classic consumers with one instance id fence each other, as a supervisor restarts them."""
    topic = scene.topic()
    scene.flow(topic)
    members = [scene.reader("pod-a", topic, instance="pay-0", session_ms=LONG_MS)]
    scene.settled(topic, 4, members[0])
    members.append(scene.reader("pod-b", topic, instance="pay-0", session_ms=LONG_MS))
    for turn in range(4):
        scene.until(lambda turn=turn: members[turn].state().fatal, "the older one is fenced")  # type: ignore[misc]
        members.append(scene.again(members[turn]))
        scene.settled(topic, 4, members[-1])

    def own_ids(_: Scene) -> None:
        members[-2].kill()
        members.append(scene.again(members[-2], instance="pay-1"))

    def both_read(_: Scene) -> None:
        scene.settled(topic, 4, *members[-2:], each=2)
        assert {m["instance_id"] for m in scene.members()} == {"pay-0", "pay-1"}

    # Kafka keeps the client id and host of the first process when another one takes the place over.
    unseen = "brokers keep client id and host of the first process under a classic instance id"
    guess = ("as before", "pod-b")
    return Truth(
        who="pay-0: the processes pod-a and pod-b have the same group.instance.id",
        what="each join fences the other process, which is started again",
        when="five times in some seconds",
        why="group.instance.id was copied with the deployment",
        describe=Says((at("groups", state="Stable"), at("groups.members", instance_id="pay-0"))),
        lag=Says((at("groups", unknown_partitions="^0$"),)),
        doctor=Says(
            (finding("warn|error", "pay-0.*5 times"), finding("warn|error", "first")), guess, cannot=unseen
        ),
        blame=Says((blamed("rebalance", "pay-0"),)),
        replay_log=Says(
            (event("member-replaced", instance_id="pay-0", cause="two|second"),), guess, cannot=unseen
        ),
        cause="pay-0 was taken over 5 times",
        next=Next("instance.id of its own", both_read, by_hand=own_ids),
    )


@incident(7)
def two_processes_one_instance_id_consumer(scene: Scene) -> Truth:
    """A second consumer-protocol process with an instance id in use is refused; the first reads on."""
    topic = scene.topic()
    scene.flow(topic)
    first = scene.reader("pod-a", topic, instance="pay-0", protocol="consumer")
    scene.settled(topic, 4, first)
    second = scene.reader("pod-b", topic, instance="pay-0", protocol="consumer")
    scene.until(lambda: second.state().fatal, "the second one is refused")
    scene.until_read(topic, scene.ends(topic))
    unseen = "a refused heartbeat leaves no record, and describing a group shows members only"
    return Truth(
        who="pod-b, with the group.instance.id pay-0 that pod-a has",
        what="refused with UNRELEASED_INSTANCE_ID; pod-a reads on",
        when="now",
        why="group.instance.id was copied with the deployment",
        describe=Says((at("groups", state="Stable"), at("groups.members", client_id="^pod-a$")), ("pod-b",)),
        lag=Says((at("groups", total_lag=r"^\d+$", unknown_partitions="^0$"),)),
        doctor=HEALTHY,
        blame=Says((at("limits", **{"": "refused requests"}),), ("pod-b",), cannot=unseen),
        replay_log=Says((at("limits", **{"": "refused requests"}),), ("pod-b",), cannot=unseen),
    )
