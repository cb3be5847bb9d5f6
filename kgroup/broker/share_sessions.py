"""Share sessions: which partitions a member of a share group fetches from one broker (KIP-932).

Kafka's ShareSessionCache and SharePartitionManager are the source. A session belongs to its connection: when
that ends, the records the member has acquired are released at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from kgroup.broker.call import Peer
from kgroup.broker.share_partitions import SharePartitions
from kgroup.errors import ErrorCode, Refused
from kgroup.share.coordinator import StateKey

log = logging.getLogger(__name__)

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
INT32_MAX = (1 << 31) - 1


@dataclass(slots=True)
class ShareSession:
    """The partitions of a session, each with whether it must be in the next answer it is read for."""

    group_id: str
    member: str
    peer: Peer | None
    epoch: int = 1
    partitions: dict[StateKey, bool] = field(default_factory=dict)


class ShareSessions:
    """The sessions of one broker, at most `slots` of them."""

    def __init__(self, partitions: SharePartitions, node: int, slots: int) -> None:
        self._partitions = partitions
        self._node = node
        self._slots = slots
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, group_id: str, member: str, keys: Iterable[StateKey], peer: Peer | None) -> ShareSession:
        """Open a session in the place of one that the member had; SHARE_SESSION_LIMIT_REACHED if full."""
        self._sessions.pop((group_id, member), None)
        if len(self._sessions) >= self._slots:
            raise Refused(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(group_id, member, peer, partitions=dict.fromkeys(keys, False))
        self._sessions[group_id, member] = session
        return session

    def find(self, group_id: str, member: str, epoch: int) -> ShareSession:
        """Return the member's session, at this epoch unless it is the last request of the session.

        Raise SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get((group_id, member))
        if session is None:
            raise Refused(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch not in (session.epoch, FINAL_EPOCH):
            raise Refused(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return session

    def go_on(self, session: ShareSession) -> None:
        """Expect the next epoch from now on."""
        session.epoch = 1 if session.epoch == INT32_MAX else session.epoch + 1

    def close(self, session: ShareSession) -> None:
        """End a session and release the records its member has acquired."""
        if self._sessions.get((session.group_id, session.member)) is session:
            del self._sessions[session.group_id, session.member]
        for key in session.partitions:
            try:
                if self._partitions.get(key) is not None:
                    self._partitions.release(key, session.member)
            except Refused as refused:
                # Its locks expire by themselves.
                log.warning("what %s has of %s is not released: %s", session.member, key, refused.message)

    def disconnected(self, peer: Peer) -> None:
        """End the sessions of a connection that is gone."""
        for session in [session for session in self._sessions.values() if session.peer is peer]:
            self.close(session)
            if not any(other.group_id == session.group_id for other in self._sessions.values()):
                self._partitions.group_left(session.group_id, self._node)
