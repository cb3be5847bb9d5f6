"""What clients in other languages have to find the same on Kafka and on ours."""

from __future__ import annotations

from ..driver import fatal
from ..waiting import eventually
from .programs import Run, partitions


def group(run: Run) -> None:
    """Two members share, commit, hand over; the group as an operator sees it at each step."""
    topic, name = run.topic(4), run.name
    everything = partitions(topic, 4)
    run.refused("made again", "admin.create_topic", topic=topic, partitions=4)
    run.do("topic", "admin.describe_topic", topic=topic)
    run.either("no group yet", "admin.describe", group=name)
    run.do("no offsets yet", "admin.offsets", group=name)
    a = run.join("a", topic, assignor=_assignor(run))
    run.settle("alone", everything, a=a)
    b = run.join("b", topic, assignor=_assignor(run))
    shared = run.settle("shared", everything, 2, a=a, b=b)
    run.tell("generation", [state.generation for state in shared])
    run.described("described", "Stable")
    run.tell("listed", run.call("admin.list").get(name))
    rows = [[number % 4, f"v{number}"] for number in range(8)]
    run.do("produced", "produce", topic=topic, rows=rows, config={"compression": "none"})
    eventually(lambda: len(a.records()) + len(b.records()) == 8, what="all is read")
    run.tell("read", sorted([*a.records(), *b.records()]))
    for member in (a, b):
        member.commit()
    last = [each for each in b.state().assignment if each[1] == 3]
    (b if last else a).commit({(topic, 3): 1})
    run.tell("committed", sorted(a.committed(*everything).items()))
    run.do("offsets", "admin.offsets", group=name)
    run.either("delete a live group", "admin.delete", group=name)
    run.close(b)
    after = run.settle("alone again", everything, a=a)
    run.tell("generation again", after[0].generation)
    run.close(a)
    run.described("empty", "Empty")
    c = run.join("c", topic, assignor=_assignor(run))
    run.settle("resumed", everything, c=c)
    eventually(c.records, what="the rest is read")
    run.tell("the rest", [record for record in c.records() if record[1] == 3])
    run.close(c)
    run.described("empty again", "Empty")
    run.do("deleted", "admin.delete", group=name)
    run.tell("listed no more", run.call("admin.list").get(name))
    run.either("deleted again", "admin.delete", group=name)
    run.do("topic gone", "admin.delete_topic", topic=topic)


def _assignor(run: Run) -> str:
    return "roundrobin" if run.client == "kafkajs" else "range"


def kinds_of_batches(run: Run) -> None:
    """Every codec the client has, and an idempotent producer; a member reads it all back."""
    topic = run.topic(1)
    configs = {
        "sarama": [
            *({"compression": each} for each in ("gzip", "snappy", "lz4", "zstd")),
            {"idempotent": "1"},
        ],
        "kafka-go": [{"compression": each} for each in ("gzip", "snappy", "lz4", "zstd")],
        "kafkajs": [{"compression": "gzip"}, {"idempotent": "1"}],
    }
    for number, config in enumerate(configs[run.client]):
        rows = [[0, f"{number}-{each}" * 20] for each in range(5)]
        given = {"compression": "none", **config}
        run.do(f"produced {config}", "produce", topic=topic, rows=rows, config=given)
    member = run.join("a", topic, assignor=_assignor(run))
    wanted = 5 * len(configs[run.client])
    eventually(lambda: len(member.records()) == wanted, what="all is read")
    run.tell("read", member.records())


def static_sarama(run: Run) -> None:
    topic, name = run.topic(4), run.name
    everything = partitions(topic, 4)
    members = {f"i{number}": run.join(f"c{number}", topic, instance=f"i{number}") for number in range(2)}
    before = run.settle("shared", everything, 2, **members)
    run.described("described", "Stable")
    run.close(members["i0"])
    members["i0"] = run.join("c0", topic, instance="i0")
    after = run.settle("bounced", everything, 2, **members)
    # How many generations two that join at once take, is chance; that a bounce takes none, is not.
    run.tell("moved", [old.generation == new.generation for old, new in zip(before, after, strict=True)])
    twin = run.join("twin", topic, instance="i1")
    run.settle("the twin took over", everything, 2, i0=members["i0"], twin=twin)
    run.tell("the first is", fatal(members["i1"]))
    run.close(members["i0"])
    run.do("removed", "admin.remove", group=name, instances=["i0", "nobody"])
    run.settle("the twin has all", everything, twin=twin)
    run.either("offset in use", "admin.delete_offset", group=name, topic=topic)


def transactions_kafkajs(run: Run) -> None:
    topic, name = run.topic(1), run.name
    for number, abort in enumerate(["", "1", ""]):
        rows = [[0, f"{number}-{each}"] for each in range(3)]
        config = {
            "idempotent": "1",
            "transaction": name,
            "group": name,
            "offset": str(number + 1),
            "abort": abort,
        }
        run.do(f"transaction {number}", "produce", topic=topic, rows=rows, config=config)
    member = run.join("a", topic, assignor="roundrobin")
    eventually(lambda: len(member.records()) == 3, what="what came after the committed offset is read")
    run.tell("read", member.records())
    run.do("offsets", "admin.offsets", group=name)


def positions_kafkajs(run: Run) -> None:
    topic, name = run.topic(2), run.name
    run.do("set", "admin.alter_offsets", group=name, topic=topic, offsets=[[0, 7], [1, 9]])
    run.do("offsets", "admin.offsets", group=name)
    run.described("described", "Empty")
