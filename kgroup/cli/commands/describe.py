"""`kgroup describe`: groups in full, of any protocol."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.as_json import document
from kgroup.admin.models import Description, ItemError
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.rest import Rest, elsewhere
from kgroup.cli.env.session import identity, limit_of_many, open_admin
from kgroup.cli.env.zookeeper import ZooKeeper
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.group_names import every, expand
from kgroup.cli.output.parts import Answer, Ending, show_parts
from kgroup.cli.output.result import Part
from kgroup.cli.output.tables import Block, Table
from kgroup.cli.output.wording import exit_codes, of_seen
from kgroup.domain import Document
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.cli.views.description import Pick

SECTIONS = ("summary", "members", "offsets", "findings")
ORDERS = ("instance", "member", "topic")
SORTS = ("lag",)
Sort = Annotated[
    str | None,
    option(
        "--sort lag",
        "The largest lag of a group first, before it what is unknown.",
        autocompletion=lambda: SORTS,
    ),
]
Top = Annotated[
    int | None,
    option(
        "--top N",
        "Only N rows and findings of each group: members that are not stable, then the largest lag. "
        "Not in JSON.",
        min=1,
    ),
]


@make(
    "describe",
    examples=(
        ("kgroup describe orders -b broker:9092", "state, members, lag and what is wrong"),
        ("kgroup describe orders --section offsets", "partition by partition, with the owner"),
        ("kgroup describe orders --by topic -o csv", "the same as CSV"),
        ("kgroup describe --all-groups -o ndjson", "one JSON object per group"),
        ("kgroup describe orders --zookeeper zk:2181/kafka", "a group of Kafka 0.8 to 1.1"),
        ("kgroup describe orders --rest https://rest:8082", "by Confluent's REST API v3"),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str] | None, argument("[GROUP]…", "Group ids or globs.")] = None,
    all_groups: Annotated[bool, option("--all-groups", "Every group of the cluster.")] = False,
    section: Annotated[
        str | None,
        option(
            "--section A,B,…",
            ",".join(SECTIONS) + ".  [default: summary,members,findings]",
            autocompletion=lambda: SECTIONS,
        ),
    ] = None,
    by: Annotated[
        str,
        option(
            "--by KEY",
            "Rows by " + "|".join(ORDERS) + "; topic gives a row for every partition.",
            autocompletion=lambda: ORDERS,
        ),
    ] = "instance",
    sort: Sort = None,
    top: Top = None,
    zookeeper: ZooKeeper = None,
    rest: Rest = None,
) -> ExitCode:
    """Describe groups: state, members, assignment, offsets, lag, and findings.

    Members that are not stable come first. JSON always has all sections and all rows. A name with * ? [ is a
    pattern; '[*]' is the group called *. Parts that could not be read are named, and the exit code is 5 or 6.
    """
    from kgroup.admin.read.describe import describe_each

    sections, pick = _sections(section, by), pick_of(sort, top)
    if bool(group) == all_groups:
        raise ConfigError("name the groups to describe, or --all-groups", "kgroup list shows the groups")
    other = elsewhere(env, zookeeper, rest)
    if other is not None:
        with other as opened:
            named = every(opened.groups) if all_groups else expand(opened.groups, group or [])
            described = opened.groups.describe(named.groups)
            shown = _Shown(env, sections, (by, pick), named.unseen, opened.identity())
        return shown.show(iter([described]))
    with open_admin(env, stop_after_s=limit_of_many(env)) as admin:
        named = every(admin) if all_groups else expand(admin, group or [])
        shown = _Shown(env, sections, (by, pick), named.unseen, identity(admin, env))
        return shown.show(describe_each(admin, named.groups))


def pick_of(sort: str | None, top: int | None) -> "Pick":
    """Return the rows, and their order, that --sort and --top select."""

    from kgroup.cli.views.description import Pick

    if sort not in (None, *SORTS):
        raise ConfigError(f"--sort {sort!r} is unknown", "only: " + ", ".join(SORTS))
    return Pick(sort, top)


def _sections(section: str | None, by: str) -> tuple[str, ...]:
    if by not in ORDERS:
        raise ConfigError(f"--by {by!r} is unknown", "one of " + ", ".join(ORDERS))
    if section is None:
        return ("summary", "offsets" if by == "topic" else "members", "findings")
    chosen = tuple(name.strip() for name in section.split(",") if name.strip())
    for name in chosen:
        if name not in SECTIONS:
            raise ConfigError(f"--section {name!r} is unknown", "one of " + ", ".join(SECTIONS))
    return chosen


class _Shown:
    """Descriptions as they arrive, and the totals at the end."""

    def __init__(
        self,
        env: Env,
        sections: tuple[str, ...],
        order: "tuple[str, Pick]",
        unseen: Sequence[ItemError],
        where: Document,
    ) -> None:
        self._env, self._sections = env, sections
        self._by, self._pick = order
        self._unseen, self._where = unseen, where
        self._described = 0
        self._errors: list[ItemError] = []
        self._hidden: dict[ItemError, None] = {}

    def show(self, described: Iterator[Description]) -> ExitCode:
        """Print them all; return the exit code."""
        return show_parts(self._env, Answer("groups", self._where), map(self._part, described), self._ending)

    def _part(self, description: Description) -> Part:
        self._described += len(description.groups)
        self._errors += description.errors
        self._hidden.update(dict.fromkeys(error for group in description.groups for error in group.errors))
        return Part(
            documents=lambda: map(document, description.groups),
            blocks=lambda: self._blocks(description),
            main=lambda: self._table(description),
            names=lambda: (group.group_id for group in description.groups),
        )

    def _blocks(self, description: Description) -> list[Block]:
        from kgroup.cli.views.description import blocks

        short = self._env.output.terminal and self._env.output.format == "table"
        shown: list[Block] = []
        for group in description.groups:
            if shown:
                shown.append("")
            shown += blocks(group, self._sections, self._by, short, self._pick)
        return shown

    def _table(self, description: Description) -> Table:
        from kgroup.cli.views.description import member_columns, member_rows, offset_columns, offset_rows

        if "members" in self._sections:
            rows = [
                row
                for group in description.groups
                for row in self._pick(member_rows(group, self._by, short=False))
            ]
            return Table(member_columns(description.groups), rows, varied=True)
        return Table(
            offset_columns(row for group in description.groups for row in group.offsets),
            [row for group in description.groups for row in self._pick(offset_rows(group, short=False))],
        )

    def _ending(self) -> Ending:

        # A group's unknowns were already reported when it was looked up, and again with the group.
        hidden = list(dict.fromkeys([*self._hidden, *self._unseen]))
        code = of_batch(exit_codes(self._errors), bool(self._described))
        return Ending(errors=[*self._errors, *hidden], exit_code=of_seen(code, hidden))
