"""The commands, called in this process by their command lines; time and transport are the machine's."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from unittest import mock

import kgroup.client.transport
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.cli.frame.tree import run
from kgroup.client.retry import Retry
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumReplica,
    QuorumTopic,
)
from kgroup.protocol.messages.list_offsets import ListOffsetsResponse
from kgroup.protocol.messages.metadata import MetadataResponse

from .machine import NOW_MS, Machine

SKEW_MS = {"right": 0, "ahead": 300_000, "behind": -300_000, "apart": 0}
AHEAD = 2
"""A broker that coordinates none of the groups: for `apart` its clock is ahead of all others."""
LAGGING = ("replicas", "lagging")
"""Who sees replicas of `__consumer_offsets` that lag."""
CLEANED_MS = {"cleaned": 0, "rolled": 60_000}
"""How long ago the records of groups were last cleaned."""
TOLD = ("all", "replicas", "scratched", "unasked", *CLEANED_MS)
"""Who is told the controller's time."""
UNASKED: Mapping[str, Sequence[str]] = {"unasked": ("--without", "history")}
"""The checks that doctor leaves out."""
SOCKETS = kgroup.client.transport.SocketTransport
DOOR = ("-b", "exam:9092")
Ask = Callable[..., "Ran"]


class Door:
    """What commands take for a connection: it leads into the machine, and closing it closes nothing."""

    concurrent = False

    def __init__(self, inner: EmbeddedTransport, tells_time: Callable[[], int] | None) -> None:
        self._inner = inner
        self._tells_time = tells_time
        self.in_sync = True
        """Whether all replicas of `__consumer_offsets` are."""
        self.ahead_ms = 0
        """The time by which a broker stamps that coordinates none of the groups; 0 if by no other."""
        self.versions = inner.versions

    def nodes(self) -> Mapping[int, tuple[str, int]]:
        """Return the brokers that are up."""
        down = self._inner.cluster.down
        return {node: at for node, at in self._inner.nodes().items() if node not in down}

    def request(self, node: int | None, message: Message, **options: Any) -> Message:
        """Return a broker's answer; raise Unreachable for one that is down."""
        if node in self._inner.cluster.down:
            raise Unreachable(f"broker {node} does not answer", "")
        if isinstance(message, DescribeQuorumRequest) and self._tells_time is not None:
            return _quorum(self._tells_time())
        answer = self._inner.request(node, message, **options)
        if self.ahead_ms and node == AHEAD and isinstance(answer, ListOffsetsResponse):
            answer = _ahead(answer, self.ahead_ms)
        return answer if self.in_sync or not isinstance(answer, MetadataResponse) else _lagging(answer)

    def end_within(self, seconds: float) -> None:
        """Do nothing: there is no waiting for a network."""

    def close(self) -> None:
        """Do nothing: the machine lives on."""


def _ahead(answer: ListOffsetsResponse, stamp_ms: int) -> ListOffsetsResponse:
    """The same with a record of this time in `__consumer_offsets`, where none is."""
    topics = [
        replace(topic, partitions=tuple(replace(p, timestamp=stamp_ms, offset=0) for p in topic.partitions))
        if topic.name == OFFSETS_TOPIC
        else topic
        for topic in answer.topics
    ]
    return replace(answer, topics=tuple(topics))


def _lagging(answer: MetadataResponse) -> MetadataResponse:
    """The same with one of three replicas of `__consumer_offsets` in sync."""
    topics = [
        replace(
            topic,
            partitions=tuple(
                replace(each, replica_nodes=(0, 1, 2), isr_nodes=(0,)) for each in topic.partitions
            ),
        )
        if topic.name == OFFSETS_TOPIC
        else topic
        for topic in answer.topics
    ]
    return replace(answer, topics=tuple(topics))


def _quorum(now_ms: int) -> DescribeQuorumResponse:
    """What Kafka's controller answers, of which kgroup's broker has none: it tells its time."""
    leader = QuorumReplica(replica_id=1, log_end_offset=9, last_caught_up_timestamp=now_ms)
    part = QuorumPartition(leader_id=1, leader_epoch=1, high_watermark=9, current_voters=(leader,))
    topic = QuorumTopic(topic_name="__cluster_metadata", partitions=(part,))
    return DescribeQuorumResponse(topics=(topic,))


@dataclass(frozen=True)
class Ran:
    """One command: how it ended, and what it printed."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str
    moments: Sequence[int] = (NOW_MS,)
    """While it looked, a second apart; one where time stands still."""

    @cached_property
    def document(self) -> Any:
        try:
            return json.loads(self.out)
        except json.JSONDecodeError:
            return {}

    @cached_property
    def by_group(self) -> Mapping[str, Any]:
        """What the document says of each group."""
        return {g["group_id"]: g for g in ((self.document.get("data") or {}).get("groups") or ())}


@dataclass
class Asked:
    """All answers of all commands about the groups of a machine, to one who sees so much."""

    visibility: str
    clock: str
    doctor: Ran
    describe: Ran
    lag: Ran
    above: Ran
    wait: Ran
    reset: Ran
    delete: Ran
    alone: dict[str, tuple[Ran, Ran]] = field(default_factory=dict)
    """Of some groups `lag --fail-above 0` and `wait` alone: their exit codes."""

    @property
    def moments(self) -> tuple[int, ...]:
        """All moments of its commands."""
        commands = (self.describe, self.lag, self.above, self.wait, self.doctor)
        return tuple(sorted({moment for each in commands for moment in each.moments}))


@contextlib.contextmanager
def seen(machine: Machine, visibility: str, clock: str) -> Iterator[Ask]:
    """Let the commands see the machine as this one does, by a clock that is right or wrong.

    The controller tells its time to those who see all, and to no other: as on a cluster that has none.
    """
    transport = machine.seen_by(visibility)
    door = Door(transport, (lambda: machine.now_ms) if visibility in TOLD else None)
    door.in_sync = visibility not in LAGGING
    door.ahead_ms = NOW_MS - SKEW_MS["behind"] if clock == "apart" else 0

    def sleep(seconds: float) -> None:
        transport.run_until(machine.now_ms + max(int(seconds * 1000), 1))

    def now() -> float:
        return machine.now_ms / 1000

    skew = SKEW_MS[clock]
    Retry()  # the first object has its constructor generated
    defaults = Retry.__init__.__defaults__
    assert defaults is not None
    mine = {time.monotonic: now, time.sleep: sleep}
    Retry.__init__.__defaults__ = tuple(mine.get(each, each) if callable(each) else each for each in defaults)
    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as patched:
        patched.callback(setattr, Retry.__init__, "__defaults__", defaults)
        patched.enter_context(
            mock.patch.object(kgroup.client.transport, "SocketTransport", lambda *_, **__: door)
        )
        patched.enter_context(mock.patch.object(time, "time_ns", lambda: (machine.now_ms + skew) * 1_000_000))
        if visibility == "scratched":
            patched.enter_context(machine.scratched())
        if visibility in CLEANED_MS:
            patched.enter_context(machine.cleaned(NOW_MS - CLEANED_MS[visibility]))
        where = {"KGROUP_CONFIG": f"{home}/none.toml", "XDG_CONFIG_HOME": home, "HOME": home}
        patched.enter_context(mock.patch.dict(os.environ, where))
        yield ran
    assert machine.now_ms - NOW_MS < 5_000, machine.now_ms - NOW_MS


def ran(*argv: str, door: Sequence[str] = DOOR, output: str = "json") -> Ran:
    """Run one command line; `door` are the options that say where the cluster is."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run((*argv, *door, "-o", output))
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Ran(argv, code, out.getvalue(), err.getvalue())


def asked(
    look: contextlib.AbstractContextManager[Ask],
    groups: Sequence[str],
    visibility: str,
    clock: str,
    alone: Sequence[str] = (),
) -> Asked:
    """Ask every command about these groups; `look` lets them see what one of this `visibility` does."""
    with look as ran:
        found = Asked(
            visibility,
            clock,
            describe=ran("describe", *groups),
            lag=ran("lag", *groups, "--time"),
            above=ran("lag", *groups, "--fail-above", "0"),
            wait=ran("wait", *groups, "--for", "lag=0", "--stop-after", "1ms"),
            doctor=ran("doctor", *groups, "--patience", "0s", *UNASKED.get(visibility, ())),
            reset=ran("reset-offsets", *groups, "--all-topics", "--to-latest"),
            delete=ran("delete", *groups),
        )
        for group in alone:
            found.alone[group] = (
                ran("lag", group, "--fail-above", "0"),
                ran("wait", group, "--for", "lag=0", "--stop-after", "1ms"),
            )
    return found


def asked_shortly(machine: Machine, groups: Sequence[str], visibility: str, rows: Ran | None = None) -> Asked:
    """Ask only the doctor, and describe, with whose `rows` it is compared."""
    with seen(machine, visibility, "right"):
        rows = rows or ran("describe", *groups)
        none = Ran((), 0, "{}", "")
        doctor = ran("doctor", *groups, "--patience", "0s")
    return Asked(visibility, "right", doctor, rows, rows, none, none, none, none)


def asked_twice(look: contextlib.AbstractContextManager[Ask], groups: Sequence[str], *options: str) -> Ran:
    """Have the doctor look at these groups for two seconds."""
    with look as ran:
        return ran("doctor", *groups, "--patience", "2s", *options)
