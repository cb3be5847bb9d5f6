"""What every Java client has to find the same on Kafka and on ours."""

from __future__ import annotations

from typing import Any

from ..driver import Member, fatal
from ..waiting import eventually
from .programs import Run, partitions

KEYS = ["cleanup.policy", "retention.ms", "compression.type", "max.message.bytes"]


def topics(run: Run) -> None:
    run.do("cluster", "admin.cluster")
    name = run.name
    run.do("make", "admin.create_topic", topic=name, partitions=3, config={"retention.ms": "60000"})
    run.refused("again", "admin.create_topic", topic=name, partitions=3)
    run.refused("no partitions", "admin.create_topic", topic=f"{name}-0", partitions=0)
    run.refused("three replicas", "admin.create_topic", topic=f"{name}-3", partitions=1, replicas=3)
    run.refused("bad name", "admin.create_topic", topic="a b", partitions=1)
    run.refused(
        "bad config", "admin.create_topic", topic=f"{name}-c", partitions=1, config={"retention.ms": "x"}
    )
    run.do("described", "admin.describe_topic", topic=name)
    run.refused("unknown", "admin.describe_topic", topic=f"{name}-unknown")
    run.do("more", "admin.add_partitions", topic=name, count=5)
    run.refused("fewer", "admin.add_partitions", topic=name, count=2)
    run.do("described again", "admin.describe_topic", topic=name)
    run.do("config", "admin.config", topic=name, keys=KEYS)
    run.do("compacted", "admin.set_config", topic=name, config={"cleanup.policy": "compact"})
    run.refused("not a policy", "admin.set_config", topic=name, config={"cleanup.policy": "burn"})
    run.refused("not a setting", "admin.set_config", topic=name, config={"no.such.setting": "1"})
    run.do("config again", "admin.config", topic=name, keys=KEYS)
    run.tell("listed", [each for each in run.call("admin.topics") if each.startswith(name)])
    run.since((2, 7), "features", "admin.features")
    run.do("gone", "admin.delete_topic", topic=name)
    eventually(lambda: name not in run.call("admin.topics"), what="the topic is gone")
    run.refused("gone again", "admin.delete_topic", topic=name)


def groups_without_members(run: Run) -> None:
    name, topic = run.name, run.topic(2)
    both = [[topic, 0], [topic, 1]]
    run.either("absent", "admin.describe", group=name)
    run.do("no offsets", "admin.offsets", group=name)
    run.refused("delete nothing", "admin.delete", group=name)
    run.since(
        (2, 5), "offsets set", "admin.alter_offsets", group=name, offsets=[[topic, 0, 5, "m"], [topic, 1, 7]]
    )
    run.tell("listed", run.call("admin.list").get(name))
    run.either("described", "admin.describe", group=name)
    run.do("offsets", "admin.offsets", group=name)
    if run.version >= (2, 5):
        run.refused("unknown topic", "admin.alter_offsets", group=name, offsets=[["no-such-topic", 0, 1]])
        run.do("offset deleted", "admin.delete_offsets", group=name, partitions=both[:1])
        run.do("one left", "admin.offsets", group=name)
        run.either("deleted again", "admin.delete_offsets", group=name, partitions=both[:1])
        run.do("group deleted", "admin.delete", group=name)
    run.either("offsets of none", "admin.offsets", group=name)
    run.either("offset of none deleted", "admin.delete_offsets", group=name, partitions=both)
    run.either("removed from none", "admin.remove", group=name, instances=["nobody"])


def producers(run: Run) -> None:
    topic = run.topic(2)
    kinds = {
        "plain": {"enable.idempotence": "false", "acks": "1"},
        "unheard": {"enable.idempotence": "false", "acks": "0"},
        "idempotent": {"enable.idempotence": "true"},
        "snappy": {"compression.type": "snappy"},
        "zstd": {"compression.type": "zstd"},
    }
    for name, config in kinds.items():
        handle = f"{run.name}-{name}"
        run.do(f"{name} opened", "producer.open", name=handle, config=config)
        rows = [[number % 2, f"{name}-{number}"] for number in range(4)]
        sent = run.call("producer.send", name=handle, topic=topic, rows=rows)
        run.tell(f"{name} sent", None if name == "unheard" else sent)
        run.do(f"{name} closed", "producer.close", name=handle)
    run.tell("read", read(run, 20, topic=topic))
    run.do("read since never", "read", topic=topic, since=1 << 60)
    for step, version, spec in (
        ("first", (2, 5), "earliest"),
        ("end", (2, 5), "latest"),
        ("newest", (3, 0), "maxTimestamp"),
    ):
        given = {"partitions": [[topic, 0], [topic, 1]], "spec": spec}
        found = run.call("admin.list_offsets", **given) if run.version >= version else None
        # which record is the newest is a matter of milliseconds
        run.tell(step, sorted(found) if found and step == "newest" else found)


def read(run: Run, count: int, **given: str) -> Any:
    """The topic as a consumer without a group reads it, once there are as many records."""

    def seen() -> Any:
        found = run.call("read", **given)
        assert len(found["rows"]) == count, found
        return found

    return eventually(seen)


def transactions(run: Run) -> None:
    topic, name = run.topic(1), run.name
    of_it = {"name": name, "topic": topic}
    run.do("opened", "producer.open", name=name, config={"transactional.id": name})
    for step in ("commit", "abort", "commit"):
        run.do("begun", "producer.begin", name=name)
        run.do("sent", "producer.send", rows=[[0, f"{step}-{number}"] for number in range(3)], **of_it)
        if run.version < (4, 0):
            run.do("offsets", "producer.offsets", name=name, group=name, offsets=[[topic, 0, 3]])
        run.since((3, 0), "ongoing", "admin.transactions", transaction=name)
        run.since((3, 0), "its producer", "admin.producers", partitions=[[topic, 0]])
        run.do(step, f"producer.{step}", name=name)
    run.tell("committed", read(run, 6, topic=topic, isolation="read_committed")["rows"])
    run.tell("all", run.call("read", topic=topic)["rows"])
    eventually(
        lambda: run.version >= (4, 0) or run.call("admin.offsets", group=name), what="offsets are visible"
    )
    run.do("offsets are there", "admin.offsets", group=name)
    with_member(run, topic)
    run.do("a second", "producer.open", name=f"{name}-2", config={"transactional.id": name})
    run.do("the first begins", "producer.begin", name=name)
    run.refused("the first is fenced", "producer.send", rows=[[0, "x"]], **of_it)
    if run.version >= (3, 2):
        run.do("fenced by an operator", "admin.fence", transaction=name)
        run.do("the second begins", "producer.begin", name=f"{name}-2")
        run.refused("the second is fenced", "producer.send", name=f"{name}-2", topic=topic, rows=[[0, "y"]])


def with_member(run: Run, topic: str) -> None:
    """Offsets of a live member, fenced by its generation since 2.5."""
    if run.version < (2, 5):
        return
    member = run.join("m", topic)
    run.settle("member", partitions(topic, 1), m=member)
    run.do("begun for the member", "producer.begin", name=run.name)
    offsets = {"offsets": [[topic, 0, 4]], "member": member.name}
    run.do("its offsets", "producer.offsets", name=run.name, **offsets)
    run.do("committed for the member", "producer.commit", name=run.name)
    eventually(lambda: member.committed((topic, 0)) == {(topic, 0): 4}, what="its offsets are visible")
    run.close(member)


def dynamic(run: Run) -> None:
    topic, name = run.topic(4), run.name
    everything = partitions(topic, 4)
    a = run.join("a", topic)
    run.settle("alone", everything, a=a)
    b = run.join("b", topic)
    shared = run.settle("shared", everything, 2, a=a, b=b)
    run.tell("generation", [state.generation for state in shared])
    run.described("described", "Stable")
    run.tell("listed", run.call("admin.list").get(name))
    fill(run, topic)
    eventually(lambda: len(a.records()) + len(b.records()) == 8, what="all is read")
    run.tell("read", sorted([*a.records(), *b.records()]))
    for member in (a, b):
        member.commit()
    b.commit({(topic, 3): 1})
    run.tell("committed", sorted(a.committed(*everything).items()))
    run.do("offsets", "admin.offsets", group=name)
    run.refused("delete a live group", "admin.delete", group=name)
    run.either("offsets of a live group", "admin.alter_offsets", group=name, offsets=[[topic, 0, 0]])
    run.either("offsets in use", "admin.delete_offsets", group=name, partitions=[[topic, 0]])
    run.close(b)
    after = run.settle("alone again", everything, a=a)
    run.tell("generation again", after[0].generation)
    run.close(a)
    run.described("empty", "Empty")
    c = run.join("c", topic)
    run.settle("resumed", everything, c=c)
    eventually(lambda: c.records(), what="the rest is read")
    run.tell("the rest", c.records())
    run.close(c)
    run.do("deleted", "admin.delete", group=name)
    run.tell("listed no more", run.call("admin.list").get(name))


def fill(run: Run, topic: str) -> None:
    run.call("producer.open", name=f"{run.name}-fill", config={})
    rows = [[number % 4, f"v{number}"] for number in range(8)]
    run.call("producer.send", name=f"{run.name}-fill", topic=topic, rows=rows)
    run.call("producer.close", name=f"{run.name}-fill")


def static(run: Run) -> None:
    topic, name = run.topic(4), run.name
    everything = partitions(topic, 4)
    members = {f"i{number}": run.join(f"c{number}", topic, instance=f"i{number}") for number in range(2)}
    before = run.settle("shared", everything, 2, **members)
    run.described("described", "Stable")
    run.close(members["i0"])
    members["i0"] = run.join("c0", topic, instance="i0")
    after = run.settle("bounced", everything, 2, **members)
    run.tell("moved", [old.generation == new.generation for old, new in zip(before, after, strict=True)])
    twin = run.join("twin", topic, instance="i1")
    run.settle("the twin took over", everything, 2, i0=members["i0"], twin=twin)
    run.tell("the first is", fatal(members["i1"]))
    run.close(members["i1"])
    run.close(members["i0"])
    if run.version >= (2, 4):
        run.do("removed", "admin.remove", group=name, instances=["i0", "nobody"])
        run.settle("the twin has all", everything, twin=twin)
    run.close(twin)
    if run.version >= (2, 6):
        run.do("all removed", "admin.remove", group=name)
        run.described("empty", "Empty")
        run.either("nobody removed", "admin.remove", group=name)


def cooperative(run: Run) -> None:
    topic = run.topic(6)
    everything = partitions(topic, 6)
    members = {"a": run.join("a", topic, assignor="cooperative-sticky")}
    run.settle_evenly("alone", everything, **members)
    for label in "bc":
        members[label] = run.join(label, topic, assignor="cooperative-sticky")
        run.settle_evenly(f"with {label}", everything, **members)
    described = run.described("described", "Stable")
    run.told.pop()
    run.tell("assignor", described["assignor"])
    run.close(members.pop("b"))
    run.settle_evenly("without b", everything, **members)


def next_generation(run: Run) -> None:
    """group.protocol=consumer."""
    topic, name = run.topic(4), run.name
    everything = partitions(topic, 4)
    a = run.join("a", topic, protocol="consumer")
    run.settle("alone", everything, a=a)
    b = run.join("b", topic, protocol="consumer", instance="i")
    run.settle_evenly("shared", everything, a=a, b=b)
    # which epoch it is depends on when the coordinator first saw the topic
    eventually(lambda: a.state().generation == b.state().generation, what="both are at the group's epoch")
    found = run.either("described", "admin.describe", group=name)
    if isinstance(found, dict):
        run.told.pop()
        found.pop("epoch")
        sizes = sorted((m["client"], m["instance"], len(m["assignment"])) for m in found.pop("members"))
        run.tell("described", [found, sizes])
    run.tell("listed", run.call("admin.list").get(name))
    fill(run, topic)
    eventually(lambda: len(a.records()) + len(b.records()) == 8, what="all is read")
    for member in (a, b):
        member.commit()
    run.tell("committed", sorted(a.committed(*everything).items()))
    run.do("offsets", "admin.offsets", group=name)
    run.either("offsets in use", "admin.delete_offsets", group=name, partitions=[[topic, 0]])
    run.either("offsets of a live group", "admin.alter_offsets", group=name, offsets=[[topic, 0, 0]])
    twin = run.join("twin", topic, protocol="consumer", instance="i")
    run.tell("a twin is", fatal(twin))
    run.close(twin)
    run.close(b)
    b = come_back(run, topic)
    run.settle_evenly("back", everything, a=a, b=b)
    run.do("removed", "admin.remove", group=name, instances=["i"])
    run.close(b)
    run.close(a)
    run.do("offsets stay", "admin.offsets", group=name)


def come_back(run: Run, topic: str) -> Member:
    """Take the instance id again once it is released: 4.0 does not wait for the answer to its goodbye."""

    def joined() -> Member | None:
        member = run.join("b", topic, protocol="consumer", instance="i")
        state = eventually(
            lambda: (seen := member.state()).fatal or seen.assignment, what="it is in, or refused"
        )
        if state != "UNRELEASED_INSTANCE_ID":
            return member
        run.close(member)
        return None

    member = eventually(joined, what="the instance id is released")
    assert member
    return member
