"""Brokers that restart, clocks that are wrong, rights that are taken away."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop.coordinating import coordinates
from tests.interop.kafka import RealKafka

from .playing import incident
from .scene import LONG_MS, Scene
from .truth import HEALTHY, Next, Recorded, Says, Truth, at, blamed, event, finding, verdict

FIVE_MINUTES = 300
UNREACHABLE = "UNREACHABLE|not reachable|unreachable|no broker answer"


@incident(19, broker="restarted")
def broker_restarted_while_waiting(scene: Scene) -> Truth:
    """The broker is killed and comes back while an operator waits for a second member."""
    topic, first = scene.caught_up("fleet-a", 20, session_ms=LONG_MS)
    waiting = scene.begin("wait", scene.group, "--for", "members=2", "--stop-after", "100s")
    watching = scene.begin("watch", scene.group, "--events", "--until", "members=2", "--stop-after", "100s")
    scene.sleep(3)
    scene.server.kill9()
    scene.sleep(2)
    scene.server.start()
    coordinates(scene.server)
    second = scene.reader("fleet-b", topic, session_ms=LONG_MS)
    scene.settled(topic, 4, first, second, each=2)
    waited, watched = (scene.ended(each) for each in (waiting, watching))
    scene.until_read(topic, dict.fromkeys(range(4), 20))
    limited = [
        scene.kgroup("wait", scene.group, "--for", "members=5", "--interval", "100ms", "--stop-after", "1s")
        for _ in range(6)
    ]
    return Truth(
        who="the only broker",
        what="killed and started again; nothing was lost",
        when="while `wait` and `watch` looked",
        why="an outage",
        describe=Says((at("groups", state="Stable"),)),
        lag=Says((at("groups", total_lag="^0$"),)),
        doctor=HEALTHY,
        blame=Says((blamed("rebalance", "fleet-b.* joined"),)),
        replay_log=Says((event("member-joined", detail="fleet-b"),), (event("group-deleted"),)),
        also=(
            ("describe", Says(code=0, answer=waited)),
            ("describe", Says(code=0, answer=watched)),
            *(("describe", Says((), (UNREACHABLE,), code=7, answer=each)) for each in limited),
        ),
        record=Recorded("^brokers$", "", passes=True),
    )


@incident(20)
def clock_of_the_operator(scene: Scene) -> Truth:
    """The operator's clock is five minutes ahead of the broker's."""
    topic, reader = scene.caught_up("time-a", 20, 2, at=10)
    reader.close()
    scene.until(lambda: scene.asked("describe").group(scene.group)["state"] == "Empty", "nobody is left")
    stale = scene.kgroup("delete", scene.group, "--stale-for", "3m", clock_s=FIVE_MINUTES)
    script = Producer({"bootstrap.servers": scene.server.bootstrap, "transactional.id": f"{scene.name}-tx"})
    script.init_transactions(30)
    outsider = Consumer({"bootstrap.servers": scene.server.bootstrap, "group.id": scene.group})
    script.begin_transaction()
    held = [TopicPartition(topic, 0, 15)]
    script.send_offsets_to_transaction(held, outsider.consumer_group_metadata(), 20)
    scene.sleep(11)
    ahead = scene.kgroup("doctor", scene.group, clock_s=FIVE_MINUTES)
    script.abort_transaction(20)
    outsider.close()
    long = r"(at least|for) (29\d|3\d\d) s"
    # A KRaft controller tells the time; kgroup's broker has none.
    tells_time = isinstance(scene.server, RealKafka)
    return Truth(
        who="the operator's machine",
        what="its clock is five minutes ahead of the broker's",
        when="during all commands that are asked with it",
        why="no time synchronisation",
        describe=Says((at("groups", state="Empty"),)),
        lag=Says((at("groups", total_lag="^20$"),)),
        doctor=HEALTHY,
        blame=Says((blamed("rebalance", "left"),)),
        replay_log=Says((event("transaction-aborted"),)),
        also=(
            (
                "describe",
                Says(
                    ("clock",),
                    (rf'"group_id": "{scene.group}"[^}}]*"deletes?"', "would delete"),
                    code=0 if tells_time else 5,
                    answer=stale,
                ),
            ),
            (
                "doctor",
                Says(
                    (verdict("sick"), finding("error", "held open"), finding("error", "clock")),
                    (long,),
                    code=8,
                    answer=ahead,
                ),
            ),
        ),
        record=Recorded(r"^transaction app\d\d-tx$", "KG309", passes=True),
    )


@incident(20)
def clocks_of_the_producers(scene: Scene) -> Truth:
    """Producers' clocks are five minutes ahead: unread records come from the future."""
    topic, reader = scene.caught_up("time-b", 10, 2)
    reader.close()
    scene.produce(topic, 30, 2, at_ms=int(time.time() * 1000) + FIVE_MINUTES * 1000)
    return Truth(
        who="the producers",
        what="60 unread records carry times five minutes from now",
        when="now",
        why="their clocks are wrong",
        describe=Says((at("groups", state="Empty"),)),
        lag=Says((at("groups", total_lag="^60$"),)),
        doctor=Says((verdict("healthy"),)),
        blame=Says((blamed("rebalance", "left"),)),
        replay_log=Says((event("group-emptied"),)),
        also=(
            (
                "lag",
                Says(
                    (at("groups", max_time_lag_ms="^null$"), "future|clock|ahead"),
                    (at("groups", max_time_lag_ms=r"^-?\d"),),
                    argv=("lag", "--time"),
                ),
            ),
        ),
    )


@incident(25, broker="locked")
def rights_taken_away(scene: Scene) -> Truth:
    """A reader loses the right to read its topic: it stays in the group and reads nothing any more."""
    topic = scene.topic()
    scene.flow(topic)
    scene.allow("bob", topic)
    login = {
        "bootstrap_servers": scene.server.address("SASL_PLAINTEXT"),  # type: ignore[attr-defined]
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "bob",
        "sasl_password": "bob-secret",
    }
    reader = scene.reader("safe-a", topic, session_ms=LONG_MS, **login)
    scene.settled(topic, 4, reader)
    scene.until_regular(topic)
    scene.forbid("bob", topic)
    scene.sleep(70)  # nobody else commits: suspected after half a minute, certain after as long again
    file = scene.folder / "bob.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={module} required username="bob" password="bob-secret";\n'
    )
    as_bob = ("-b", login["bootstrap_servers"], "--command-config", str(file))
    asked_by_bob = scene.kgroup("lag", scene.group, *as_bob)
    unseen = "no record and no answer names the login of a member, nor a request that was refused"
    ends = scene.ends(topic)

    def reads_on(_: Scene) -> None:
        reader.close()
        scene.again(reader)
        scene.until_read(topic, ends)

    return Truth(
        who="safe-a, which logs in as bob",
        what="heartbeats, but may neither read its topic nor commit",
        when="for 70 s",
        why="the ACL that allows bob READ on the topic was removed",
        describe=Says((at("groups.members", client_id="safe-a"),)),
        lag=Says((at("groups", total_lag=r"^[1-9]\d+$"),)),
        doctor=Says(
            (
                verdict("sick"),
                finding("error", rf"safe-a.*{topic}|{topic}.*safe-a"),
                finding("error", "rights; which, is unknown, because"),
            ),
            code=8,
            cannot=unseen,
        ),
        blame=Says((blamed("rebalance", "safe-a"),), (event("member-left-or-expired"),)),
        replay_log=Says((event("committed"),)),
        cause='safe-a[^"]*has committed nothing',
        next=Next("look at that process and its log", reads_on, by_hand=lambda _: scene.allow("bob", topic)),
        also=(("lag", Says((), (at("groups", total_lag="^0$"),), code=6, answer=asked_by_bob)),),
        record=Recorded(r"^group app\d\d$", "KG310", passes=True),
    )
