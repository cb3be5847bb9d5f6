"""Topics that grow, go and come back, and records that retention deletes."""

from __future__ import annotations

import time

from .playing import incident
from .scene import Scene
from .truth import HEALTHY, Next, Recorded, Says, Truth, at, blamed, event, finding, verdict


@incident(21, sample=("kafka",))
def retention_eats_unread(scene: Scene) -> Truth:
    """A group is down; retention deletes records that it has not read."""
    topic, reader = scene.caught_up("bill-a", 20)
    reader.close()
    scene.produce(topic, 80)
    scene.delete_records(topic, {0: 50, 1: 60})

    def reads_on(_: Scene) -> None:
        fresh = scene.again(reader)
        scene.until_read(topic, dict.fromkeys(range(4), 100))
        assert {n: o for _, n, o, _ in fresh.records() if o in (50, 60) and n < 2} == {0: 60, 1: 60}

    return Truth(
        who=f"partitions 0 and 1 of {topic}",
        what="30 and 40 records are gone that the group had not read",
        when="while the group had no members",
        why="the log begins after the committed offset 20",
        describe=Says((at("groups", state="Empty"),)),
        lag=Says((at("groups.offsets", partition="^0$", lag="^(50|80)$"), at("groups", total_lag=r"^\d+$"))),
        doctor=Says(
            (
                verdict("sick"),
                finding("error", rf"{topic}-0.*\b30\b"),
                finding("error", rf"{topic}-1.*\b40\b"),
            ),
            code=8,
        ),
        blame=Says((blamed("rebalance", "bill-a|left"),), ("deletion",)),
        replay_log=Says((event("group-emptied"),), (event("offsets-deleted|offsets-expired-or-deleted"),)),
        cause=rf"{topic}-0: 30 records",
        next=Next("auto.offset.reset", reads_on, by_hand=lambda _: None),
        record=Recorded(r"^group app\d\d$", "KG308"),
    )


@incident(21)
def retention_about_to_eat(scene: Scene) -> Truth:
    """The oldest unread record is 50 minutes old, and the topic keeps records for 60."""
    topic = scene.topic(2, **{"retention.ms": "3600000"})
    minutes_ago = int(time.time() * 1000) - 50 * 60_000
    scene.produce(topic, 5, 2, at_ms=minutes_ago - 60_000)
    reader = scene.reader("bill-a", topic)
    scene.settled(topic, 2, reader)
    scene.until_read(topic, dict.fromkeys(range(2), 5))
    reader.close()
    scene.produce(topic, 40, 2, at_ms=minutes_ago)
    return Truth(
        who="the group, which has no members",
        what="40 unread records in each of two partitions will be deleted",
        when="in about 10 minutes",
        why="they are 50 minutes old, and retention.ms of their topic is one hour",
        describe=Says((at("groups", state="Empty"),)),
        lag=Says((at("groups", total_lag="^80$"),)),
        doctor=Says((finding("warn|error", rf"{topic}.*retention|retention.*{topic}"),), code=0),
        blame=Says((blamed("rebalance", "bill-a|left"),)),
        replay_log=Says((event("group-emptied"),)),
        cause=r"(lost|deleted|gone|expire)[^\"]*(in|within) (about )?(\d|1\d) ?m",
        next=Next(
            "read them before",
            lambda _: scene.until_read(topic, {0: 45, 1: 45}),
            by_hand=lambda _: scene.again(reader),
        ),
        also=(("lag", Says((at("groups", max_time_lag_ms=r"^(29|3\d)\d{5}$"),), argv=("lag", "--time"))),),
    )


@incident(11)
def partitions_added(scene: Scene) -> Truth:
    """A subscribed topic has more partitions than the group has seen; records in the new ones are unread."""
    topic = scene.topic()
    scene.produce(topic, 20)
    slow = {"topic_metadata_refresh_interval_ms": "600000", "metadata_max_age_ms": "600000"}
    readers = [scene.reader(label, topic, **slow) for label in ("web-a", "web-b")]
    scene.settled(topic, 4, *readers, each=2)
    scene.until_read(topic, dict.fromkeys(range(4), 20))
    scene.add_partitions(topic, 6)
    scene.produce(topic, 100, range(4, 6))
    scene.sleep(2)
    unread = (at("groups.offsets", partition="^4$", lag="^(100|null)$"),)
    also = (
        ("lag", Says(code=8, argv=("lag", "--fail-above", "10"))),
        ("lag", Says(code=7, argv=("wait", "--for", "lag=0", "--stop-after", "4s"))),
    )

    def restarted(_: Scene) -> None:
        for reader in readers:
            reader.close()
        fresh = [scene.again(reader) for reader in readers]
        scene.settled(topic, 6, *fresh, each=3)

    return Truth(
        who=f"partitions 4 and 5 of {topic}",
        what="belong to no member; 100 records each are unread",
        when="since they were added, seconds ago",
        why="the members have not refreshed their metadata since",
        describe=Says((at("groups", state="Stable"), at("groups.findings", code="KG104")), code=0),
        lag=Says(unread, (at("groups", total_lag="^0$"),)),
        doctor=Says((verdict("sick"), finding("error", rf"{topic}-4"), finding("error", "metadata")), code=8),
        blame=Says((blamed("rebalance", "joined"),)),
        replay_log=Says((event("rebalance-completed"),), (event("topics-changed"),)),
        cause=rf"{topic}-4[^\"]*(nobody|no member|not assigned|unassigned)",
        next=Next(
            "metadata|restart",
            lambda _: scene.until_read(topic, {4: 100, 5: 100, 0: 20}),
            by_hand=restarted,
        ),
        also=also,
        record=Recorded(r"^group app\d\d$", "KG104"),
    )


@incident(12)
def topic_deleted(scene: Scene) -> Truth:
    """A subscribed topic is deleted while it is read."""
    topic, kept = scene.topic(name="old"), scene.topic(name="kept")
    for each in (topic, kept):
        scene.produce(each, 20)
    reader = scene.reader("stock-a", [topic, kept])
    scene.until_read(topic, dict.fromkeys(range(4), 20))
    scene.until_read(kept, dict.fromkeys(range(4), 20))
    scene.delete_topic(topic)
    scene.until(lambda: not [t for t, _ in scene.committed() if t == topic], "its offsets are gone")
    scene.sleep(3)
    assert reader.state().fatal is None

    def back(_: Scene) -> None:
        scene.topic(name="old")
        scene.produce(topic, 10)

    gone = 'topic[^"]*(deleted|no longer exists|does not exist|gone)'
    return Truth(
        who=topic,
        what="deleted while stock-a reads it; the broker deleted its committed offsets",
        when="seconds ago",
        why="an administrator deleted the topic",
        describe=Says((at("groups", state="Stable"),)),
        lag=Says(
            (at("groups.topics", topic=kept, lag="^0$"),), (at("groups.offsets", topic=topic, lag=r"^\d"),)
        ),
        doctor=Says((finding("warn|error", rf"{topic}.*(not there|not exist|deleted)"),)),
        blame=Says((blamed("deletion", gone),), ("offsets.retention.minutes has passed",)),
        replay_log=Says((event("offsets-(deleted|expired-or-deleted)", detail__cause=gone),)),
        cause=rf"{topic}[^\"]*(not there|not exist|deleted)",
        next=Next("create", lambda _: scene.until_read(topic, dict.fromkeys(range(4), 10)), by_hand=back),
        record=Recorded("^topic .*-old$", "KG313"),
    )


@incident(12)
def topic_recreated(scene: Scene) -> Truth:
    """A topic is deleted and recreated under its name while a member reads it: it begins at 0 again."""
    topic, reader = scene.caught_up("stock-a", 90, at=90)
    scene.delete_topic(topic)
    scene.until(lambda: not scene.committed(), "its offsets are gone")
    scene.topic()
    scene.produce(topic, 20)
    scene.sleep(3)
    scene.settled(topic, 4, reader)
    # librdkafka commits by itself what is higher than before only.
    reader.commit({(topic, number): 20 for number in range(4)})
    recreated = "recreated"
    return Truth(
        who=topic,
        what="deleted and recreated under its name; offsets went from 90 to 20",
        when="seconds ago",
        why="the topic is a new one with another id",
        describe=Says((at("groups", state="Stable"),), ("KG301",)),
        lag=Says((at("groups", total_lag="^0$", unknown_partitions="^0$"),)),
        doctor=HEALTHY,
        blame=Says((blamed("rewind|deletion", recreated),), ('suspicious": true',)),
        replay_log=Says(
            (at("events", detail__cause=recreated),),
            (at("events", suspicious="true"),),
        ),
        cause=f"{topic} was deleted and recreated",
        record=Recorded("^topic ", "KG313", passes=True),
    )


@incident(12)
def commit_beyond_the_end(scene: Scene) -> Truth:
    """Offsets are committed that lie beyond the end of the log."""
    topic, reader = scene.caught_up("stock-a", 30, 2, at=30)
    reader.commit({(topic, 0): 100})
    reader.close()

    def lag_known(_: Scene) -> None:
        rows = scene.asked("lag").group(scene.group)["offsets"]
        assert [row["lag"] for row in rows] == [30, 0], rows

    return Truth(
        who=f"{topic} 0",
        what="the committed offset is 100, the log ends at 30",
        when="now",
        why="something committed an offset that was never written, or the log lost its end",
        describe=Says((at("groups.findings", code="KG301"),)),
        lag=Says(
            (at("groups", total_lag="^null$", unknown_partitions="^1$"),),
            (at("groups.offsets", lag="^-"), at("groups", total_lag=r"^-?\d")),
            code=0,
        ),
        doctor=Says((verdict("sick"), finding("error", rf"{topic}-0.*\b100\b")), ("--to-latest",), code=8),
        blame=Says(()),
        replay_log=Says((event("committed"),)),
        cause=rf"{topic}-0: 100 is 70 beyond the end 30",
        next=Next(r"kgroup reset-offsets \S+ --topic \S+ --to-earliest", lag_known),
        also=(
            ("lag", Says(code=8, argv=("lag", "--fail-above", "10"))),
            ("lag", Says(code=7, argv=("wait", "--for", "lag=0", "--stop-after", "3s"))),
        ),
        record=Recorded(r"^group app\d\d$", "KG301"),
    )


@incident(28)
def member_with_a_deleted_topic(scene: Scene) -> Truth:
    """A hanging consumer-protocol member keeps partitions of a topic that was deleted and recreated."""
    topic, hung = scene.caught_up("stock-a", 20, protocol="consumer", max_poll_interval_ms="300000")
    hung.freeze()
    scene.sleep(1)
    scene.delete_topic(topic)
    scene.topic()
    scene.produce(topic, 10)
    # A consumer group reads on while it reconciles, so only one that takes a minute is stuck.
    scene.sleep(65)

    def restart(_: Scene) -> None:
        hung.kill()
        scene.again(hung)

    return Truth(
        who="stock-a, the only member",
        what="holds four partitions of the topic's old id; nobody reads the new topic",
        when="since the topic was recreated",
        why="its poll loop hangs, so it does not give them up",
        describe=Says((at("groups.members", client_id="stock-a"),)),
        lag=Says((), (at("groups", total_lag="^0$"),)),
        doctor=Says(
            (
                finding("warn|error", "stock-a"),
                finding("warn|error", "deleted|recreated|old (topic )?id|give up"),
            ),
            code=8,
        ),
        blame=Says((blamed("rebalance", "topic"),)),
        replay_log=Says((event("topics-changed|member-revoking"),)),
        cause='stock-a[^"]*(give up|deleted|old)|(deleted|recreated)[^"]*stock-a',
        next=Next(
            "stock-a|its process",
            lambda _: scene.until_read(topic, dict.fromkeys(range(4), 10)),
            by_hand=restart,
        ),
        verify=Says((), (at("groups", verdict="differs"),)),
        record=Recorded(r"^group app\d\d$", "KG112|KG310", "metadata of subscribed topics|^no record says$"),
    )
