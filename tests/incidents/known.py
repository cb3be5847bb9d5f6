"""Answers that are not right yet: by incident and cell the reason, of both brokers or of one.

A cell that has become right fails the exam as long as it stands here.
"""

from __future__ import annotations

_STANDS = "doctor does not see that a member commits nothing while records wait for it"
_BARE = "members of the consumer protocol are named by their ids, without client and host"
_FIRST = "the first process's client and host are told as those of whoever has the instance id"
_FULL = "group.max.size is not asked"

KNOWN: dict[str, dict[str, str]] = {
    "rights-taken-away": {"doctor": _STANDS},
    "two-processes-one-instance-id-classic": dict.fromkeys(("doctor", "replay-log"), _FIRST),
    "topic-deleted": dict.fromkeys(
        ("doctor", "cause", "next"), "doctor says nothing of offsets that went with their topic"
    ),
    "member-with-a-deleted-topic": {
        "doctor": "partitions of a topic that is gone are not told as such",
        "verify": "a member that holds a deleted topic is told as a difference",
    },
    "storm": {"doctor": "the session timeout of the member that expires is not told"},
    "member-does-not-come-back-in-a-join": {"next": "the command has a placeholder for the member id"},
    "never-acknowledges-a-revocation": {
        "doctor": "the end of the rebalance timeout is not told",
        "blame": _BARE,
        "replay-log": _BARE,
    },
    "upgrade-half-way": {"blame": _BARE},
    "group-is-full": dict.fromkeys(("doctor", "cause", "next"), _FULL),
    "clock-of-the-operator": {"doctor": "ages are measured by the operator's clock"},
    "clocks-of-the-producers": {"lag": "records from the future have a lag of 0 s"},
    "connect-worker-killed": {"doctor": "work that Connect holds back is not seen"},
    "streams-scaled-and-killed-kip1071": {"blame": _BARE, "replay-log": _BARE},
}
"""By incident and cell; `cell@kind` where only one kind of broker is concerned."""


def reason(incident: str, cell: str, kind: str) -> str | None:
    """Why this cell is not right yet; None when it has to be."""
    known = KNOWN.get(incident, {})
    return known.get(cell) or known.get(f"{cell}@{kind}")
