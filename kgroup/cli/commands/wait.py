"""`kgroup wait`: until a group is as wanted, for scripts."""

from collections.abc import Sequence
from typing import Annotated

from kgroup.admin.models import ItemError
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.declaring import argument, option
from kgroup.cli.frame.options import command as make
from kgroup.cli.inputs.group_names import expand
from kgroup.cli.output.result import show
from kgroup.durations import parse_duration


@make(
    "wait",
    examples=(
        ("kgroup wait orders --for empty --stop-after 5m", "once all its members have stopped"),
        (
            "kgroup wait orders --for stable --stop-after 2m",
            "after a rollout; exit code 7 when it takes longer",
        ),
        ("kgroup wait orders --for lag=0 --stop-after 1h -q", "until everything is read"),
        (
            "kgroup wait orders --for member=orders-3 --stop-after 5m",
            "until that instance has joined and settled",
        ),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str], argument("GROUP…", "Group ids or globs.")],
    for_: Annotated[
        str, option("--for CONDITION", "stable|empty|gone|static|lag=N|members=N|member=ID (instance or id).")
    ],
    interval: Annotated[str, option("--interval DURATION", "How often to poll.")] = "500ms",
    stop_after: Annotated[
        str | None, option("--stop-after DURATION", "Stop waiting after this long.  [default: --timeout]")
    ] = None,
) -> ExitCode:
    """Wait until a condition holds for all the groups; exit code 7 if time runs out.

    A group that does not exist counts as empty and as gone; for other conditions it is waited for. Outages
    are survived. Exit code 5 means that a group was not visible by the end, or that a pattern may match
    groups that are not visible; 6 is the same for missing rights. A name with * ? [ is a pattern; '[*]' is
    the group called *.
    """
    from kgroup.admin.read.conditions import Condition
    from kgroup.cli.views.waiting import result

    condition = Condition.parse(for_)
    every_s = max(parse_duration(interval), 0.01)
    limit_s = env.settings().timeout_s() if stop_after is None else parse_duration(stop_after)
    with open_admin(env, within_s=limit_s) as admin:

        def find() -> tuple[Sequence[str], Sequence[ItemError]]:
            named = expand(admin, group, waiting=True)
            return named.groups, named.unseen

        ended, unseen = admin.wait_for(find, condition, limit_s, every_s, env.note)
        where = identity(admin, env, ask=False)
    return show(env, result(ended, unseen, condition, for_.strip(), limit_s, where))
