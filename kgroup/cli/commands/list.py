"""`kgroup list`: every group of the cluster."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.as_json import document
from kgroup.admin.models import STATES, GroupListing, ItemError, Listing
from kgroup.cli.declaring import argument, option
from kgroup.cli.env import rest as by_rest
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.rest import Rest, one_source
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.env.zookeeper import ZooKeeper, open_groups, refuse
from kgroup.cli.exit_codes import ExitCode, Failure, of_batch
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.group_names import absent, matches
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table, with_fields
from kgroup.cli.output.wording import STATE_STYLES, UNKNOWN, of_seen
from kgroup.domain import GROUP_TYPES, Document
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView

    Key = Callable[[GroupListing], tuple[object, ...]]

SORTS = ("group", "type", "protocol-type", "state", "members", "coordinator")
_COLUMNS = (
    Column("group_id", "GROUP"),
    Column("type"),
    Column("protocol_type", wide=True),
    Column("state", style=STATE_STYLES),
    Column("members", right=True),
    Column("coordinator", right=True),
    Column("address", wide=True),
)


@make(
    "list",
    examples=(
        ("kgroup list -b broker:9092", "every group"),
        ("kgroup list 'pay*' --state Empty", "by name and state"),
        ("kgroup list --topic orders -o name", "the groups that read a topic, for a script"),
        ("kgroup list --type consumer --sort=-members", "the largest first"),
        ("kgroup list --zookeeper zk:2181/kafka", "groups of Kafka 0.8 to 1.1 in ZooKeeper"),
        ("kgroup list --rest https://rest:8082", "by Confluent's REST API v3"),
    ),
)
def command(
    env: Env,
    glob: Annotated[list[str] | None, argument("[GLOB]…", "Only groups of these names.")] = None,
    regex: Annotated[str | None, option("--regex PATTERN", "Only names that match this pattern.")] = None,
    state: Annotated[
        list[str] | None,
        option(
            "--state STATE",
            "|".join(STATES) + "; repeatable, or comma-separated.",
            autocompletion=lambda: STATES,
        ),
    ] = None,
    type_: Annotated[
        list[str] | None,
        option("--type TYPE", "|".join(GROUP_TYPES) + "; repeatable.", autocompletion=lambda: GROUP_TYPES),
    ] = None,
    protocol_type: Annotated[
        str | None, option("--protocol-type NAME", "Only groups of this protocol type, such as consumer.")
    ] = None,
    topic: Annotated[
        str | None,
        option("--topic TOPIC", "Only groups that subscribe to this topic, own it or have committed it."),
    ] = None,
    static_only: Annotated[bool, option("--static-only", "Only groups with static members.")] = False,
    sort: Annotated[
        str, option("--sort KEY", "|".join(SORTS) + "; a leading - sorts in descending order.")
    ] = "group",
    members: Annotated[
        bool, option("--members/--no-members", "Count members (describes every group).")
    ] = True,
    zookeeper: ZooKeeper = None,
    rest: Rest = None,
) -> ExitCode:
    """List the groups of the cluster, of every protocol.

    Shows what can be seen and names what may hide the rest: brokers that do not answer or partitions of
    __consumer_offsets without a leader (exit code 5), missing rights (6).
    """
    from kgroup.admin.read.listing import list_groups, with_members

    key = _sort_key(sort)
    states, types = _words(state), _words(type_)
    for name in types:
        if name.lower() not in GROUP_TYPES:
            raise ConfigError(f"--type {name!r} is unknown", "one of " + ", ".join(GROUP_TYPES))
    unknown = [name for name in states if name.lower() not in {state.lower() for state in STATES}]
    if unknown:
        raise ConfigError(f"--state {unknown[0]!r} is unknown", "one of " + ", ".join(STATES))
    state_names, kinds = {name.lower() for name in states}, {name.lower() for name in types}
    one_source(zookeeper, rest)
    if zookeeper is not None:
        refuse(zookeeper, type=(types, _ONE_TYPE), static_only=(static_only, _NO_INSTANCES))
        with open_groups(env, zookeeper) as opened:
            listing, where = opened.groups.list_groups(topic), opened.identity()
        groups = [g for g in listing.groups if not state_names or (g.state or "").lower() in state_names]
    elif rest is not None:
        by_rest.refuse(rest, topic=(topic is not None, _BY_DESCRIBE), static_only=(static_only, _BY_DESCRIBE))
        with by_rest.open_groups(env, rest) as api:
            listing, where = api.groups.list_groups(count_members=members), api.identity()
        # A state or type that is not reported may be the requested one.
        groups = [
            g
            for g in listing.groups
            if (not state_names or g.state is None or g.state.lower() in state_names)
            and (not kinds or g.type is None or g.type in kinds)
        ]
    filtered = any((states, types, topic, static_only, regex, protocol_type))
    if zookeeper is not None or rest is not None:
        listing = _with_absent(replace(listing, groups=tuple(groups)), [] if filtered else glob or [])
        listing = replace(listing, groups=_named(groups, glob or [], regex, protocol_type))
        return _show(env, listing, where, key, sort)
    with open_admin(env) as admin:
        listing = _with_absent(list_groups(admin, states, types), [] if filtered else glob or [])
        listing = replace(listing, groups=_named(listing.groups, glob or [], regex, protocol_type))
        described = None
        if topic is not None or static_only:
            from kgroup.admin.read.topic_readers import reading

            listing, described = reading(admin, listing, topic, static_only)
            if topic is not None and not listing.groups:
                _refuse_absent(admin, topic)
        if members:
            listing = with_members(admin, listing, described)
        where = identity(admin, env)
    return _show(env, listing, where, key, sort)


def _with_absent(listing: Listing, names: list[str]) -> Listing:
    """Return the listing with an error for each name that is no pattern and no group, where all are seen."""
    there = {group.group_id for group in listing.groups}
    code, hint = ErrorCode.GROUP_ID_NOT_FOUND, "kgroup list shows which groups there are"
    errors = tuple(
        ItemError(name, code.name, f"there is no group {name}", hint)
        for name in (() if listing.errors else absent(names, there))
    )
    return replace(listing, errors=(*listing.errors, *errors))


def _refuse_absent(admin: "ClusterView", topic: str) -> None:
    """Raise Failure (not found) for a topic that no group reads because there is none."""
    answer = admin.topics([topic])[topic]
    if isinstance(answer, BrokerRefused) and answer.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        hint = "kgroup cluster topics shows them; a topic that may not be described looks the same"
        raise Failure(
            ExitCode.NOT_FOUND, ErrorCode.name_of(answer.code), f"there is no topic {topic}", hint, topic
        )


_ONE_TYPE = "all groups there are of one type"
_NO_INSTANCES = "consumers of that age have no instance ids"
_BY_DESCRIBE = "kgroup describe --rest shows it, group by group"


def _show(env: Env, listing: Listing, where: Document, key: "Key", sort: str) -> ExitCode:
    groups = sorted(listing.groups, key=key, reverse=sort.startswith("-"))
    rows: list[Document] = []
    for group in groups:
        node = group.coordinator
        rows.append(
            {
                "members": UNKNOWN if group.members is None and node is None else group.members,
                "coordinator": None if node is None else f"{node.id}",
                "address": None if node is None else f"{node.host}:{node.port}",
            }
        )
    # A table of many groups needs no documents.
    as_json = env.output.format in ("json", "yaml", "ndjson")
    return show(
        env,
        Result(
            {"groups": [document(group) for group in groups] if as_json else []},
            (Table(_COLUMNS, with_fields(rows, groups, _COLUMNS)),),
            items="groups",
            names=[group.group_id for group in groups],
            errors=listing.errors,
            exit_code=_code(listing),
            cluster=where,
        ),
    )


def _code(listing: Listing) -> ExitCode:
    if all(error.code == ErrorCode.GROUP_ID_NOT_FOUND.name for error in listing.errors):
        return of_batch([ExitCode.NOT_FOUND] * len(listing.errors), bool(listing.groups))
    return of_seen(ExitCode.OK, listing.errors)


def _words(values: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(word.strip() for value in values or () for word in value.split(",") if word.strip())


def _sort_key(sort: str) -> "Key":
    name = sort.removeprefix("-")
    if name not in SORTS:
        raise ConfigError(f"--sort {name!r} is unknown", "one of " + ", ".join(SORTS))
    if name == "members":
        return lambda g: (g.members is not None, g.members or 0, g.group_id)
    if name == "coordinator":
        return lambda g: (-1 if g.coordinator is None else g.coordinator.id, g.group_id)
    attribute = "group_id" if name == "group" else name.replace("-", "_")
    return lambda g: (getattr(g, attribute) or "", g.group_id)


def _named(
    groups: Iterable[GroupListing], globs: list[str], regex: str | None, protocol_type: str | None
) -> tuple[GroupListing, ...]:
    try:
        pattern = re.compile(regex) if regex is not None else None
    except re.error as error:
        raise ConfigError(f"--regex {regex!r} is not a regular expression: {error}") from None
    return tuple(
        group
        for group in groups
        if (not globs or any(matches(glob, group.group_id) for glob in globs))
        and (pattern is None or pattern.search(group.group_id))
        and (protocol_type is None or group.protocol_type == protocol_type)
    )
