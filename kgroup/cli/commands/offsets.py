"""`kgroup offsets`: committed offsets out of a group and into one."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.models import SHARE, ItemError
from kgroup.admin.refusals import refused
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.env.zookeeper import ZooKeeper, open_groups
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.changes import Consent, Execute, Reason, Yes
from kgroup.cli.frame.offset_changes import (
    Create,
    Share,
    Topics,
    WaitEmpty,
    import_plan,
    once_empty,
    run,
    unseen_of,
)
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.inputs.files import read_text
from kgroup.cli.inputs.group_names import expand
from kgroup.cli.inputs.offset_files import cluster_of, names_groups, parse_offsets, share_groups
from kgroup.cli.inputs.reset_specs import scope_of
from kgroup.cli.output.result import show
from kgroup.domain import TopicPartition
from kgroup.errors import ConfigError, ErrorCode

if TYPE_CHECKING:
    from kgroup.admin.change.offset_plans import CommittedOffset
    from kgroup.admin.change.reset import Scope
    from kgroup.admin.discovery import ClusterView

AllTopics = Annotated[bool, option("--all-topics", "Every partition the group has committed.")]


@make(
    "offsets export",
    examples=(
        ("kgroup offsets export orders -o json > orders.json", "everything: offset, leader epoch, metadata"),
        ("kgroup offsets export orders -o csv --no-headers", "as Kafka's tool exports"),
        ("kgroup offsets export 'pay*' --topic pay -o ndjson", "several groups, one per line"),
        ("kgroup offsets export orders --zookeeper zk:2181/kafka -o json > orders.json", "from ZooKeeper"),
    ),
)
def export(
    env: Env,
    group: Annotated[list[str], argument("GROUP…", "Group ids or globs.")],
    topic: Topics = None,
    zookeeper: ZooKeeper = None,
) -> ExitCode:
    """Print the committed offsets of groups, so that `offsets import` can restore them.

    For share groups these are the start offsets.

    Brokers omit offsets of topics that the principal may not describe: an export that may lack some
    says so and exits with 6, or with 5 if not all groups can be seen. A group in ZooKeeper that has live
    consumers is refused: they would keep committing there. Owners that may be left over give a warning.
    A name with * ? [ is a pattern; '[*]' is the group called *.
    """
    from kgroup.admin.change.offset_plans import look
    from kgroup.cli.views.offset_exports import result

    scope = scope_of(topic, topic is None)
    if zookeeper is not None:
        with open_groups(env, zookeeper) as opened:
            named = expand(opened.groups, group)
            now, doubts = opened.groups.look(named.groups)
            unseen = [*named.unseen, *doubts]
            where = opened.identity()
        for group_now in now.values():
            if group_now.unseen is not None:
                env.note(f"warning: {group_now.unseen.message}: offsets may move after this export")
    else:
        with open_admin(env) as admin:
            named = expand(admin, group)
            now = look(admin, named.groups)
            hidden = [group_now.unseen for group_now in now.values() if group_now.unseen]
            unseen = [*named.unseen, *(hidden if scope.all_topics else _hidden(admin, scope.topics))]
            where = identity(admin, env)
    for group_now in now.values():
        if group_now.no_offsets is not None and group_now.unseen is None:
            env.note(f"{group_now.group_id} has no committed offsets: {group_now.no_offsets}")
    chosen = {
        name: _within(group_now.committed, scope) for name, group_now in now.items() if not group_now.error
    }
    return show(env, result(now, chosen, where, unseen))


@make(
    "offsets import",
    examples=(
        ("kgroup offsets import orders.json", "show what would change"),
        ("kgroup offsets import orders.json --execute", "offsets, leader epochs and metadata as exported"),
        ("kgroup offsets import plan.csv --to orders --execute", "Kafka's CSV, into a group named here"),
    ),
)
def import_(
    env: Env,
    file: Annotated[str, argument("FILE", "An export: JSON, ndjson or CSV; - is stdin.")],
    to: Annotated[
        list[str] | None, option("--to GROUP", "Only this group from the file; repeatable.")
    ] = None,
    topic: Topics = None,
    execute: Execute = False,
    yes: Yes = False,
    reason: Reason = None,
    wait_empty: WaitEmpty = False,
    share: Share = False,
    create: Create = False,
) -> ExitCode:
    """Commit the offsets of an export exactly as they were; offsets not in the file stay as they are.

    Unlike `reset-offsets --from-file`, this does not move offsets into the range of the log. A share group
    takes them as its start offsets; one that does not exist is made if the export says that it was one. A
    group that the file names is made if it does not exist; one that only --to names needs --create.
    """
    scope, text = scope_of(topic, topic is None), read_text(file)
    offsets = {
        name: _within(rows, scope)
        for name, rows in parse_offsets(text, to or [], file, "--to GROUP names it").items()
    }
    made = offsets.keys() if share else share_groups(text, file)
    typed = () if create or names_groups(text, file) else offsets.keys()
    with open_admin(env) as admin:
        return run(
            env,
            admin,
            lambda: import_plan(admin, offsets, f"import {file}", reason, made, typed, cluster_of(text)),
            Consent(execute, yes),
            before=once_empty(env, admin, list(offsets) if wait_empty else ()),
        )


@make(
    "offsets delete",
    examples=(
        ("kgroup offsets delete orders --topic old-orders", "show what would be deleted"),
        (
            "kgroup offsets delete orders --topic old-orders --execute",
            "the group may keep reading its topics",
        ),
        ("kgroup offsets delete 'pay*' --topic pay:7 --execute", "one partition, of several groups"),
    ),
)
def delete(
    env: Env,
    group: Annotated[list[str], argument("GROUP…", "Group ids or globs.")],
    topic: Topics = None,
    all_topics: AllTopics = False,
    execute: Execute = False,
    yes: Yes = False,
    reason: Reason = None,
) -> ExitCode:
    """Delete committed offsets; the group may have members if none of them subscribes to the topic.

    The plan shows what they have not read yet. `reset-offsets --undo` restores them once the group has no
    members. For a share group, which must be empty, topics are deleted whole.
    """
    from kgroup.admin.change.offset_plans import OffsetsPlan, Purpose, forgotten, look, make_plan, untold
    from kgroup.admin.change.unread import with_unread

    scope = scope_of(topic, all_topics)
    if not topic and not all_topics:
        raise ConfigError(
            "no option says which offsets are meant", "--topic T[:0,2-5], or --all-topics for all of them"
        )
    with open_admin(env) as admin:
        named = expand(admin, group, change=True)
        now = look(admin, named.groups)
        drafts = {
            name: {p: forgotten(group_now, p) for p in _within(group_now.committed, scope)}
            for name, group_now in now.items()
        }

        def plan() -> OffsetsPlan:
            purpose = Purpose("offsets delete", "delete offsets", reason, needs_empty=False)
            return with_unread(admin, make_plan(purpose, now, drafts), now)

        hidden = (row.unseen for row in now.values()) if all_topics else _hidden(admin, scope.topics)
        # Who deletes is answered for each.
        asked = () if execute else (untold(now[name]) for name, rows in drafts.items() if rows)
        unseen = [*named.unseen, *filter(None, (*hidden, *asked))]
        return run(env, admin, plan, Consent(execute, yes), unseen=unseen)


@make(
    "offsets clone",
    examples=(
        ("kgroup offsets clone orders orders-v2", "show what the new group would start from"),
        ("kgroup offsets clone orders orders-v2 --execute", "and do it: a second group at the same offsets"),
        ("kgroup offsets clone orders orders-v2 --topic orders --execute", "one topic only"),
    ),
)
def clone(
    env: Env,
    source: Annotated[str, argument("FROM", "The group to copy from; it may be active.")],
    target: Annotated[str, argument("TO", "The group to copy to; need not exist.")],
    topic: Topics = None,
    execute: Execute = False,
    yes: Yes = False,
    reason: Reason = None,
    wait_empty: WaitEmpty = False,
    share: Share = False,
) -> ExitCode:
    """Give a group the committed offsets of another: offsets, leader epochs and metadata.

    Start offsets of share groups and committed offsets of others can be cloned into each other; a copy of a
    share group is one.
    """
    from kgroup.admin.change.offset_plans import (
        ABSENT,
        Draft,
        OffsetsPlan,
        Purpose,
        look,
        make_plan,
    )
    from kgroup.admin.read.conditions import raised

    if source == target:
        raise ConfigError("FROM and TO are the same group")
    scope = scope_of(topic, topic is None)
    with open_admin(env) as admin:

        def plan() -> OffsetsPlan:
            now = look(admin, [source, target], [target] if share else ())
            group = now[source]
            if group.type == SHARE and now[target].state == ABSENT:
                now = look(admin, [source, target], [target])
            if group.error:
                raise group.error
            if not group.committed and group.unseen:
                raise raised(group.unseen)
            if not group.committed and group.state == ABSENT:
                raise refused(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group.group_id}")
            drafts = {target: {p: Draft(at) for p, at in _within(now[source].committed, scope).items()}}
            return make_plan(Purpose("offsets clone", f"clone {source}", reason), now, drafts)

        unseen = unseen_of(admin, [source]) if scope.all_topics else ()
        before = once_empty(env, admin, [target] if wait_empty else ())
        return run(env, admin, plan, Consent(execute, yes), before=before, unseen=unseen)


def _hidden(admin: "ClusterView", topics: Iterable[str]) -> list[ItemError]:
    from kgroup.admin.read.visibility import may_not_see

    return [error for topic in topics for error in may_not_see(admin, topic)]


def _within(
    offsets: "Mapping[TopicPartition, CommittedOffset]", scope: "Scope"
) -> "dict[TopicPartition, CommittedOffset]":
    if scope.all_topics:
        return dict(offsets)
    chosen = {}
    for partition, at in offsets.items():
        numbers: Iterable[int] | None = scope.topics.get(partition.topic, ())
        if numbers is None or partition.partition in numbers:
            chosen[partition] = at
    return chosen


command = subcommands(
    "offsets", "Export, import, delete and clone committed offsets.", export, import_, delete, clone
)
