"""The counts of KIP-1251's check: exact, because the simulator knows every request."""

import json

from jsonschema import validate

from kgroup.cli.frame.tree import run as kgroup
from kgroup.cli.schemas import schema_for
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.offset_commit import OffsetCommitResponse
from kgroup.simulation.checks import fencing
from kgroup.simulation.checks.commits import CommitAudit
from kgroup.simulation.play.chaos import run

SEEDS = (68, 70, 74, 75, 84, 102)
"""Runs in which members commit at an older epoch than theirs."""
STALE = (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION)


class Recount:
    """Counts a second time, from requests, answers and the members' epochs."""

    def __init__(self, monkeypatch):
        self.accepted = self.refused = 0
        right = CommitAudit.answered

        def answered(audit, live, follower, request, replies):
            group = live.state.groups.get(request.group_id)
            if isinstance(group, ConsumerGroup):
                for reply in replies:
                    if isinstance(reply.response, OffsetCommitResponse):
                        self.look(group, request, reply.response, audit._world.image)
            right(audit, live, follower, request, replies)

        monkeypatch.setattr(CommitAudit, "answered", answered)

    def look(self, group, request, response, image):
        codes = [p.error_code for topic in response.topics for p in topic.partitions]
        self.refused += sum(code in STALE for code in codes)
        member, epoch = group.members.get(request.member_id), request.generation_id_or_member_epoch
        if member is None or epoch >= member.epoch:
            return
        self.accepted += codes.count(ErrorCode.NONE)
        if fencing.may_commit(group, request, image):
            # Accepted, and then the log could not be appended to.
            self.accepted += codes.count(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_counts_agree_with_the_requests(monkeypatch):
    """AE-02: what the strict check would have refused and the relaxed one accepts, and what both refuse."""
    recount = Recount(monkeypatch)
    accepted = refused = 0
    for seed in SEEDS:
        counters = run(seed).world.brokers.counters
        accepted += counters.commits_only_relaxed_check_accepted
        refused += counters.commits_both_checks_refused
    assert (accepted, refused) == (recount.accepted, recount.refused)
    assert accepted > 0
    assert refused > 0


def printed(capsys, *arguments):
    assert kgroup(["simulate", *arguments]) == 0
    return capsys.readouterr().out


def test_a_seed_tells_its_counts_and_its_events_in_every_format(capsys):
    seed = next(s for s in SEEDS if run(s).world.brokers.counters.commits_only_relaxed_check_accepted)
    counters = run(seed).world.brokers.counters
    accepted, refused = counters.commits_only_relaxed_check_accepted, counters.commits_both_checks_refused
    document = json.loads(printed(capsys, "--seed", str(seed), "-o", "json"))
    validate(document, schema_for("simulate"))
    told = document["data"]["run"]
    assert told["commits_only_relaxed_check_accepted"] == accepted
    assert told["commits_both_checks_refused"] == refused
    lines = [json.loads(line) for line in printed(capsys, "--seed", str(seed), "-o", "ndjson").splitlines()]
    assert lines == [{"schema": "kgroup/simulate@1", **event} for event in told["events"]]
    text = printed(capsys, "--seed", str(seed))
    assert f"{accepted} commits only the relaxed check accepted, {refused} both checks refused" in text
    csv = printed(capsys, "--seed", str(seed), "-o", "csv").splitlines()
    assert csv[0] == "at_ms,group_id,kind,detail"
    assert len(csv) == len(lines) + 1
