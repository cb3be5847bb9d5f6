"""`kgroup cluster acl`: which principals may do what with which resources."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.models import ChangeStatus
from kgroup.admin.shell import word
from kgroup.cli.declaring import option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.changes import Consent, Execute, Yes, undo_line, with_undo
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.views.changes import RESULT, change
from kgroup.domain import Document, count_of
from kgroup.errors import ConfigError, KgroupError
from kgroup.security.acl_specs import Resources, Terms, filters, new_acls

if TYPE_CHECKING:
    from kgroup.admin.acls import ListedAcl

_COLUMNS = (
    Column("resource_type", "RESOURCE"),
    Column("name"),
    Column("pattern"),
    Column("principal"),
    Column("host"),
    Column("operation"),
    Column("permission"),
)
Names = list[str] | None
Principals = Annotated[
    Names, option("--principal KIND:NAME", "Such as User:alice; 'User:*' is everyone. Repeatable.")
]
Operations = Annotated[Names, option("--operation NAME", "Such as Read, DescribeConfigs or All. Repeatable.")]
Topics = Annotated[Names, option("--topic NAME", "'*' is all topics. Repeatable.")]
Groups = Annotated[Names, option("--group ID", "'*' is all groups. Repeatable.")]
Ids = Annotated[Names, option("--transactional-id ID", "'*' is all of them. Repeatable.")]
Whole = Annotated[bool, option("--cluster", "The cluster itself.")]
Hosts = Annotated[Names, option("--host ADDRESS", "Address of the client. Repeatable.")]
Deny = Annotated[bool, option("--deny", "Rules that deny.")]
Allow = Annotated[bool, option("--allow", "Only rules that allow.")]
Pattern = Annotated[
    str | None,
    option(
        "--pattern KIND",
        "any (the default), literal, prefixed, or match: every rule that applies to that name.",
    ),
]


@make(
    "cluster acl add",
    examples=(
        ("kgroup cluster acl add --principal User:a --operation Read --group a --topic b", "may consume"),
        (
            "kgroup cluster acl add --principal User:a --operation All --topic '*'",
            "everything on every topic",
        ),
        (
            "kgroup cluster acl add --principal User:b --operation All --group '*' --deny",
            "never, whatever else is allowed",
        ),
    ),
)
def add(
    env: Env,
    principal: Principals = None,
    operation: Operations = None,
    topic: Topics = None,
    group_id: Groups = None,
    transactional_id: Ids = None,
    cluster: Whole = False,
    pattern: Annotated[
        str, option("--pattern KIND", "literal, or prefixed for names that begin so.")
    ] = "literal",
    host: Hosts = None,
    deny: Deny = False,
) -> ExitCode:
    """Add access rules (ACLs): each operation on each resource, for each principal.

    A rule that denies overrides all that allow. Read, Write, Delete and Alter imply Describe. Brokers without
    an authorizer (authorizer.class.name) refuse. Rules that exist already are left as they are.
    """
    from kgroup.admin.acls import Acls, ListedAcl

    resources = Resources(topic or (), group_id or (), transactional_id or (), cluster)
    terms = Terms(principal or (), host or (), operation or (), pattern, deny)
    requested = new_acls(resources, terms)
    with open_admin(env) as admin:
        there: Collection[ListedAcl] = ()
        with suppress(KgroupError):  # the request to add them says why
            there = Acls(admin).list(filters(resources, terms))
        listed = [ListedAcl.of(acl) for acl in requested]
        new = [acl for acl, rule in zip(requested, listed, strict=True) if rule not in there]
        where = identity(admin, env)
        journal_id = None
        if new:
            named: list[Document] = [{**ListedAcl.of(acl).words} for acl in new]
            with admin.change("cluster acl add", {"acls": named}, {}, named) as entry:
                Acls(admin).add(new)
                entry.results += [{**row, "result": ChangeStatus.DONE} for row in named]
            journal_id = entry.id
    kept = [rule.words for rule in listed if rule in there]
    rows = [{**rule.words, "result": "unchanged" if rule in there else "added"} for rule in listed]
    text = f"{count_of(len(new), 'access rule')} added, {len(kept)} unchanged"
    text += f":   journal {journal_id}" if journal_id else ":"
    data = {"acls": [rule.words for rule in listed], "unchanged": kept, "journal_id": journal_id}
    undo = [_undo(env, "cluster acl remove", rule.words) for rule in listed if rule not in there]
    table = Table((*_COLUMNS, Column("result")), rows)
    return show(env, with_undo(Result(data, (text, table), items="acls", cluster=where), *undo))


@make(
    "cluster acl list",
    examples=(
        ("kgroup cluster acl list -b broker:9092", "every rule"),
        (
            "kgroup cluster acl list --topic orders --pattern match -b broker:9092",
            "all rules about this topic, wildcards and prefixes too",
        ),
        ("kgroup cluster acl list --principal User:alice -o json", "all rules for alice by name"),
    ),
)
def list_(
    env: Env,
    principal: Principals = None,
    operation: Operations = None,
    topic: Topics = None,
    group_id: Groups = None,
    transactional_id: Ids = None,
    cluster: Whole = False,
    pattern: Pattern = None,
    host: Hosts = None,
    deny: Deny = False,
    allow: Allow = False,
) -> ExitCode:
    """List access rules (ACLs): all of them, or those that the options select."""

    from kgroup.admin.acls import Acls

    _one_of(deny, allow)
    resources = Resources(topic or (), group_id or (), transactional_id or (), cluster)
    asked = filters(resources, Terms(principal or (), host or (), operation or (), pattern, deny, allow))
    with open_admin(env) as admin:
        listed = Acls(admin).list(asked)
        where = identity(admin, env)
    rows = [acl.words for acl in listed]
    return show(env, Result({"acls": rows}, (Table(_COLUMNS, rows),), items="acls", cluster=where))


@make(
    "cluster acl remove",
    examples=(
        ("kgroup cluster acl remove --principal User:bob -b broker:9092", "show what would go"),
        ("kgroup cluster acl remove --principal User:bob --execute -b broker:9092", "these are gone"),
    ),
)
def remove(
    env: Env,
    principal: Principals = None,
    operation: Operations = None,
    topic: Topics = None,
    group_id: Groups = None,
    transactional_id: Ids = None,
    cluster: Whole = False,
    pattern: Pattern = None,
    host: Hosts = None,
    deny: Deny = False,
    allow: Allow = False,
    execute: Execute = False,
    yes: Yes = False,
) -> ExitCode:
    """Remove the access rules (ACLs) that the options select; nothing without --execute.

    Exactly the rules shown are removed. At least one option must say which are meant.
    """

    from kgroup.admin.acls import Acls

    _one_of(deny, allow)
    resources = Resources(topic or (), group_id or (), transactional_id or (), cluster)
    terms = Terms(principal or (), host or (), operation or (), pattern, deny, allow)
    if terms == Terms() and not list(resources.named()):
        raise ConfigError("no option says which rules are meant", "for example --principal User:bob")
    with open_admin(env) as admin:
        rules = Acls(admin).list(filters(resources, terms))
        gone: tuple[ListedAcl, ...] = ()
        journal_id = None
        where = identity(admin, env)
        if execute and rules:
            question = f"remove {count_of(len(rules), 'access rule')}?"
            lasting = "kgroup cannot add all of these rules again"
            grave = lasting if any(_resource_option(acl.words) is None for acl in rules) else None
            Consent(execute, yes).ask(env, _removal(rules, None, (), where), question, grave=grave)
            named = [acl.words for acl in rules]
            with admin.change("cluster acl remove", {"acls": named}, {"acls": named}, named) as entry:
                gone = Acls(admin).remove(rules)
                entry.results += [{**acl.words, "result": _result(acl, True, gone)} for acl in rules]
            journal_id = entry.id
    result = _removal(rules, journal_id, gone, where)
    for acl in gone:
        result = with_undo(result, _undo(env, "cluster acl add", acl.words))
    return show(env, result)


def _removal(
    rules: "Sequence[ListedAcl]", journal_id: str | None, gone: "Sequence[ListedAcl]", where: Document
) -> Result:
    done = journal_id is not None
    rows = [{**acl.words, "result": _result(acl, done, gone)} for acl in rules]
    summary = f"{count_of(len(gone), 'access rule')} removed" if done else ""
    return change(
        {},
        journal_id,
        {"acls": rows},
        (Table((*_COLUMNS, RESULT), rows),),
        summary if rules else "no such access rule",
        to_do=None if done or not rules else True,
        items="acls",
        names=(),
        cluster=where,
    )


def _undo(env: Env, verb: str, rule: Mapping[str, object]) -> str:
    """Return the opposite of adding or removing one rule."""
    names = ("principal", "host", "operation", "pattern")
    options = [f"--{name} {word(str(rule[name]))}" for name in names]
    resource = _resource_option(rule)
    if resource is None:
        return f"undo: none by kgroup for a rule about {rule['resource_type']} {rule['name']}"
    options.append(resource)
    if str(rule["permission"]).lower() == "deny":
        options.append("--deny")
    elif verb.endswith("remove"):
        options.append("--allow")
    return undo_line(env, verb, options=options)


def _resource_option(rule: Mapping[str, object]) -> str | None:
    """Return the option that names a rule's resource; None where no option does."""
    kind = str(rule["resource_type"]).lower().replace("_", "-")
    if kind == "cluster":
        return "--cluster"
    named = kind in ("topic", "group", "transactional-id")
    return f"--{kind} {word(str(rule['name']))}" if named else None


def _result(acl: "ListedAcl", done: bool, gone: "Sequence[ListedAcl]") -> str:
    if not done:
        return "planned"
    return "removed" if acl in gone else "gone-before"


def _one_of(deny: bool, allow: bool) -> None:
    if deny and allow:
        raise ConfigError("--deny and --allow exclude each other", "leave both out for all rules")


acls = subcommands("acl", "Access rules: add, list, remove.", add, list_, remove)
