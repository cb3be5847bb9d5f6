"""`kgroup regex`: topic patterns as brokers read them."""

from dataclasses import asdict
from typing import Annotated

from kgroup.admin.models import ItemError
from kgroup.admin.read.patterns import check_pattern
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.inputs.files import read_text
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import of_seen
from kgroup.domain import count_of


@make(
    "regex check",
    examples=(
        ("kgroup regex check 'orders-.*'", "which topics of the cluster it matches"),
        ("kgroup regex check '(?!test).*' --offline", "exit code 8: not RE2; no cluster needed"),
        (
            "kgroup regex check '^pay' --topics topics.txt",
            "against names in a file, one per line; - is stdin",
        ),
    ),
)
def check(
    env: Env,
    pattern: Annotated[str, argument("PATTERN", "The pattern of a subscription.")],
    offline: Annotated[bool, option("--offline", "Check the syntax only, without a cluster.")] = False,
    topics: Annotated[
        str | None, option("--topics FILE", "Match the topic names in this file; - is stdin.")
    ] = None,
) -> ExitCode:
    """Check a topic pattern: whether it is RE2, which topics match now, and who reads it differently.

    Consumer-protocol members send patterns to the broker, which expects RE2 and matches whole names
    (KIP-848); classic clients match in their own language. Exit code 8 if a broker would refuse the pattern.
    """
    from kgroup.admin.topics import list_topics

    where = None
    unseen: tuple[ItemError, ...] = ()
    if topics is not None or offline:
        names = read_text(topics).split() if topics is not None else []
    else:
        with open_admin(env) as admin:
            seen, unseen = list_topics(admin)
            names = [topic.name for topic in seen if not topic.internal]
            where = identity(admin, env)
    checked = check_pattern(pattern, names)
    # Other languages' differences are errors only where members would be refused.
    rows = [asdict(difference) for difference in checked.differences]
    errors = list(unseen)
    if not checked.valid:
        pointer = f"{checked.reason} at position {checked.position}"
        hint = "write it in RE2: no look-around, no backreferences"
        errors.append(
            ItemError(pattern, "INVALID_REGULAR_EXPRESSION", f"the pattern is not RE2: {pointer}", hint)
        )
    blocks: list[str | Table] = [f"{pattern}   {'RE2' if checked.valid else 'NOT RE2'}"]
    if not checked.valid and checked.position is not None:
        blocks.append(" " * min(checked.position, len(pattern)) + "^ " + str(checked.reason))
    matched = Table((Column("topic"),), [{"topic": name} for name in checked.matches])
    if checked.valid and not offline:
        least = "at least " if unseen else ""
        blocks += ["", f"matches {least}{len(checked.matches)} of {count_of(len(names), 'topic')}", matched]
    if checked.prefix_only:
        blocks.append(f"only the beginning matches, so excluded: {', '.join(checked.prefix_only)}")
    blocks += [f"{'!!' if row['severity'] == 'error' else '!'} {row['message']}" for row in rows]
    data = {**asdict(checked), "topics": None if offline or unseen else len(names)}
    code = of_seen(ExitCode.OK, unseen) if checked.valid else ExitCode.BAD_VERDICT
    return show(
        env,
        Result(
            data, blocks, names=checked.matches, errors=errors, exit_code=code, cluster=where, main=matched
        ),
    )


command = subcommands("regex", "Check topic patterns as brokers read them.", check)
