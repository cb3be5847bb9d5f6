"""Decisions of the authorizer, against rules applied one by one without an index."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from kgroup.security.acls import ANYBODY, WILDCARD, Acl, Operation, PatternType, Permission, ResourceType
from kgroup.security.authorizer import Authorizer
from kgroup.security.principals import Principal

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
TOPIC = ResourceType.TOPIC
HERE, ELSEWHERE = "127.0.0.1", "10.0.0.1"
ALLOW, DENY = Permission.ALLOW, Permission.DENY

names = st.text("ab*", min_size=1, max_size=4)
acls = st.builds(
    Acl,
    st.sampled_from([TOPIC, ResourceType.GROUP]),
    names,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from([str(ALICE), str(BOB), ANYBODY, "Role:alice"]),
    st.sampled_from([HERE, ELSEWHERE, WILDCARD]),
    st.sampled_from([op for op in Operation if op > Operation.ANY]),
    st.sampled_from([ALLOW, DENY]),
)
actions = st.sampled_from([op for op in Operation if op > Operation.ALL])


def acl(name: str, operation: Operation, permission: Permission = ALLOW, **more: object) -> Acl:
    fields = {"pattern": PatternType.LITERAL, "principal": str(ALICE), "host": WILDCARD, **more}
    return Acl(TOPIC, name, operation=operation, permission=permission, **fields)  # type: ignore[arg-type]


def naive(
    rules: Iterable[Acl], who: Principal, host: str, operation: Operation, name: str, default: bool
) -> bool:
    """What StandardAuthorizerData decides about a topic, in its own order."""
    about = [
        r
        for r in rules
        if r.resource_type is TOPIC
        and (
            (r.pattern is PatternType.LITERAL and r.name in (name, WILDCARD))
            or (r.pattern is PatternType.PREFIXED and name.startswith(r.name))
        )
    ]
    mine = [r for r in about if r.principal in (str(who), ANYBODY) and r.host in (host, WILDCARD)]
    for rule in mine:
        if rule.permission is DENY and rule.operation in (operation, Operation.ALL):
            return False
    implied = {operation, Operation.ALL}
    if operation is Operation.DESCRIBE:
        implied |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if operation is Operation.DESCRIBE_CONFIGS:
        implied |= {Operation.ALTER_CONFIGS}
    if any(rule.permission is ALLOW and rule.operation in implied for rule in mine):
        return True
    return default and not about


@given(st.lists(acls, max_size=12), names, actions, st.booleans())
def test_decides_as_a_walk_through_all_rules(
    rules: list[Acl], name: str, operation: Operation, default: bool
) -> None:
    authorizer = Authorizer(rules, open_by_default=default)
    for who in (ALICE, BOB):
        wanted = naive(rules, who, HERE, operation, name, default)
        assert authorizer.allows(who, HERE, operation, TOPIC, name) == wanted


@given(st.lists(acls, max_size=8, unique=True), st.data())
def test_a_rule_that_goes_leaves_nothing(rules: list[Acl], data: st.DataObject) -> None:
    authorizer = Authorizer(rules)
    gone = data.draw(st.lists(st.sampled_from(rules), unique=True)) if rules else []
    before = authorizer.changes
    for rule in gone:
        authorizer.remove(rule)
    rest = [rule for rule in rules if rule not in gone]
    assert authorizer.acls == frozenset(rest)
    assert authorizer.changes == before + len(gone)
    name, operation = data.draw(names), data.draw(actions)
    fresh = Authorizer(rest)
    assert authorizer.allows(ALICE, HERE, operation, TOPIC, name) == fresh.allows(
        ALICE, HERE, operation, TOPIC, name
    )


def test_a_rule_that_forbids_comes_first_whatever_its_pattern() -> None:
    allowed = acl("orders", Operation.READ)
    for rule in (
        acl("orders", Operation.READ, DENY),
        acl("ord", Operation.READ, DENY, pattern=PatternType.PREFIXED),
        acl(WILDCARD, Operation.ALL, DENY, principal=ANYBODY),
    ):
        assert not Authorizer([allowed, rule]).allows(ALICE, HERE, Operation.READ, TOPIC, "orders")


def test_what_is_forbidden_implies_nothing() -> None:
    rules = [acl("orders", Operation.READ, DENY), acl("orders", Operation.DESCRIBE)]
    authorizer = Authorizer(rules)
    assert authorizer.allows(ALICE, HERE, Operation.DESCRIBE, TOPIC, "orders")
    assert not authorizer.allows(ALICE, HERE, Operation.READ, TOPIC, "orders")


def test_a_super_user_is_bound_by_no_rule() -> None:
    authorizer = Authorizer([acl("orders", Operation.ALL, DENY)], ["User:alice"])
    assert authorizer.allows(ALICE, HERE, Operation.READ, TOPIC, "orders")
    assert authorizer.is_super(ALICE) and not authorizer.is_super(BOB)


def test_open_by_default_ends_where_a_rule_is_about_the_resource() -> None:
    authorizer = Authorizer([acl("orders", Operation.READ)], open_by_default=True)
    assert authorizer.allows(BOB, HERE, Operation.READ, TOPIC, "free")
    assert not authorizer.allows(BOB, HERE, Operation.READ, TOPIC, "orders")


def test_somewhere() -> None:
    """Authorizer.authorizeByResourceType, as InitProducerId asks it (KIP-679)."""

    def may(*rules: Acl) -> bool:
        return Authorizer(rules).allows_somewhere(ALICE, HERE, Operation.WRITE, TOPIC)

    write, read = acl("orders", Operation.WRITE), acl("orders", Operation.READ)
    prefix = acl("ord", Operation.WRITE, pattern=PatternType.PREFIXED)
    assert not may() and not may(read) and not may(acl("orders", Operation.WRITE, host=ELSEWHERE))
    assert may(write) and may(prefix) and may(acl(WILDCARD, Operation.ALL, principal=ANYBODY))
    assert not may(write, acl("orders", Operation.WRITE, DENY))
    assert may(prefix, acl("orders", Operation.WRITE, DENY))
    assert not may(prefix, write, acl("or", Operation.ALL, DENY, pattern=PatternType.PREFIXED))
    assert not may(write, acl(WILDCARD, Operation.WRITE, DENY))
    everywhere = acl(WILDCARD, Operation.WRITE)
    assert may(everywhere, acl("o", Operation.WRITE, DENY, pattern=PatternType.PREFIXED))
    assert not may(acl("orders", Operation.WRITE, DENY))
