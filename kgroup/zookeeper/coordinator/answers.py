"""What registered consumers say: answers to pings, Stops and Starts, and commits (era 5.3, 6.5, 10.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.registries import Job, RegisteredConsumer
from kgroup.zookeeper.coordinator.requests import Watcher
from kgroup.zookeeper.wire.messages import (
    CommitOffsetRequest,
    CommitOffsetResponse,
    ErrorMapping,
    Offsets,
    Partition,
    PingResponse,
    RequestKey,
    StartFetcherResponse,
    StopFetcherResponse,
)

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.term import Term

Answer = PingResponse | StopFetcherResponse | StartFetcherResponse
_KINDS: dict[type, RequestKey] = {
    PingResponse: RequestKey.PING,
    StopFetcherResponse: RequestKey.STOP_FETCHER,
    StartFetcherResponse: RequestKey.START_FETCHER,
}


class Answers:
    """Takes answers; `ignored` counts offsets of partitions their sender does not hold."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self.ignored = 0

    def contradiction(self, member: RegisteredConsumer, message: Answer | CommitOffsetRequest) -> str | None:
        """Why no consumer with this registration sends that, if none does (era 2.6, 5.3)."""
        if message.consumer_id != member.consumer_id:
            return f"it says it is {message.consumer_id}"
        if isinstance(message, CommitOffsetRequest):
            return None if self._term.core.config.commit else "commits are not allowed here"
        closing = isinstance(message, PingResponse) and message.error == ErrorMapping.CLOSING
        if message.error != ErrorMapping.NONE and not closing:
            return f"it answers error {message.error}"
        if isinstance(message, StartFetcherResponse):
            return None
        if (message.offsets is None) is member.registration.auto_commit:
            return "its offsets contradict its auto-commit"
        return None

    def take(self, member: RegisteredConsumer, message: Answer, correlation: int) -> None:
        """Of an answer without a watcher, or after its expiry, only the offsets count (era 6.4)."""
        header = self._term.core.config.header
        watcher = self._term.purgatory.answer(member, _KINDS[type(message)], correlation if header else None)
        if watcher is None:
            return
        in_time = not watcher.settled
        if in_time:
            self._term.purgatory.satisfy(watcher)
        if isinstance(message, StartFetcherResponse):
            self._started(watcher, in_time)
            return
        # Who was asked before its Start tells of what it had before that.
        self._take_offsets(member, message.offsets or (), watcher.serial > member.start_serial)
        if isinstance(message, StopFetcherResponse):
            self._stopped(watcher, in_time)
            return
        if in_time:
            self._term.pings.answered(watcher)
        if message.error == ErrorMapping.CLOSING:
            # It has stopped its fetchers, so nobody need wait for its lease (era 9.9).
            self._term.groups[member.registration.group_id].release(member)
            self._term.fail(member, "leaves")

    def commit(self, member: RegisteredConsumer, request: CommitOffsetRequest, correlation: int) -> None:
        """Write a consumer's offsets at once, and answer when they are written (era 10.2)."""
        group = self._term.groups[member.registration.group_id]
        core = self._term.core
        response = CommitOffsetResponse(ErrorMapping.NONE, member.consumer_id)
        # Before its Start is answered, a commit may be of the assignment before: nothing tells them apart.
        taken = self._take_offsets(member, request.offsets, member.start_answered)
        written_puts: dict[str, bytes] = {}
        if len(taken) < len(request.offsets):
            response = CommitOffsetResponse(ErrorMapping.BAD_REQUEST, member.consumer_id)

        def written(done: bool) -> None:
            if done:
                self._term.committer.written(group, written_puts)
            answer = response if done else CommitOffsetResponse(ErrorMapping.UNKNOWN, member.consumer_id)
            if not member.gone:
                core.send(member.conn, answer, correlation)

        def puts() -> dict[str, bytes]:
            written_puts.update(
                (paths.offset(group.group_id, part), str(group.offsets[part]).encode()) for part in taken
            )
            return written_puts

        self._term.writes.add(group, Job(puts, written))

    def _stopped(self, watcher: Watcher, in_time: bool) -> None:
        member = watcher.member
        group = self._term.groups[member.registration.group_id]
        if watcher.serial > member.start_serial:
            group.release(member)
        if in_time and group.run is not None:
            group.run.answered(watcher)

    def _started(self, watcher: Watcher, in_time: bool) -> None:
        member = watcher.member
        if watcher.serial != member.start_serial:
            return
        member.start_answered = True
        run = self._term.groups[member.registration.group_id].run
        if in_time and run is not None:
            member.started = True
            run.answered(watcher)

    def _take_offsets(self, member: RegisteredConsumer, offsets: Offsets, current: bool) -> list[Partition]:
        """Take those of partitions that the member holds, if they are of its current assignment (era 6.5)."""
        group = self._term.groups[member.registration.group_id]
        taken = []
        for topic, name, offset in offsets:
            partition = Partition(topic, name)
            if not current or partition not in member.holds or offset < 0:
                self.ignored += 1
                continue
            taken.append(partition)
            if group.offsets.get(partition) != offset:
                group.offsets[partition] = offset
                group.changed[partition] = None
        return taken
