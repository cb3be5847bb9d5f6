"""Answers that are not right yet: each line goes when the answer is right."""

import re

KNOWN: tuple[re.Pattern[str], ...] = tuple(
    map(
        re.compile,
        (
            # How long a transaction is open, by a clock that is behind.
            r"without clock behind: .* is held-back/info",
            r"without clock behind: healthy",
            # Whether records are new, by such a clock.
            r"(describe|lag) without clock behind: .* is reading/ok, with it unknown",
            # Consumers with assign() alone.
            r"none of \['KG120'\]",
            # Records of now, behind compacted ones.
            r"(describe|lag): main-0 is unknown/unknown, not reading/ok",
            # A streams group whose members do not confirm.
            r"none of \['KG112'\] among \['KG101'",
            r"healthy, although .*KG112.* is broken",
        ),
    )
)


def is_known(judge: str, why: str) -> bool:
    """Return whether an answer is wrong in a way that stands here."""
    return any(known.search(f"{judge}: {why}") for known in KNOWN)
