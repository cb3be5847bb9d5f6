"""`doctor --kafka 5`: what in a cluster blocks that release."""

from collections.abc import Sequence
from dataclasses import asdict

from kgroup.admin.migrate.models import BLOCK, OK, UNKNOWN, Check
from kgroup.admin.models import ItemError
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.output.result import Result
from kgroup.cli.output.wording import only_rights
from kgroup.cli.views.migration import checks_shown
from kgroup.domain import Document

_WORDS = {"blocked": "NOT READY", "unknown": "UNKNOWN", "ready": "READY"}


def result_of(checks: Sequence[Check], unseen: Sequence[ItemError], where: Document | None) -> Result:
    """Return what blocks Kafka 5.0; exit code 8 if something does, 5 or 6 if that is unknown.

    `unseen` says which groups, or of which there may be, were not examined.
    """
    unknown = [check for check in checks if check.status == UNKNOWN]
    reasons = [*(error.code for error in unseen), *(check.reason or "NOT_KNOWN" for check in unknown)]
    verdict = "unknown" if reasons else "ready"
    if any(check.status == BLOCK for check in checks):
        verdict = "blocked"
    codes = {"ready": ExitCode.OK, "blocked": ExitCode.BAD_VERDICT}
    lines, table = checks_shown(checks)
    return Result(
        {"release": "5.0", "verdict": verdict, "checks": [asdict(check) for check in checks]},
        [f"Kafka 5.0   {_WORDS[verdict]}", "", *lines],
        items="checks",
        names=[check.code for check in checks if check.status != OK],
        errors=[
            *unseen,
            *(
                ItemError(
                    c.code, "BLOCKED" if c.status == BLOCK else c.reason or "NOT_KNOWN", c.message, c.hint
                )
                for c in checks
                if c.status in (BLOCK, UNKNOWN)
            ),
        ],
        exit_code=codes[verdict] if verdict in codes else only_rights(reasons),
        cluster=where,
        main=table,
    )
