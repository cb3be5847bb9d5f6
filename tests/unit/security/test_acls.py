"""Which rules a filter means, and what is no rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.errors import ErrorCode, Refused
from kgroup.security.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    check_new,
    known,
)

RULE = Acl(
    ResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:alice",
    "*",
    Operation.READ,
    Permission.ALLOW,
)
PREFIX = replace(RULE, name="ord", pattern=PatternType.PREFIXED)
WILD = replace(RULE, name="*")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), {RULE, PREFIX, WILD}),
        (AclFilter(name="orders"), {RULE}),
        (AclFilter(name="ord"), {PREFIX}),
        (AclFilter(name="orders", pattern=PatternType.MATCH), {RULE, PREFIX, WILD}),
        (AclFilter(name="ordinary", pattern=PatternType.MATCH), {PREFIX, WILD}),
        (AclFilter(name="orders", pattern=PatternType.PREFIXED), set()),
        (AclFilter(pattern=PatternType.PREFIXED), {PREFIX}),
        (AclFilter(resource_type=ResourceType.GROUP), set()),
        (AclFilter(principal="User:bob"), set()),
        (AclFilter(host="10.0.0.1"), set()),
        (AclFilter(operation=Operation.WRITE), set()),
        (AclFilter(permission=Permission.DENY), set()),
        (AclFilter(operation=Operation.READ, permission=Permission.ALLOW, name="*"), {WILD}),
    ],
)
def test_filters(wanted: AclFilter, found: set[Acl]) -> None:
    assert set(filter(wanted.matches, (RULE, PREFIX, WILD))) == found


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (replace(RULE, resource_type=ResourceType.CLUSTER), CLUSTER_NAME),
        (replace(RULE, name=""), "empty resource name"),
        (replace(RULE, resource_type=ResourceType.ANY), "resourceType"),
        (replace(RULE, pattern=PatternType.MATCH), "patternType MATCH"),
        (replace(RULE, operation=Operation.ANY), "operation"),
        (replace(RULE, permission=Permission.ANY), "permissionType"),
        (replace(RULE, principal="alice"), "no colon"),
    ],
)
def test_what_is_no_rule(wrong: Acl, words: str) -> None:
    check_new(RULE)
    with pytest.raises(Refused, match=words) as caught:
        check_new(wrong)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("number", [0, 99, -1])
def test_numbers_nobody_knows(number: int) -> None:
    assert known(Operation, 3) is Operation.READ
    with pytest.raises(Refused):
        known(Operation, number)
