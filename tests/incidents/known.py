"""Answers that are not right yet: by incident and cell the reason, of both brokers or of one.

A cell that has become right fails the exam as long as it stands here.
"""

from __future__ import annotations

_STANDS = "doctor does not see that a member commits nothing while records wait for it"
_OPEN = "doctor does not look at the last stable offset, nor at who holds it"
_BARE = "consumer-protocol members are named by their ids, without client and host"
_BOTH = "the client ids of both holders are not named"
_STORM = "generations of classic groups are not counted"

KNOWN: dict[str, dict[str, str]] = {
    "poison-record": dict.fromkeys(("doctor", "cause", "next"), _STANDS),
    "one-slow-of-a-hundred": dict.fromkeys(("doctor", "cause", "next"), _STANDS),
    "rights-taken-away": {"doctor": _STANDS},
    "two-processes-one-instance-id-classic": dict.fromkeys(("doctor", "replay-log", "cause"), _BOTH),
    "hung-in-poll-classic": dict.fromkeys(
        ("blame", "replay-log"), "max.poll.interval.ms and the last commit are not compared"
    ),
    "hung-in-poll-consumer": dict.fromkeys(
        ("blame", "replay-log"), "a member that returns under its id is told as a new one"
    ),
    "retention-about-to-eat": dict.fromkeys(
        ("doctor", "cause"), "the age of unread records and retention.ms are not compared"
    ),
    "topic-deleted": dict.fromkeys(
        ("doctor", "blame", "replay-log", "cause", "next"), "that the topic is gone is not asked"
    ),
    "topic-recreated": dict.fromkeys(("blame", "replay-log"), "topic ids of commits are not compared"),
    "commit-beyond-the-end": {
        "lag": "a negative lag counts as known",
        "doctor": "--to-latest drops records that were never read",
        "next": "--to-latest drops records that were never read",
    },
    "transaction-left-open": dict.fromkeys(("doctor", "cause", "next"), _OPEN),
    "offsets-committed-by-hand": {
        "replay-log": "the transaction is in the detail, and the cause says that nobody knows",
    },
    "offsets-expired": dict.fromkeys(("blame", "replay-log"), "offsets.retention.minutes is not asked"),
    "storm": dict.fromkeys(("doctor", "cause", "next"), _STORM),
    "rolling-restart-of-ten": {"doctor": _STORM},
    "member-does-not-come-back-in-a-join": {"next": "the command has a placeholder for the member id"},
    "never-acknowledges-a-revocation": dict.fromkeys(
        ("describe", "doctor", "blame", "replay-log", "cause", "next"), _BARE
    ),
    "upgrade-half-way": {"blame": _BARE},
    "broker-restarted-while-waiting": {"describe": "a look that the limit cuts short is told as an outage"},
    "clock-of-the-operator": {"doctor": "ages are measured by the operator's clock"},
    "clocks-of-the-producers": {"lag": "records from the future have a lag of 0 s"},
    "connect-worker-killed": dict.fromkeys(("doctor", "cause"), "work that Connect holds back is not seen"),
}
"""By incident and cell; `cell@kind` where only one kind of broker is concerned."""


def reason(incident: str, cell: str, kind: str) -> str | None:
    """Why this cell is not right yet; None when it has to be."""
    known = KNOWN.get(incident, {})
    return known.get(cell) or known.get(f"{cell}@{kind}")
