"""Made-up segments of `__consumer_offsets`, from a seed: group records, commits, transactions, gaps."""

import json
import random
from pathlib import Path

from kgroup.domain import uuid_text
from kgroup.protocol import group_records as r
from kgroup.protocol import streams_records as s
from kgroup.protocol.batches import LogRecord, encode_batch, end_marker_record
from kgroup.protocol.compression import Compression
from kgroup.protocol.subscription import Assignment, Subscription

START_MS = 1_760_000_000_000
TOPICS = {f"topic-{i}": bytes([i + 1]) * 16 for i in range(5)}
TOPOLOGY = s.StreamsGroupTopologyValue(
    epoch=0, subtopologies=(s.Subtopology(subtopology_id="0", source_topics=("topic-1",)),)
)
Pair = tuple[bytes, bytes | None]


def record(key: r.RecordKey, value: r.RecordValue | None, version: int | None = None) -> Pair:
    return r.encode_key(key), r.encode_value(value, version)


def commit(rng: random.Random, group: str, topic: str, partition: int, offset: int, ts: int) -> Pair:
    version = rng.choice([1, 2, 3, 4, 4, 4])
    more = {"topic_id": TOPICS[topic]} if version == 4 and rng.random() < 0.7 else {}
    if version == 1:
        more["expire_timestamp"] = ts + 86_400_000
    if version >= 3:
        more["leader_epoch"] = rng.randrange(9)
    value = r.OffsetCommitValue(
        offset=offset,
        metadata=rng.choice(["", "", "", "p\u00e4ckchen", "x" * 200]),
        commit_timestamp=ts,
        **more,
    )
    return record(r.OffsetCommitKey(group=group, topic=topic, partition=partition), value, version)


class World:
    """Groups of one partition; every step is the records of one batch."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.members: dict[str, list[str]] = {}
        self.epochs: dict[str, int] = {}
        # Seeds that found something are odd ones: they keep their groups.
        self.moody = seed % 2 == 0
        """Whether members of a consumer group change their subscriptions, all at once."""
        kinds = ("classic", "consumer", "simple", *(("streams",) if self.moody else ()))
        self.groups = [f"{kind}-{seed % 97}-{i}" for kind in kinds for i in range(4)]

    def commits(self, group: str, ts: int) -> list[Pair]:
        rng, topic = self.rng, self.rng.choice(sorted(TOPICS))
        found = []
        for partition in range(rng.randint(1, 5)):
            place = (group, topic, partition)
            step = rng.randint(0, 400) if rng.random() > 0.03 else -rng.randint(1, 50)
            self.offsets[place] = max(0, self.offsets.get(place, 0) + step)
            found.append(commit(rng, group, topic, partition, self.offsets[place], ts))
        return found

    def removal(self, group: str) -> list[Pair]:
        places = sorted(place for place in self.offsets if place[0] == group)
        gone = self.rng.sample(places, min(2, len(places)))
        for place in gone:
            del self.offsets[place]
        return [record(r.OffsetCommitKey(group=g, topic=t, partition=p), None) for g, t, p in gone]

    def change(self, group: str, ts: int) -> list[Pair]:
        members = self.members.setdefault(group, [])
        if members and self.rng.random() < 0.45:
            members.pop(self.rng.randrange(len(members)))
        else:
            members.append(f"m{self.rng.randrange(10**6)}")
        self.epochs[group] = self.epochs.get(group, 0) + 1
        if group.startswith("streams"):
            return self.streams(group)
        return self.classic(group, ts) if group.startswith("classic") else self.consumer(group)

    def classic(self, group: str, ts: int) -> list[Pair]:
        members = self.members[group]
        if not members and self.rng.random() < 0.3:
            return [record(r.GroupMetadataKey(group=group), None)]
        topic = "topic-0"
        shares = {m: [p for p in range(6) if members.index(m) == p % len(members)] for m in members}
        told = tuple(
            r.MemberMetadata(
                member_id=m,
                group_instance_id=f"i-{m}" if m.endswith("1") else None,
                client_id="c",
                client_host="/10.0.0.1",
                rebalance_timeout=300_000,
                session_timeout=45_000,
                subscription=Subscription(topics=(topic,)).encode(),
                assignment=Assignment(partitions=tuple(_place(topic, p) for p in shares[m])).encode(),
            )
            for m in members
        )
        value = r.GroupMetadataValue(
            protocol_type="consumer",
            generation=self.epochs[group],
            protocol="range" if members else None,
            leader=members[0] if members else None,
            current_state_timestamp=ts,
            members=told,
        )
        return [record(r.GroupMetadataKey(group=group), value)]

    def streams(self, group: str) -> list[Pair]:
        epoch, members, gid = self.epochs[group], self.members[group], {"group_id": group}
        ready = self.rng.random() < 0.8
        about = s.StreamsGroupMetadataValue(
            epoch=epoch,
            validated_topology_epoch=0 if ready else -1,
            last_assignment_configs=(s.KeyValue(key="num.standby.replicas", value=str(epoch % 2)),),
        )
        made = [record(s.StreamsGroupMetadataKey(**gid), about)]
        if epoch == 1:
            made.append(record(s.StreamsGroupTopologyKey(**gid), TOPOLOGY))
        for i, m in enumerate(members):
            key = {**gid, "member_id": m}
            told = s.StreamsGroupMemberMetadataValue(client_id="c", process_id=f"p{i % 2}", topology_epoch=0)
            made.append(record(s.StreamsGroupMemberMetadataKey(**key), told))
            numbers = tuple(p for p in range(6) if ready and p % len(members) == i)
            given, spare = (s.TargetTaskIds(subtopology_id="0", partitions=n) for n in (numbers, (i % 6,)))
            target = s.StreamsGroupTargetAssignmentMemberValue(active_tasks=(given,), standby_tasks=(spare,))
            made.append(record(s.StreamsGroupTargetAssignmentMemberKey(**key), target))
            now = s.StreamsGroupCurrentMemberAssignmentValue(
                member_epoch=epoch,
                previous_member_epoch=epoch - 1,
                state=self.rng.choice((1, 1, 3)),
                active_tasks=(s.TaskIds(subtopology_id="0", partitions=numbers),),
                standby_tasks=(s.TaskIds(subtopology_id="0", partitions=(i % 6,)),),
            )
            made.append(record(s.StreamsGroupCurrentMemberAssignmentKey(**key), now))
        value = s.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch)
        return [*made, record(s.StreamsGroupTargetAssignmentMetadataKey(**gid), value)]

    def consumer(self, group: str) -> list[Pair]:
        epoch, members = self.epochs[group], self.members[group]
        topics = ("topic-1", "topic-2")[: 1 + (self.moody and epoch % 2)]
        gid = {"group_id": group}
        made = [record(r.ConsumerGroupMetadataKey(**gid), r.ConsumerGroupMetadataValue(epoch=epoch))]
        for i, m in enumerate(members):
            key = {**gid, "member_id": m}
            told = r.ConsumerGroupMemberMetadataValue(
                client_id="c", client_host="/10.0.0.2", subscribed_topic_names=topics
            )
            made.append(record(r.ConsumerGroupMemberMetadataKey(**key), told))
            share = tuple(p for p in range(6) if p % len(members) == i)
            target = r.TargetTopicPartitions(topic_id=TOPICS["topic-1"], partitions=share)
            value = r.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=(target,))
            made.append(record(r.ConsumerGroupTargetAssignmentMemberKey(**key), value))
            held = r.TopicPartitions(topic_id=TOPICS["topic-1"], partitions=share)
            now = r.ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=epoch, previous_member_epoch=epoch - 1, state=0, assigned_partitions=(held,)
            )
            made.append(record(r.ConsumerGroupCurrentMemberAssignmentKey(**key), now))
        made.append(
            record(
                r.ConsumerGroupTargetAssignmentMetadataKey(**gid),
                r.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch),
            )
        )
        return made


def _place(topic: str, partition: int) -> object:
    from kgroup.domain import TopicPartition

    return TopicPartition(topic, partition)


def made_batches(seed: int, batches: int, first_offset: int = 0) -> list[bytes]:
    """That many batches of one partition's log; gaps, transactions, compressed batches among them."""
    world, rng = World(seed), random.Random(seed + 1)
    made: list[bytes] = []
    base, ts, pending = first_offset, START_MS, []
    while len(made) < batches:
        ts += rng.randint(0, 90_000)
        base += rng.randint(1, 30) if rng.random() < 0.004 else 0
        group, luck = rng.choice(world.groups), rng.random()
        more: dict[str, object] = {"compression": rng.choice([Compression.NONE] * 6 + [*Compression])}
        if luck < 0.05 and not group.startswith("simple"):
            pairs = world.change(group, ts)
        elif luck < 0.07:
            pairs = world.removal(group) or world.commits(group, ts)
        elif luck < 0.12:
            pending.append(rng.randrange(40, 44))
            more |= {
                "producer_id": pending[-1],
                "producer_epoch": 0,
                "base_sequence": 0,
                "transactional": True,
            }
            pairs = world.commits(group, ts)
        elif luck < 0.16 and pending:
            more = {"producer_id": pending.pop(), "producer_epoch": 0, "transactional": True, "control": True}
            made.append(
                encode_batch([_stamped(end_marker_record(rng.random() < 0.7), ts)], base_offset=base, **more)
            )
            base += 1
            continue
        else:
            pairs = world.commits(group, ts)
        # Commits share a batch with others' writes; the records of one write have one time.
        apart = 3 if pairs and pairs[0][0][:2] == b"\0\1" and pairs[0][1] is not None else 1
        records = [LogRecord(key, value, timestamp_ms=ts + i % apart) for i, (key, value) in enumerate(pairs)]
        made.append(encode_batch(records, base_offset=base, **more))
        base += len(records)
    return made


def _stamped(record: LogRecord, ts: int) -> LogRecord:
    return LogRecord(record.key, record.value, timestamp_ms=ts)


def write_log(folder: Path, seed: int, batches: int, segments: int = 3, first_offset: int = 0) -> None:
    """A partition's folder with several segments, and `topics.json` beside it."""
    folder.mkdir(parents=True)
    made = made_batches(seed, batches, first_offset)
    size = -(-len(made) // segments)
    for start in range(0, len(made), size):
        part = made[start : start + size]
        name = int.from_bytes(part[0][:8], "big")
        (folder / f"{name:020d}.log").write_bytes(b"".join(part))
    write_names(folder.parent)


def write_names(folder: Path) -> None:
    """`topics.json` with the topics of made logs."""
    told = {name: uuid_text(topic_id) for name, topic_id in TOPICS.items()}
    (folder / "topics.json").write_text(json.dumps(told), encoding="utf-8")
