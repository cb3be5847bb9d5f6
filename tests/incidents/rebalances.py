"""Members that come, go and keep the others waiting."""

from __future__ import annotations

import signal

from .playing import incident
from .scene import FIVE_MINUTES, LONG_MS, Reader, Scene
from .truth import HEALTHY, Next, Recorded, Says, Truth, at, blamed, event, finding, verdict


@incident(23)
def storm(scene: Scene) -> Truth:
    """A member pauses for longer than its session, again and again: each time the group rebalances twice."""
    topic, (calm, pausing) = scene.sharing({"cart-a": {}, "cart-b": {}}, session_ms=1500)
    for _ in range(4):
        pausing.signal(signal.SIGSTOP)
        scene.settled(topic, 4, calm)
        pausing.signal(signal.SIGCONT)
        scene.settled(topic, 4, calm, pausing, each=2)

    def calmed(_: Scene) -> None:
        before = calm.state().rebalances
        scene.sleep(6)
        assert calm.state().rebalances == before
        scene.until_read(topic, scene.ends(topic))

    return Truth(
        who="cart-b, one of two members",
        what="taken out four times and back each time: ten generations",
        when="within some 20 s",
        why="its process pauses for longer than its session of 1.5 s",
        describe=Says((at("groups", state="Stable"),)),
        lag=Says((at("groups", unknown_partitions="^0$"),)),
        doctor=Says(
            (
                finding("warn|error", r"\b(8|9|10) rebalances"),
                finding("warn|error", "rebalance.*cart-b"),
                finding("warn|error", r"session.*1\.5 s|1\.5 s.*session"),
            ),
            (finding(".*", r"cart-a[^\";]*(left|expired|silent)"),),
        ),
        blame=Says((blamed("rebalance", "cart-b.* joined"),)),
        replay_log=Says((event("member-left-or-expired", cause=r"1\.5 s"),)),
        cause=r"cart-b[^\"]*(left or expired|expired|session)",
        next=Next("session|cart-b", calmed, by_hand=lambda _: None),
    )


@incident(2)
def dynamic_leader_killed(scene: Scene) -> Truth:
    """The leader of three dynamic members is killed; its session ends, another one leads."""
    topic = scene.topic(6)
    scene.flow(topic, 6)
    leader = scene.reader("cart-a", topic, client="java-3.7.2")
    scene.settled(topic, 6, leader)
    others = [scene.reader("cart-b", topic, client="kafka-python"), scene.reader("cart-c", topic)]
    scene.settled(topic, 6, leader, *others, each=2)
    leader.kill()
    scene.settled(topic, 6, *others, each=3)
    scene.until_read(topic, scene.ends(topic))
    return Truth(
        who="cart-a, the leader of three dynamic members",
        what="killed; the other two share its partitions",
        when="6 s after its last heartbeat",
        why="its session of 6 s ended",
        describe=Says((at("groups", state="Stable", members="cart-b.*cart-c|cart-c.*cart-b"),), ("cart-a",)),
        lag=Says((at("groups", total_lag=r"^\d+$", unknown_partitions="^0$"),)),
        doctor=HEALTHY,
        blame=Says((blamed("rebalance", "cart-a.*6 s"),), (at("groups.blames.event", cause="cart-[bc]"),)),
        replay_log=Says(
            (event("member-left-or-expired", detail="cart-a", cause="6 s"), event("leader-changed")),
        ),
        cause="cart-a[^;]* left or expired",
    )


@incident(3)
def rolling_restart_of_ten(scene: Scene) -> Truth:
    """Ten members without static ids are restarted one after the other: twenty rebalances."""
    clients = [{"client": each} for each in ("librdkafka", "kafka-python")]
    topic, members = scene.sharing({f"cart-{number}": clients[number % 2] for number in range(10)}, 10)
    for number in range(10):
        members[number].close()
        members[number] = scene.again(members[number])
        scene.settled(topic, 10, *members)
    scene.until_read(topic, scene.ends(topic))
    return Truth(
        who="ten dynamic members",
        what="each left and came back: the group rebalances twice for each",
        when="over some 20 s",
        why="a deployment; without group.instance.id each member is a new one",
        describe=Says((at("groups", state="Stable"),)),
        lag=Says((at("groups", unknown_partitions="^0$"),)),
        doctor=Says(
            (verdict("healthy"), finding("warn", r"\b[123]\d rebalances"), finding("warn", "joined"))
        ),
        blame=Says((blamed("rebalance", "cart-9.* joined"),)),
        replay_log=Says((event("member-joined"), event("member-left-or-expired"))),
        cause="cart-9[^;]* joined",
    )


@incident(8)
def cooperative_rebalance_and_a_kill(scene: Scene) -> Truth:
    """A sixth cooperative member joins, and another one is killed while partitions move."""
    sort = {"client": "java", "assignor": "cooperative-sticky"}
    topic, members = scene.sharing({f"geo-{number}": sort for number in range(5)}, 12)
    sixth = scene.reader("geo-5", topic, **{**sort, "client": "java-3.7.2"})  # type: ignore[arg-type]
    members[1].kill()
    left = [*members[:1], *members[2:], sixth]
    scene.settled(topic, 12, *left, each=2)
    scene.until_read(topic, scene.ends(topic))
    return Truth(
        who="geo-1, one of five cooperative members",
        what="killed while geo-5 joins; the five that are left share all partitions",
        when="6 s after its last heartbeat",
        why="its session of 6 s ended",
        describe=Says((at("groups", state="Stable", members="geo-5"),), (at("groups", members="geo-1"),)),
        lag=Says((at("groups", unknown_partitions="^0$"),)),
        doctor=HEALTHY,
        blame=Says((blamed("rebalance", "geo-[15]"),), ("records do not tell why",)),
        replay_log=Says(
            (event("member-left-or-expired", detail="geo-1"), event("member-joined", detail="geo-5"))
        ),
        cause="geo-1[^;]* left or expired|geo-5[^;]* joined",
    )


@incident(16)
def member_does_not_come_back_in_a_join(scene: Scene) -> Truth:
    """A member hangs in its poll loop as another one joins: the rebalance waits for it."""
    topic, (hung, fine) = scene.sharing({"web-a": {}, "web-b": {}}, max_poll_interval_ms="300000")
    scene.until_regular(topic)
    hung.freeze()
    scene.sleep(4)
    third = scene.reader("web-c", topic, max_poll_interval_ms="300000")
    scene.until(lambda: "Preparing" in scene.asked("describe").group(scene.group)["state"], "it rebalances")

    def goes_on(_: Scene) -> None:
        scene.settled(topic, 4, fine, third, each=2)
        scene.until_read(topic, scene.ends(topic))

    return Truth(
        who="web-a, one of two members as web-c joins",
        what="heartbeats and does not rejoin: nobody reads",
        when="since web-c joined, for up to 5 minutes",
        why="its poll loop hangs; max.poll.interval.ms is 5 minutes",
        describe=Says((at("groups", state="PreparingRebalance"),)),
        lag=Says((at("groups", unknown_partitions="^0$"),)),
        doctor=Says(
            (
                verdict("sick"),
                finding("error", "waits for (one or more of )?web-a"),
                finding("error", FIVE_MINUTES),
            ),
            (finding("error", "waits for (one or more of )?web-[bc]"),),
            code=8,
        ),
        blame=Says((blamed("rebalance", "joined"),)),
        replay_log=Says((event("rebalance-completed"),)),
        cause='waits for [^"]*web-a',
        next=Next(r"kgroup remove-members \S+ --member-id web-a\S+", goes_on),
        record=Recorded(r"^group app\d\d$", "KG112"),
    )


@incident(15)
def never_acknowledges_a_revocation(scene: Scene) -> Truth:
    """A consumer-protocol member hangs and does not give up partitions that another one waits for."""
    slow = {"protocol": "consumer", "max_poll_interval_ms": "300000"}
    topic, (hung,) = scene.sharing({"web-a": slow})
    scene.until_regular(topic)
    hung.freeze()
    scene.sleep(2)
    fine = scene.reader("web-b", topic, **slow)  # type: ignore[arg-type]
    scene.until(lambda: scene.asked("describe").group(scene.group)["state"] == "Reconciling", "it moves")
    scene.sleep(65)  # nobody else commits, so that it is dead is certain after a minute

    def goes_on(_: Scene) -> None:
        scene.settled(topic, 4, fine)
        scene.until_read(topic, scene.ends(topic))

    return Truth(
        who="web-a, as web-b joins",
        what="heartbeats and keeps two partitions that web-b waits for",
        when="since web-b joined, for up to 5 minutes",
        why="its poll loop hangs; its rebalance timeout is 5 minutes",
        describe=Says(
            (at("groups", state="Reconciling"), at("groups.findings", code="KG101", message="web-a"))
        ),
        lag=Says((at("groups", unknown_partitions="^0$"),)),
        doctor=Says(
            (finding("warn|error", "web-a.*give up"), finding("warn|error", FIVE_MINUTES)),
            ("previous owner",),
            code=8,
        ),
        blame=Says((blamed("rebalance", "web-b joined"),)),
        replay_log=Says((event("member-revoking", detail="web-a"),)),
        cause='web-a[^"]*(has to give up|has not)',
        next=Next("web-a|its process", goes_on, by_hand=lambda _: hung.kill()),
        record=Recorded(r"^group app\d\d$", "KG310|KG112", "web-b.* joined|^no record says$", passes=True),
    )


@incident(24, broker="small")
def group_is_full(scene: Scene) -> Truth:
    """A fourth member comes to a group of three, and group.max.size is 3."""
    topic = scene.topic()
    scene.flow(topic)
    members = [scene.reader(f"bid-{number}", topic) for number in range(3)]
    scene.settled(topic, 4, *members)
    refused = scene.reader("bid-3", topic)
    scene.sleep(5)
    assert not refused.state().assignment
    unseen = "a refused join leaves no record"

    def one_less(_: Scene) -> None:
        members[0].close()
        refused.kill()
        scene.again(refused)

    return Truth(
        who="bid-3",
        what="refused again and again with GROUP_MAX_SIZE_REACHED; the other three read everything",
        when="since it started",
        why="group.max.size is 3",
        describe=Says((at("groups", state="Stable"),), ("bid-3",)),
        lag=Says((at("groups", unknown_partitions="^0$"),)),
        doctor=Says((verdict("healthy"), finding("info|warn", r"3 .*group\.max\.size|group\.max\.size.* 3"))),
        blame=Says((at("limits", **{"": "refused requests"}),), ("bid-3",), cannot=unseen),
        replay_log=Says((at("limits", **{"": "refused requests"}),), ("bid-3",), cannot=unseen),
        cause=r"group\.max\.size",
        next=Next(
            "group.max.size",
            lambda _: scene.settled(topic, 4, *members[1:], scene.readers[-1]),
            by_hand=one_less,
        ),
    )


@incident(27)
def protocols_without_a_common_one(scene: Scene) -> Truth:
    """A member with another assignor is refused again and again: no protocol suits all."""
    topic, _ = scene.sharing({"bid-a": {"assignor": "range"}})
    refused = scene.reader("bid-b", topic, assignor="roundrobin")
    scene.sleep(5)
    assert not refused.state().assignment
    scene.until_read(topic, scene.ends(topic))
    unseen = "a refused join leaves no record, and describing a group shows members only"
    return Truth(
        who="bid-b",
        what="refused again and again with INCONSISTENT_GROUP_PROTOCOL; bid-a reads everything",
        when="since it started",
        why="it has roundrobin only, the group has range",
        describe=Says((at("groups", state="Stable", assignor="range"),), ("bid-b",)),
        lag=Says((at("groups", total_lag=r"^\d+$", unknown_partitions="^0$"),)),
        doctor=HEALTHY,
        blame=Says((at("limits", **{"": "refused requests"}),), ("bid-b",), cannot=unseen),
        replay_log=Says((at("limits", **{"": "refused requests"}),), ("bid-b",), cannot=unseen),
    )


@incident(17)
def one_slow_of_a_hundred(scene: Scene) -> Truth:
    """Of a hundred members one stalls."""
    topic = scene.topic(100)
    scene.flow(topic, 100, every=1)
    process = scene.process("java")
    crowd = [
        scene.reader(f"bulk-{n}", topic, client="java", session_ms=LONG_MS, process=process)
        for n in range(99)
    ]
    slow = scene.reader("bulk-slow", topic, session_ms=LONG_MS, max_poll_interval_ms="600000")
    members: list[Reader] = [*crowd, slow]
    scene.until(lambda: all(len(m.state().assignment) == 1 for m in members), "all have one", 150)
    scene.until(lambda: len(scene.committed()) == 100, "all have committed", 60)
    (mine,) = (number for _, number in slow.state().assignment)
    slow.freeze()
    scene.sleep(30)
    return Truth(
        who=f"bulk-slow, which has {topic} {mine}",
        what="its poll loop hangs; the other 99 go on",
        when="for 30 s",
        why="the application does not return from processing",
        describe=Says((at("groups", state="Stable"),)),
        lag=Says((at("groups.offsets", partition=f"^{mine}$", lag=r"^[1-9]\d*$"),)),
        doctor=Says(
            (
                verdict("sick"),
                finding("error", rf"bulk-slow.*{topic}[-:]{mine}\b|{topic}[-:]{mine}\b.*bulk-slow"),
            ),
            code=8,
        ),
        blame=Says((blamed("rebalance", "joined"),)),
        replay_log=Says((event("member-joined", detail="bulk-slow"),)),
        cause="bulk-slow",
        next=Next("bulk-slow|its process", lambda _: None, by_hand=lambda _: slow.kill()),
        record=Recorded(r"^group app\d\d$", "KG310", closes=False),
    )
