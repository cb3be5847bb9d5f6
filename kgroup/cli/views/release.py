"""`doctor --kafka 5`: what in a cluster blocks that release."""

from collections.abc import Sequence
from dataclasses import asdict

from kgroup.admin.migrate.fleet import plan_fleet
from kgroup.admin.migrate.models import BLOCK, OK, UNKNOWN
from kgroup.admin.migrate.release import against_kafka_5
from kgroup.admin.models import ItemError
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.inputs.group_names import every, expand
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.wording import only_rights
from kgroup.cli.views.migration import checks_shown
from kgroup.errors import ConfigError

_WORDS = {"blocked": "NOT READY", "unknown": "UNKNOWN", "ready": "READY"}


def examine_release(env: Env, release: str, groups: Sequence[str]) -> ExitCode:
    """Show what blocks a release; 8 if something does, 5 or 6 if that is unknown."""
    if release not in ("5", "5.0"):
        raise ConfigError(f"--kafka {release!r} is unknown", "only: 5")
    with open_admin(env) as admin:
        named = expand(admin, groups) if groups else every(admin)
        fleet = plan_fleet(admin, named.groups)
        checks = against_kafka_5(admin, fleet)
        where = identity(admin, env)
    unseen = (*fleet.errors, *named.unseen)
    unknown = [check for check in checks if check.status == UNKNOWN]
    reasons = [*(error.code for error in unseen), *(check.reason or "NOT_KNOWN" for check in unknown)]
    verdict = "unknown" if reasons else "ready"
    if any(check.status == BLOCK for check in checks):
        verdict = "blocked"
    codes = {"ready": ExitCode.OK, "blocked": ExitCode.BAD_VERDICT}
    lines, table = checks_shown(checks)
    return show(
        env,
        Result(
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
        ),
    )
