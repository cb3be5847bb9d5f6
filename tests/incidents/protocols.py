"""Groups of other protocols: half upgraded, and share groups."""

from __future__ import annotations

from .playing import incident
from .scene import Scene
from .truth import Next, Says, Truth, at, blamed, event, finding, verdict


@incident(18)
def upgrade_half_way(scene: Scene) -> Truth:
    """Two of three members speak the consumer protocol; one old client is left."""
    topic = scene.topic(6)
    scene.flow(topic, 6)
    old = scene.reader("seat-old", topic)
    scene.settled(topic, 6, old)
    fresh = [scene.reader(f"seat-{number}", topic, protocol="consumer") for number in range(2)]
    scene.settled(topic, 6, old, *fresh, each=2)
    scene.until_read(topic, scene.ends(topic))

    def upgraded(_: Scene) -> None:
        old.close()
        last = scene.again(old, protocol="consumer", assignor=None)
        scene.settled(topic, 6, last, *fresh, each=2)
        codes = [each["code"] for each in scene.asked("doctor").group(scene.group)["findings"]]
        assert "KG201" not in codes, codes

    return Truth(
        who="seat-old, one of three members",
        what="speaks the classic protocol in a group that was converted",
        when="since the first new client joined",
        why="its deployment is not done",
        describe=Says(
            (at("groups", type="consumer", state="Stable"), at("groups.findings", message="seat-old"))
        ),
        lag=Says((at("groups", total_lag=r"^\d+$", unknown_partitions="^0$"),)),
        doctor=Says((verdict("healthy"), finding("info", "seat-old"))),
        blame=Says((blamed("conversion", "seat-[01]"), blamed("rebalance", "joined"))),
        replay_log=Says((event("upgraded"),)),
        cause='seat-old[^"]*|classic protocol: [^"]*seat-old',
        next=Next(r"kgroup upgrade watch \S+", upgraded, by_hand=lambda _: None),
    )


@incident(26, broker="share", kinds=("kafka",))
def share_group(scene: Scene) -> Truth:
    """A share group (KIP-932) whose one member acknowledges what it reads."""
    topic = scene.topic(2)
    console = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    where = ("--bootstrap-server", scene.server.bootstrap)
    scene.program(console, *where, "--topic", topic, "--group", scene.group)
    scene.until(
        lambda: [m for m in scene.found_members() if m["assignment"]], "its member has partitions", 60
    )
    scene.produce(topic, 20, 2)

    def told() -> list[object]:
        events = scene.asked("replay-log").data["events"]
        return [each for each in events if each["event"] == "records-acknowledged"]

    scene.until(told, "its acknowledgements are stored", 60)
    return Truth(
        who="a share group with one member",
        what="reads its topic",
        when="since a few seconds",
        why="its type keeps start offsets, and no committed ones",
        describe=Says((at("groups", type="share", state="Stable"), at("groups.offsets", topic=topic))),
        lag=Says((at("groups", type="share"), at("groups.offsets", topic=topic))),
        doctor=Says((verdict("healthy"), "the log has every record that was released or given up")),
        blame=Says((blamed("rebalance", "joined|delivery state"),)),
        replay_log=Says((event("records-acknowledged"), event("delivery-state-initialized"))),
    )
