"""Topic patterns: RE2 syntax, whole names, and complaints that say where."""

import pytest

from kgroup import patterns as regex
from kgroup.errors import ErrorCode, Refused
from kgroup.patterns import Fault, compile_regex, fault_of, matching_topics


def test_a_pattern_matches_whole_names_only():
    names = ["orders", "orders-eu", "my-orders", "payments"]
    assert matching_topics(compile_regex("orders"), names) == {"orders"}
    assert matching_topics(compile_regex("orders.*"), names) == {"orders", "orders-eu"}
    assert matching_topics(compile_regex("a|orders|my"), names) == {"orders"}
    assert matching_topics(compile_regex(""), names) == frozenset()


@pytest.mark.parametrize(
    ("pattern", "reason", "position"),
    [
        ("ab[c", "missing ]: [c", 2),
        ("a(b", "missing ): a(b", 3),
        ("(a)b)c)", "unexpected ): (a)b)c)", 4),
        ("a[b][", "missing ]: [", 4),
        ("(?P<n>?)", "no argument for repetition operator: ?", 6),
        ("x|*a", "no argument for repetition operator: *", 2),
        ("a*|b**", "bad repetition operator: **", 4),
        ("a(?=b)", "invalid perl operator: (?=", 1),
        ("[(?=]a(?=b)", "invalid perl operator: (?=", 6),
        (r"(a)\1", r"invalid escape sequence: \1", 3),
        ("a{1001}", "invalid repetition size: {1001}", 1),
        ("é[z-a]", "invalid character class range: z-a", 2),
        ("abc\\", "trailing \\", 3),
        (r"a\C", r"invalid escape sequence: \C", 1),
        (r"[a\C]", r"invalid escape sequence: \C", 2),
        ("(?P<n>a)(?<n>b)", "duplicate capture group name: (?<n>", 8),
        ("(?P<é>a)", "invalid named capture group: (?P<é>", 0),
        ("a{*", "bad repetition operator: {*", 1),
        ("{{2}", "bad repetition operator: {{2}", 0),
        ("a{999999999}", "invalid repetition size: {999999999}", 1),
        (r"\p{Kawi}", r"invalid character class range: \p{Kawi}", 0),
        (r"[^\P{^Kawi}]", r"invalid character class range: \P{^Kawi}", 2),
        ("a\ud800", "a lone surrogate", 1),
    ],
)
def test_a_fault_names_reason_and_position(pattern, reason, position):
    assert fault_of(pattern) == Fault(reason, position)


def test_a_valid_pattern_has_no_fault():
    assert fault_of(r"(?i)orders-\d+") is None


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (r"\é", "é"),
        (r"[\é]", "é"),
        (r"\\C", "\\C"),
        (r"\Q\C{*\E", r"\C{*"),
        (r"\{*", "{{"),
        ("[]{*]", "{"),
        ("[[:alpha:]{*]{2}", "a{"),
        ("{2", "{2"),
        ("(?P<a>x)(?P<b>y)", "xy"),
    ],
)
def test_what_re2j_accepts_is_read_as_it_reads_it(pattern: str, name: str) -> None:
    assert fault_of(pattern) is None
    assert matching_topics(compile_regex(pattern), [name, "other"]) == {name}


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("(.*)" * 8000, id="unnamed"),
        pytest.param("".join(f"(?P<n{i}>.*)" for i in range(2000)), id="named"),
    ],
)
def test_no_group_is_extracted(pattern: str) -> None:
    """Extracting 8,000 groups from 21 names held every other client up for minutes."""
    assert compile_regex(pattern).groups == 0


def test_a_program_has_a_limit() -> None:
    assert compile_regex("(?:a|bc|.){400}").programsize <= regex.MOST_INSTRUCTIONS
    with pytest.raises(Refused, match="pattern too large - [0-9]+ instructions of 10000"):
        compile_regex("(?:.*){1000}" * 2)
    with pytest.raises(Refused, match="pattern too large - compile failed"):
        compile_regex(r"\p{Lu}{1000}")


def test_categories_have_a_limit() -> None:
    """18,000 characters of them took RE2 a quarter of a second to read before it refused them."""
    assert compile_regex(r"\p{Zs}" * 32)
    with pytest.raises(Refused, match="pattern too large - 2000 categories of 32"):
        compile_regex(r"(?i)(\z[^\PL]){2}?" * 2000)


def test_a_large_program_does_not_stay_in_memory() -> None:
    import re2

    compile_regex("(?:.*){900}")
    assert re2._Regexp._make.cache_info().currsize == 0


def test_an_invalid_pattern_is_refused_by_name_and_printed_nowhere(capfd):
    with pytest.raises(Refused) as refused:
        compile_regex("orders-[")
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.value.message == (
        "SubscribedTopicRegex `orders-[` is not a valid regular expression: missing ]: [ at position 7."
    )
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        pytest.param("()" * 8000 + ")", 16_000, id="unexpected )"),
        pytest.param("a*" * 5000 + "a**" * 5000, 10_001, id="one of many alike"),
        pytest.param("(?=" + "[(?=]" * 4000, 0, id="fragment at the start"),
        pytest.param("[(?=]" * 4000 + "(?=", 20_000, id="fragment at the end"),
        pytest.param("|".join(".*a.{1000}" for _ in range(200)), 0, id="pattern too large"),
    ],
)
def test_a_long_malformed_pattern_is_looked_at_a_few_times(
    pattern: str, position: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look costs the length of the pattern, and a heartbeat that carries one waits for all of them."""
    looked: list[str] = []
    real = regex._error

    def counted(text: str) -> str | None:
        looked.append(text)
        return real(text)

    monkeypatch.setattr(regex, "_error", counted)
    found = fault_of(pattern)
    assert found is not None
    assert found.position == position
    assert len(looked) <= 2 + len(pattern).bit_length()


def test_a_long_malformed_pattern_is_refused_after_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a heartbeat: everybody else's wait for it."""

    def looked_again(text: str) -> str | None:
        raise AssertionError(f"{len(text)} characters were compiled once more")

    monkeypatch.setattr(regex, "_error", looked_again)
    with pytest.raises(Refused, match="not a valid regular expression: unexpected \\)"):
        compile_regex("()" * 16_000 + ")")


def test_the_refusal_of_the_longest_pattern_fits_a_response() -> None:
    with pytest.raises(Refused) as refused:
        compile_regex("(" * 32_767)
    assert len(refused.value.message or "") < 3000
