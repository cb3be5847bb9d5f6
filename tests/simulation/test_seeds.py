"""Random runs of whole clusters: every invariant, after every event; and the same seed, the same bytes."""

from dataclasses import replace

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.outcome import Request
from kgroup.coordinator.streams.group import StreamsState
from kgroup.domain import TopicImage
from kgroup.errors import ErrorCode, StorageError
from kgroup.log.memory import MemoryLog
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.runtime.shard import Shard
from kgroup.simulation.__main__ import main
from kgroup.simulation.play.chaos import WITH_STREAMS, WITH_TRANSACTIONS, run
from kgroup.simulation.world.groups import Kind
from tests.sampled import FULL

CHUNK = 20
SEEDS = 40 if FULL else 20  # of each kind; `make simulate` plays a thousand, and as many as it is asked for
# Found in 14,000: docs/simulation.md, "What Kafka does too".
FAR_SEEDS = (6134, 6213, 9108, 10370, 1_000_637)


@pytest.mark.parametrize(
    "first",
    [first for kind in (0, WITH_TRANSACTIONS, WITH_STREAMS) for first in range(kind, kind + SEEDS, CHUNK)],
)
def test_seeds_without_a_violation(first):
    """AE-09, AE-10, CP-24, SM-24, SM-33, SM-38: fenced members, replaced instances, lost answers.

    With transactions: what is aborted never shows, what is committed does, nothing is copied twice.
    AE-32, with streams groups: each task has one owner, copies are apart, targets cover all tasks.
    """
    for seed in range(first, first + CHUNK):
        result = run(seed)
        assert result.violation is None, f"seed {seed}, step {result.steps}: {result.violation}"


def test_seeds_with_streams_groups_are_of_many_kinds():
    """Several threads a process, standbys, tasks that wait, other topologies, topics that come later."""
    stable = standbys = 0
    words, failures, parts = set(), set(), set()
    for seed in range(WITH_STREAMS, WITH_STREAMS + 12):
        result = run(seed)
        group = result.groups[0]
        known = result.world.brokers.partition_of(group.group_id).shard.coordinator.state.groups.get(
            group.group_id
        )
        parts.add(len(group.shape.topology.subtopologies))
        words |= {word for fault in result.faults for word in fault.what.split()}
        failures |= {code for process in group.processes for code in process.failures}
        if known is not None and known.members:
            stable += known.state == StreamsState.STABLE
            standbys += any(member.current.assigned.standby for member in known.members.values())
    assert stable > 6 and standbys > 0 and len(parts) > 1
    assert {"topology", "internal"} <= words
    assert ErrorCode.INVALID_REQUEST in failures  # a changed topology


@pytest.mark.parametrize("seed", FAR_SEEDS)
def test_seeds_of_the_protocols_own_exceptions(seed):
    assert run(seed).violation is None


@pytest.mark.parametrize("seed", [3, 12, 27, WITH_STREAMS + 1])
def test_the_same_seed_writes_the_same_bytes(seed):
    one, other = run(seed), run(seed)
    assert one.fingerprint == other.fingerprint
    assert one.faults == other.faults
    assert run(seed + 1).fingerprint != one.fingerprint


def test_runs_are_of_every_kind_and_go_wrong_in_every_way():
    kinds, faults = set(), set()
    every = set(Kind) - {Kind.STREAMS}
    expected = {"crashes", "moves", "tears", "fails", "still", "jumps", "killed", "reach", "held", "break"}
    for seed in range(40):
        if every <= kinds and expected <= faults:
            break
        result = run(seed)
        kinds |= {group.kind for group in result.groups}
        faults |= {word for fault in result.faults for word in fault.what.split()}
    assert kinds == every
    assert expected <= faults


def test_a_violation_names_its_seed_and_step(monkeypatch, capsys):
    from tests.simulation.planted import commit_acknowledged_but_not_written

    commit_acknowledged_but_not_written(monkeypatch)
    assert main(["--seeds", "1"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("seed 0, step ")
    assert "kgroup simulate --seed 0" in told


def test_a_shard_that_loads_again_hands_out_other_member_ids():
    """Seed 22 found two members with one id: the append failed, and the reloaded shard repeated its ids."""
    log = MemoryLog()
    shard = Shard(0, log, GroupConfig(), 1, TopicImage())
    shard.load(0)
    ids = set()
    for ticket in range(3):
        replies = shard.submit(ticket, Request(join_of(""), 9, "pod"), 0)
        ids.add(replies[0].response.member_id)
        shard.load(0)
    assert len(ids) == 3


def test_a_shard_whose_append_failed_gives_no_generation_out_again():
    """Seed 10370's lesson: members of a generation that was not written pass for no later ones."""
    log = MemoryLog(lambda raw: failures and fail(failures.pop()))
    failures: list[str] = []
    shard = Shard(0, log, GroupConfig(initial_rebalance_delay_ms=0), 1, TopicImage())
    shard.load(0)

    def joined(member_id):
        replies = [*shard.submit(1, Request(join_of(member_id), 3, "pod"), 0), *shard.wake(0)]
        return replies[-1].response

    first = joined("")
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=first.member_id)
    assert shard.submit(2, Request(sync, 3, "pod"), 0)[-1].response.error_code == ErrorCode.NONE
    assert joined(first.member_id).generation_id == 2
    failures.append("disk full")
    replies = shard.submit(3, Request(replace(sync, generation_id=2), 3, "pod"), 0)
    assert replies[-1].response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert joined(first.member_id).generation_id == 3


def fail(why):
    raise StorageError(why)


def join_of(member_id):
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
