"""The part of a recording that is a capture: it lives through what ends `kgroup capture`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from kgroup.admin.discovery import ClusterView
from kgroup.admin.recording.gaps import Gap, add_gap
from kgroup.admin.recording.lease import NotOurs
from kgroup.domain import OFFSETS_TOPIC, uuid_text
from kgroup.durations import utc
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, StorageError
from kgroup.history.sources.capture import Capture, Gone, OtherLog, PartitionCapture
from kgroup.history.sources.folders import Folder
from kgroup.history.sources.layout import FORMER
from kgroup.history.sources.logs import stored_topics
from kgroup.history.sources.topics import Recording

_AGAIN_S = 30.0
"""How often to try a topic that may not be read."""


class TopicLog:
    """Records `__consumer_offsets` into a folder. A log that the cluster replaced is set aside, and named.

    `unread` is why the topic is not recorded; `failures` are the partitions that the last poll did not read
    to their ends. `read_ms` is the time of the last poll that did. `note` gets each gap, once it is stored.
    `cluster_id` is that of the recording, None if that is unknown.
    """

    def __init__(
        self,
        cluster: ClusterView,
        folder: Folder,
        upload_s: float,
        note: Callable[[str], None],
        cluster_id: str | None = None,
    ) -> None:
        self._cluster, self._folder, self._upload_s, self._note = cluster, folder, upload_s, note
        self._cluster_id = cluster_id
        self._recording: Recording | None = None
        self._again_s = self._uploaded_s = 0.0
        self._ids: set[bytes] = set()
        self.unread: KgroupError | None = None
        self.failures: dict[str, str] = {}
        self.read_ms: int | None = None

    @property
    def parts(self) -> dict[str, PartitionCapture]:
        """The recorded partitions."""
        return {} if self._recording is None else self._recording.parts

    def poll(self) -> None:
        """Record all that has arrived. StorageError if it cannot be kept: the next poll reads it again."""
        clock = self._cluster.retry.clock
        if self._recording is None and clock() < self._again_s:
            return
        began_ms = self._cluster.now_ms()
        try:
            if self._recording is None:
                self._recording = self._opened()
            self._check_id(self._recording.captures[0])
            self._recording.poll()
            if clock() >= self._uploaded_s + self._upload_s:
                self.flush()
                self._uploaded_s = clock()
            self._set_others_aside()
        except StorageError:
            self._recording = None  # what is stored says where to go on
            raise
        except KgroupError as error:
            self.unread = error
            self._again_s = clock() + (_AGAIN_S if isinstance(error, BrokerRefused) else 0.0)
            return
        self.failures = {name: error.message for name, error in self._recording.failures.items()}
        self.unread = self._forbidden()
        if not self.failures:
            self.read_ms = began_ms

    def flush(self) -> None:
        """Store all that waits; StorageError if that fails."""
        if self._recording is not None:
            self._check_id(self._recording.captures[0])
            self._recording.flush()

    def refresh(self, topics: Mapping[bytes, str] | None = None) -> None:
        """Look up partitions and leaders again, and whether the topic is still the one that is recorded.

        `topics` are the names of all topics, where they are known already.
        """
        if self._recording is None:
            return
        for capture in self._recording.captures:
            with suppress(KgroupError):  # the next poll says what cannot be read
                capture.topic.refresh(topics)

    def check_cluster(self) -> None:
        """Raise NotOurs if the recording is another cluster's; KgroupError if no broker answers."""
        now = self._cluster.cluster_id()
        if None not in (now, self._cluster_id) and now != self._cluster_id:
            raise NotOurs(
                f"{self._folder} is a recording of the cluster {self._cluster_id}, and this one is {now}",
                hint="give each cluster a place of its own",
            )

    def _opened(self) -> Recording:
        # Another cluster's log would be set aside as one that was replaced.
        self.check_cluster()
        stored = stored_topics(self._folder)
        self._ids = {id_ for id_, name in stored.items() if name == OFFSETS_TOPIC}
        timeout_s = self._cluster.retry.timeout_s
        return Recording(self._cluster.transport, timeout_s, self._folder, self._gone)

    def _gone(self, name: str, gone: Gone) -> None:
        self._lacks(name, f"{gone.text} are not recorded: the broker no longer had them when requested")

    def _lacks(self, name: str, text: str) -> None:
        """Store a gap before what lies behind it: StorageError if that fails."""
        if add_gap(self._folder, Gap(self._cluster.now_ms(), name, text)):
            self._note(f"{name}: {text}")

    def _check_id(self, capture: Capture) -> None:
        """Set the recording of a topic aside that was deleted and created again: its offsets begin again.

        Before the new id is stored: what ends in between is found by the next run.
        """
        now = {id_ for id_, name in capture.topic.topic_names.items() if name == OFFSETS_TOPIC}
        if now and self._ids and not now & self._ids:
            why = f"the topic was created again, with the id {uuid_text(next(iter(now)))}"
            for number in capture.parts:
                self._set_aside(capture, number, why)
        self._ids = now or self._ids

    def _set_others_aside(self) -> None:
        """Set the logs aside that do not continue what is recorded."""
        assert self._recording is not None
        for capture in self._recording.captures:
            for number, part in capture.parts.items():
                if isinstance(part.failure, OtherLog):
                    self._set_aside(capture, number, part.failure.message)

    def _set_aside(self, capture: Capture, number: int, why: str) -> None:
        part, name = capture.parts[number], f"{capture.topic.name}-{number}"
        if part.next_offset < 0:
            return
        part.flush()
        lost = f"offsets from {part.next_offset} on are not recorded: {why}"
        self._lacks(name, f"{lost}; the log before is in {FORMER}*/{name}")
        stamp = utc(self._cluster.now_ms()).replace(":", "")
        self._folder.move(name, f"{FORMER}{stamp}/{name}")
        capture.begin(number)

    def _forbidden(self) -> KgroupError | None:
        """Return why the topic may not be read; None if it may. Empty partitions are not asked."""
        assert self._recording is not None
        for error in self._recording.captures[0].failures.values():
            if isinstance(error, BrokerRefused) and error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                return error
        return None
