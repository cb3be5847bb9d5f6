"""Topic patterns: what brokers take, what matches, and which constructs other languages read differently."""

import re

import pytest

from kgroup.admin.read.patterns import ERROR, WARN, check_pattern

TOPICS = ("orders", "orders-eu", "pay", "pre-orders")


@pytest.mark.parametrize(
    ("pattern", "matches", "prefix_only"),
    [
        ("orders", ["orders"], ["orders-eu"]),
        ("orders.*", ["orders", "orders-eu"], []),
        (".*orders", ["orders", "pre-orders"], ["orders-eu"]),
        ("a|pay", ["pay"], []),
        ("(?i)PAY", ["pay"], []),
        ("", [], list(TOPICS)),
    ],
)
def test_brokers_match_whole_names(pattern, matches, prefix_only):
    found = check_pattern(pattern, TOPICS)
    assert (found.valid, list(found.matches), list(found.prefix_only)) == (True, matches, prefix_only)


@pytest.mark.parametrize(
    "pattern", ["(?!test).*", "(a)\\1", "(?>a)", "a*+", "(?<=x)y", "x\\Z", "\\h", "\\p{IsGreek}"]
)
def test_what_java_takes_and_brokers_refuse(pattern):
    found = check_pattern(pattern, TOPICS)
    assert not found.valid
    assert [d.severity for d in found.differences][:1] == [ERROR]


@pytest.mark.parametrize(
    ("pattern", "in_python"),
    [("\\p{L}+", False), ("\\Qa.b\\E", False), ("(?<n>a)", False), ("(?P<n>a)", True), ("\\d+", True)],
)
def test_what_brokers_take_and_others_read_differently(pattern, in_python):
    found = check_pattern(pattern, TOPICS)
    assert found.valid
    assert [d.severity for d in found.differences] == [WARN]
    try:
        re.compile(pattern)
    except re.error:
        assert not in_python


@pytest.mark.parametrize(
    "pattern", ["orders-.*", "a\\.b", "[a-z]+", "(a|b)?", "a{1,2}".replace(",", ""), "\\\\1"]
)
def test_plain_patterns_draw_no_remark(pattern):
    assert check_pattern(pattern, TOPICS).differences == ()


def test_where_it_goes_wrong():
    found = check_pattern("ab(?!c)", ())
    assert (found.position, found.valid) == (2, False)
    assert found.reason
