"""Members that live and read nothing: hung, stalled, or before a record that they cannot take."""

from __future__ import annotations

from .playing import incident
from .scene import Scene
from .truth import Next, Recorded, Says, Truth, at, blamed, event, finding, verdict


@incident(5, sample=("kgroup",))
def reader_stalled(scene: Scene) -> Truth:
    """One of two members heartbeats and commits nothing any more; the other one keeps up."""
    slow = {"max_poll_interval_ms": "600000"}
    topic, (_, stalled) = scene.sharing({"ship-a": {}, "ship-b": slow})
    scene.until_regular(topic)
    parts = "|".join(str(number) for _, number in stalled.state().assignment)
    stalled.freeze()
    scene.sleep(25)
    ends = scene.ends(topic)

    def restart(_: Scene) -> None:
        stalled.kill()
        scene.again(stalled)

    return Truth(
        who="ship-b, one of two members",
        what="its poll loop hangs: it heartbeats, its two partitions stand still",
        when="25 s ago; max.poll.interval.ms would end it after 10 minutes",
        why="the application does not return from processing",
        describe=Says((at("groups", state="Stable"),)),
        lag=Says((at("groups", total_lag=r"^[1-9]\d+$", unknown_partitions="^0$"),)),
        doctor=Says(
            (
                verdict("sick"),
                finding("error", "ship-b"),
                finding("error", rf"{topic}[-:]({parts})"),
                finding("error", r"commit.*20\d\d-\d\d-\d\dT|for (at least )?[\d.]+ s"),
            ),
            (finding(".*", "ship-a.*(stopped|stalled|nothing)"),),
            code=8,
        ),
        blame=Says((blamed("rebalance", "joined"),), ("member-left-or-expired",)),
        replay_log=Says((event("committed"),), (event("member-left-or-expired"),)),
        cause='ship-b[^"]*(nothing|no commit|stands? still|stalled|stopped|not committed)',
        next=Next("ship-b|its process", lambda _: scene.until_read(topic, ends), by_hand=restart),
        record=Recorded(r"^group app\d\d$", "KG310"),
    )


@incident(4)
def hung_in_poll_classic(scene: Scene) -> Truth:
    """A member hangs past max.poll.interval.ms and is out; the other member takes its partitions."""
    limits = {"session_ms": 3000, "max_poll_interval_ms": "6000"}
    topic, (busy, hung) = scene.sharing({"ship-a": {}, "ship-b": limits})
    scene.until_read(topic, dict.fromkeys(range(4), 5))
    hung.freeze()
    scene.settled(topic, 4, busy)
    scene.until_read(topic, scene.ends(topic))
    return Truth(
        who="ship-b, one of two members",
        what="left the group by itself; ship-a reads its partitions",
        when="6 s after its last poll: max.poll.interval.ms",
        why="the application did not return from processing in time",
        describe=Says((at("groups", state="Stable", members="ship-a"),), (at("groups", members="ship-b"),)),
        lag=Says((at("groups", total_lag=r"^\d+$", unknown_partitions="^0$"),)),
        doctor=Says((verdict("healthy"),)),
        blame=Says((blamed("rebalance", "ship-b"), blamed("rebalance", r"max\.poll\.interval.*6 s"))),
        replay_log=Says((event("member-left-or-expired", cause=r"max\.poll\.interval.*6 s"),)),
        cause=r"max\.poll\.interval[^\"]*6 s",
    )


@incident(4)
def hung_in_poll_consumer(scene: Scene) -> Truth:
    """A member of the consumer protocol hangs past max.poll.interval.ms, is out, and returns under its id."""
    limits = {"max_poll_interval_ms": "4000"}
    topic, (busy, hung) = scene.sharing({"ship-a": {}, "ship-b": limits}, client="java", protocol="consumer")
    scene.until_read(topic, dict.fromkeys(range(4), 5))
    hung.freeze(12)
    scene.settled(topic, 4, busy)
    scene.settled(topic, 4, busy, hung, each=2)
    scene.until_read(topic, scene.ends(topic))
    returned = "same (member )?id|(process|it) (lived|lives) on|returned"
    return Truth(
        who="ship-b, one of two members",
        what="left when it had not polled for 4 s, and joined again with the same member id",
        when="12 s after it had begun to hang",
        why="its process lived on and polled again",
        describe=Says((at("groups", state="Stable", members="ship-a.*ship-b|ship-b.*ship-a"),)),
        lag=Says((at("groups", total_lag=r"^\d+$", unknown_partitions="^0$"),)),
        doctor=Says((verdict("healthy"),)),
        blame=Says((blamed("rebalance", f"ship-b.*({returned})"),)),
        replay_log=Says((event("member-joined", detail__cause=returned),)),
        cause=returned,
    )


@incident(22)
def poison_record(scene: Scene) -> Truth:
    """A member cannot take one record: this partition's offset stands still, those of its others go on."""
    topic = scene.topic()
    scene.flow(topic)
    reader = scene.reader("ship-a", topic, commits=False)
    scene.settled(topic, 4, reader)
    scene.produce(topic, 10)
    scene.until(lambda: reader.state().read >= 40, "it has read something")
    reader.commit({(topic, 2): 7})

    def goes_on() -> None:
        reader.commit({(topic, n): end for n, end in scene.ends(topic).items() if n != 2})

    scene.repeat(goes_on)
    scene.sleep(25)
    ends = scene.ends(topic)
    return Truth(
        who=f"ship-a, on {topic} 2",
        what="the committed offset stands at 7, the member's other partitions go on",
        when="since 25 s",
        why="the record at offset 7 cannot be processed",
        describe=Says(
            (at("groups", state="Stable"), at("groups.offsets", partition="2", committed_offset="^7$"))
        ),
        lag=Says((at("groups.offsets", partition="^2$", lag=r"^[1-9]\d$"),)),
        doctor=Says(
            (
                verdict("sick"),
                finding("error", rf"{topic}[-:]2\b"),
                finding("error", r"\b7\b"),
                finding("error", "ship-a"),
            ),
            (finding(".*", rf"{topic}[-:][013]\b.*(stands|stalled|nothing)"),),
            code=8,
        ),
        blame=Says((blamed("rebalance", "joined"),)),
        replay_log=Says((event("committed"),)),
        cause=rf"{topic}[-:]2\b[^\"]*(nothing|no commit|stands? still|stalled|stopped|not committed)",
        next=Next(
            "ship-a|record",
            lambda _: scene.until_read(topic, ends),
            by_hand=lambda _: reader.commit({(topic, 2): ends[2]}),
        ),
        record=Recorded(r"^group app\d\d$", "KG310"),
    )
