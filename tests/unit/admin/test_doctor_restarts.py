"""SM-51: doctor warns of static members whose session is shorter than their restarts take."""

from __future__ import annotations

from collections.abc import Sequence

from kgroup.admin.diagnose.checks import Diagnosis, diagnoses
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.group_records import Recorded
from kgroup.admin.read.describe import groups_only
from kgroup.history.fold.restarts import Restart
from kgroup.protocol.messages import fetch as f
from tests.unit.admin.groups import Groups, classic_group, classic_member, consumer_group, consumer_member
from tests.unit.admin.test_doctor_checks import OFFSETS_TOPIC, cluster, codes, examine
from tests.unit.history.logs import batch
from tests.unit.history.test_restarts import classic

NOW_MS = 1_000_000
LATE = Restart("a", 900_000, late_ms=12_000, session_ms=10_000, took_ms=22_000, offset=7)


def found(kind: str, restarts: Sequence[Restart], since_ms: int = 0) -> list[Diagnosis]:
    fake = cluster()
    made = {
        "classic": classic_group("g", classic_member("m", "orders:0,1", "a")),
        "consumer": consumer_group("g", consumer_member("m", "orders:0,1", instance="a")),
    }
    Groups(fake).add(made[kind])
    group = groups_only(fake.cluster(), ["g"])["g"]
    facts = Facts(group, NOW_MS, since_ms, 0, recorded=Recorded(restarts=restarts))  # type: ignore[arg-type]
    return [each for each in diagnoses(facts) if each.code == "KG113"]


def test_the_figures_are_told() -> None:
    (told,) = found("classic", [LATE])
    assert told.severity == "warn"
    assert told.message == (
        "1 static member rejoined after the session had ended: a, away for up to 22 s; others had their "
        "partitions meanwhile"
    )
    assert told.hint == (
        "session.timeout.ms of the clients above 22 s, longer than a restart takes, up to the "
        "broker's group.max.session.timeout.ms; kgroup explain static"
    )
    (evidence,) = told.evidence
    assert evidence == (
        "a was back at 1970-01-01T00:15:00Z, 22 s after its last sign of life: 12 s after the end of a "
        "session of 10 s, unless an admin had removed it (log offset 7)"
    )


def test_in_a_consumer_group_the_setting_is_the_groups() -> None:
    crashed = Restart("b", 900_001, late_ms=500, session_ms=None, took_ms=None, offset=9)
    (told,) = found("consumer", [LATE, crashed])
    assert told.message.startswith("2 static members rejoined after the session had ended: a, b, away for")
    assert told.hint == (
        "consumer.session.timeout.ms of the group above 22 s, longer than a restart takes, "
        "up to the broker's group.consumer.max.session.timeout.ms (60 s by default): kgroup config get g"
    )
    assert "0.5 s after the end of a session of unknown length" in told.evidence[1]


def test_many_are_counted_and_old_ones_do_not_count() -> None:
    many = [Restart(f"i{n}", 900_000 + n, 1000, 1000, 2000, n) for n in range(7)]
    (told,) = found("classic", many)
    assert "i0, i1, i2, i3, i4 and 2 more" in told.message
    assert told.evidence[-1] == "and 2 times before"
    assert found("classic", [LATE], since_ms=900_001) == []


def from_log(session_after_ms: int) -> set[str]:
    """What doctor finds where a member with a session of 10 s was away for 22 s, and has this one since."""
    import tests.unit.history.test_restarts as made

    generations = [
        (0, made.SESSION_MS, (("a1", "a"), ("b1", "b"))),
        (20, made.SESSION_MS, (("b1", "b"),)),
        (32, session_after_ms, (("a2", "a"), ("b1", "b"))),
    ]
    data = b""
    for n, (second, session_ms, members) in enumerate(generations):
        data += batch(n, [classic(n + 1, members, session_ms, group="g")], 1000 * second)

    def read(node: int, request: f.FetchRequest) -> f.FetchResponse:
        part = f.PartitionData(partition_index=0, records=data, high_watermark=3)
        return f.FetchResponse(responses=(f.FetchableTopicResponse(topic=OFFSETS_TOPIC, partitions=(part,)),))

    fake = cluster().on(f.FetchRequest, read)
    fake.topics[OFFSETS_TOPIC] = 1
    checkup = examine(fake.cluster(), "g", now_ms=60_000, patience_s=0)
    return {code for code in codes(checkup) if code == "KG113"}


def test_the_log_is_read_for_it_and_a_longer_session_since_then_settles_it() -> None:
    assert from_log(10_000) == from_log(22_000) == {"KG113"}
    assert from_log(22_001) == set()
