"""KG320: a reader that goes on and falls behind, as records come faster than it takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from kgroup.admin.diagnose.doctor import Checkup
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode
from kgroup.protocol.messages import fetch as f
from kgroup.protocol.messages import list_offsets as lo
from tests.unit.admin.doctor_logs import Held, commits, described, generation, remembering, written
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.test_doctor_checks import codes, examine, groups_of

A = Held("a", "orders:0,1")
NOW_S = 2_000
EVERY_S = 10


def seen(taken: Callable[[int], int], came: Sequence[int], spoil: Callable[[FakeCluster], None]) -> Checkup:
    """A group that commits `taken(second)` of orders-0 every ten seconds; its records `came` then."""
    at = range(EVERY_S, NOW_S, EVERY_S)
    fake = remembering(
        described(A),
        {"orders:0": taken(at[-1]), "orders:1": 4},
        (0, [generation(1, [A])]),
        *[commits(second, {0: taken(second), 1: 4 if second == at[-1] else 3}) for second in at],
    )
    written(fake, {0: came, 1: [1, 2, 3, NOW_S - 2]})
    known = groups_of(fake)
    known.ends |= {"orders:0": len(came), f"{OFFSETS_TOPIC}:0": 1 + 2 * len(at)}
    known.starts[f"{OFFSETS_TOPIC}:0"] = 0
    stored = [0, *(second for second in at for _ in range(2))]
    known.times = {**known.times, f"{OFFSETS_TOPIC}:0": stored}
    spoil(fake)
    return examine(fake.cluster(), "g", now_ms=NOW_S * 1000)


def nothing(fake: FakeCluster) -> None:
    """Leave the cluster as it is."""


STEADY = list(range(NOW_S))
"""A record a second."""
BURST = [*range(200), *[1_500] * 1_000]
"""A record a second for a while, and much later a thousand at once."""


def half(second: int) -> int:
    return second // 2


@pytest.mark.parametrize(
    ("taken", "came", "behind"),
    [
        (half, STEADY, True),
        (lambda second: max(second - 300, 0), STEADY, False),
        (lambda second: min(2 * max(second - 900, 0), second), STEADY, False),
        (lambda second: 200 + max(second - 1_500, 0), BURST, False),
        (lambda second: second if second < 1_850 else half(second + 1_850), STEADY, False),
        (lambda second: second if second < 1_500 else half(second + 1_500), STEADY, True),
    ],
    ids=[
        "takes half of what comes",
        "always five minutes late",
        "catches up",
        "works through a burst",
        "takes half for two minutes: too short to tell",
        "takes half for eight minutes",
    ],
)
def test_whether_records_wait_longer_and_longer(
    taken: Callable[[int], int], came: Sequence[int], behind: bool
) -> None:
    """A group that could not keep up was healthy for hours: its commits went on."""
    checkup = seen(taken, came, nothing)
    assert checkup.verdict == "healthy" and not checkup.unseen
    assert ("KG320" in codes(checkup)) == behind


def test_it_says_how_the_age_grew() -> None:
    (told,) = [each for each in seen(half, STEADY, nothing).findings if each.code == "KG320"]
    assert told.severity == "warn" and told.message == "partition orders-0: records wait longer and longer"
    (evidence,) = told.evidence
    assert evidence == (
        "orders-0: records come faster than they are taken; the age of the oldest unread one was 11m 35s at "
        "1970-01-01T00:23:10Z, 14m 05s at 1970-01-01T00:28:10Z, 16m 35s at 1970-01-01T00:33:10Z"
    )


def refused(fake: FakeCluster) -> None:
    """Let the log not be asked for what came at a time; ends and starts are told."""
    usual = fake.handlers[lo.ListOffsetsRequest]

    def listed(node: int, request: lo.ListOffsetsRequest) -> object:
        (topic, *_), error = request.topics, ErrorCode.UNKNOWN_SERVER_ERROR
        if topic.name == OFFSETS_TOPIC or topic.partitions[0].timestamp <= 0:
            return usual(node, request)
        parts = [
            lo.ListOffsetsPartitionResponse(partition_index=p.partition_index, error_code=error)
            for p in topic.partitions
        ]
        answered = lo.ListOffsetsTopicResponse(name=topic.name, partitions=tuple(parts))
        return lo.ListOffsetsResponse(topics=(answered,))

    fake.on(lo.ListOffsetsRequest, listed)  # type: ignore[arg-type]


def unreadable(fake: FakeCluster) -> None:
    """Let the offsets topic be read from its start, and no more after that."""
    usual, reads = fake.handlers[f.FetchRequest], []

    def read(node: int, request: f.FetchRequest) -> object:
        if request.topics[0].topic != OFFSETS_TOPIC:
            return usual(node, request)
        reads.append(request)
        if len(reads) == 1:
            return usual(node, request)
        part = f.PartitionData(partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return f.FetchResponse(responses=(f.FetchableTopicResponse(topic=OFFSETS_TOPIC, partitions=(part,)),))

    fake.on(f.FetchRequest, read)  # type: ignore[arg-type]


@pytest.mark.parametrize("spoil", [refused, unreadable])
def test_where_a_look_fails_it_is_unknown(spoil: Callable[[FakeCluster], None]) -> None:
    checkup = seen(half, STEADY, spoil)
    assert checkup.verdict == "unknown"
    assert "KG320" not in codes(checkup)
