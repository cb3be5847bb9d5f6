"""The recording of the coordinators' topics."""

from __future__ import annotations

import time

from kgroup.domain import SHARE_STATE_TOPIC
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.history.sources.capture import Capture, Noticed, PartitionCapture
from kgroup.history.sources.folders import Folder
from kgroup.history.sources.live import LiveTopic
from kgroup.protocol.transport import Transport

_LOOK_S = 30.0
"""How often to look for a topic that does not exist yet."""


class Recording:
    """The topics of a capture: `__consumer_offsets`, and `__share_group_state` once it exists."""

    def __init__(self, transport: Transport, timeout_s: float, folder: Folder, noticed: Noticed) -> None:
        self._transport, self._timeout_s, self._folder = transport, timeout_s, folder
        self._noticed = noticed
        self._offsets = Capture(LiveTopic(transport, timeout_s), folder, noticed)
        self._state: Capture | None = None
        self._unseen: KgroupError | None = None
        self._look_s = time.monotonic()
        self._look()

    def _look(self) -> None:
        """Begin to record the state of share groups, if it exists; a failure to see it is kept."""
        self._look_s, self._unseen = time.monotonic() + _LOOK_S, None
        try:
            topic = LiveTopic(self._transport, self._timeout_s, with_names=False, name=SHARE_STATE_TOPIC)
        except KgroupError as error:
            if not (isinstance(error, BrokerRefused) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                self._unseen = error
            return
        self._state = Capture(topic, self._folder, self._noticed)

    def poll(self) -> None:
        """Record all that there is now."""
        if self._state is None and time.monotonic() >= self._look_s:
            self._look()
        for capture in self.captures:
            capture.poll()

    def flush(self) -> None:
        """Store all that is buffered."""
        for capture in self.captures:
            capture.flush()

    @property
    def captures(self) -> list[Capture]:
        """The captures of the topics that exist."""
        return [self._offsets] if self._state is None else [self._offsets, self._state]

    @property
    def parts(self) -> dict[str, PartitionCapture]:
        """The recorded partitions, by name."""
        return {self._name(c, number): part for c in self.captures for number, part in c.parts.items()}

    @property
    def failures(self) -> dict[str, KgroupError]:
        """Partitions not read to their end by the last poll, and why, by name."""
        failures = {self._name(c, number): why for c in self.captures for number, why in c.failures.items()}
        return failures if self._unseen is None else {**failures, SHARE_STATE_TOPIC: self._unseen}

    def _name(self, capture: Capture, number: int) -> str:
        return f"partition {number}" if capture is self._offsets else f"{SHARE_STATE_TOPIC}-{number}"
