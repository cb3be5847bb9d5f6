"""Transactions that stay open, and offsets that come with one."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition

from .playing import incident
from .scene import Scene
from .truth import Next, Recorded, Says, Truth, at, blamed, event, finding, verdict


def _producer(scene: Scene, name: str) -> Producer:
    """A transactional producer whose transactions the broker ends after ten minutes."""
    made = Producer(
        {
            "bootstrap.servers": scene.server.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 600_000,
        }
    )
    made.init_transactions(30)
    return made


@incident(14, sample=("kgroup",))
def transaction_left_open(scene: Scene) -> Truth:
    """A producer leaves a transaction open; a read_committed reader gets nothing written after it."""
    topic, _ = scene.caught_up("fraud-a", 20, 2, isolation_level="read_committed")
    hanging = _producer(scene, "ledger-7")
    hanging.begin_transaction()
    hanging.produce(topic, b"open", partition=0)
    hanging.flush(10)
    scene.produce(topic, 300, 2)
    scene.until_read(topic, {1: 320})
    scene.sleep(15)
    return Truth(
        who="the producer of the transactional id ledger-7",
        what=f"its transaction on {topic} 0 is open: fraud-a reads nothing behind offset 20",
        when="for some 15 s; its timeout is 10 minutes",
        why="read_committed readers end at the last stable offset",
        describe=Says((at("groups", state="Stable"),)),
        lag=Says(
            (
                at("groups.offsets", partition="^0$", lag="^301$", last_stable_offset="^20$"),
                at("groups.offsets.held_open_by", start_offset="^20$"),
                at("groups", total_lag="^301$"),
            )
        ),
        doctor=Says(
            (
                verdict("sick"),
                finding("error", rf"{topic}[-:]0\b"),
                finding("error", "ledger-7"),
                finding("error", "last stable offset|read_committed"),
            ),
            code=8,
        ),
        blame=Says((blamed("rebalance", "joined"),)),
        replay_log=Says((event("committed"),)),
        cause=r"transaction[^\"]*",
        next=Next(
            "transaction",
            lambda _: scene.until_read(topic, {0: 321, 1: 320}),
            by_hand=lambda _: hanging.abort_transaction(20),
        ),
        record=Recorded("^transaction ledger-7$", "KG311"),
    )


@incident(14)
def offsets_held_open(scene: Scene) -> Truth:
    """A transaction has written offsets and does not end: who joins next waits for them."""
    topic, reader = scene.caught_up("fraud-a", 20, 2, at=10)
    reader.close()
    hanging = _producer(scene, "ledger-8")
    outsider = Consumer({"bootstrap.servers": scene.server.bootstrap, "group.id": scene.group})
    hanging.begin_transaction()
    hanging.produce(topic, b"open", partition=0)
    hanging.send_offsets_to_transaction(
        [TopicPartition(topic, 0, 15)], outsider.consumer_group_metadata(), 20
    )
    hanging.flush(10)
    scene.sleep(11)
    return Truth(
        who="the producer of the transactional id ledger-8",
        what=f"holds the offset of {topic} 0 open",
        when="for some 11 s; its timeout is 10 minutes",
        why="it has neither committed nor aborted",
        describe=Says(
            (at("groups", state="Empty"), at("groups.offsets", partition="^0$", committed_offset="^10$"))
        ),
        lag=Says((at("groups.offsets", partition="^1$", lag="^10$"),)),
        doctor=Says((verdict("sick"), finding("error", rf"{topic}-0.*ledger-8")), code=8),
        blame=Says((blamed("rebalance", "fraud-a|left"),)),
        replay_log=Says((event("group-emptied"),), (event("rewound|transaction-committed"),)),
        cause="ledger-8",
        next=Next(
            "kafka-transactions.* abort|restart its producer",
            lambda _: scene.until_exactly(topic, {0: 10, 1: 10}),
            by_hand=lambda _: hanging.abort_transaction(20),
        ),
        record=Recorded("^transaction ledger-8$", "KG309"),
    )


@incident(29)
def offsets_committed_by_hand(scene: Scene) -> Truth:
    """A script sets back offsets of an active group, in a transaction that names no member."""
    topic, _ = scene.caught_up("mail-a", 50)
    script = _producer(scene, "fix-offsets")
    outsider = Consumer({"bootstrap.servers": scene.server.bootstrap, "group.id": scene.group})
    script.begin_transaction()
    back = [TopicPartition(topic, number, 5) for number in range(3)]
    script.send_offsets_to_transaction(back, outsider.consumer_group_metadata(), 20)
    script.commit_transaction(20)
    scene.until_exactly(topic, {0: 5, 1: 5, 2: 5, 3: 50})
    return Truth(
        who="a script with the transactional id fix-offsets",
        what="three of four partitions went back from 50 to 5; mail-a lives and reads on at 50",
        when="now",
        why="an offset commit in a transaction is taken without a member id",
        describe=Says((at("groups", state="Stable"),)),
        lag=Says((at("groups", total_lag="^135$", unknown_partitions="^0$"),)),
        doctor=Says((), (finding("error", "stall|stands still"),)),
        blame=Says(
            (
                blamed("rewind", "transaction"),
                blamed("rewind", rf"{topic}[-:]0-2|{topic}[-:]0.*{topic}[-:]1.*{topic}[-:]2"),
            )
        ),
        replay_log=Says((event("transaction-committed"), event("rewound", detail="45", cause="transaction"))),
        cause="a transaction of producer",
    )
