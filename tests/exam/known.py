"""Answers that are not right yet: each line goes when the answer is right."""

import re

KNOWN: tuple[re.Pattern[str], ...] = tuple(
    map(
        re.compile,
        (
            # A clock that is off decides whether records are recent, and how long a transaction is open.
            r"without clock behind: .* is (reading|held-back|idle)",
            r"without clock behind: (healthy|sick)",
            r"without clock ahead: .*(not-begun|held-back)/error",
            r"without clock ahead: sick",
            # A commit for a former topic, where the description's status is unknown.
            r"not recreated/error",
            r"recreated/error, with it",
            r"none of \['KG319'\]",
            r"healthy, although .*recreated",
            # A pattern of the consumer protocol that matches nothing.
            r"none of \['KG122'\]",
            # Consumers with assign() alone.
            r"none of \['KG120'\]",
            # Without the history: the graver weight becomes the lighter one, not unknown.
            r"without history: .*(not-begun|unsubscribed)/info",
            # The time since which an owner has a partition is that of the group's last complete rebalance.
            r"KG306",
            r"not-begun",
            r"reading/ok, not stalled",
            r"healthy, although .*stalled",
            # A share group's status by a second look.
            r"share group that finishes nothing: unknown \['KG",
            # A crash loop while others go on.
            r"none of \['KG310'\]",
            # Records of now, behind compacted ones.
            r"(describe|lag): main-0 is unknown/unknown, not reading/ok",
            # A streams group whose members do not confirm; a share group's purged records.
            r"none of \['KG112'\] among \['KG101'",
            r"(healthy|unknown), although .* is broken",
            r"records wait in none",
            # Generations of members that never had the partition; the delay of a purged partition.
            r"stalled/error, not",
            r"sick by \['KG310'\]",
        ),
    )
)


def is_known(judge: str, why: str) -> bool:
    """Return whether an answer is wrong in a way that stands here."""
    return any(known.search(f"{judge}: {why}") for known in KNOWN)
