"""Durations have a unit, numbers are digits: for every option and setting of the command line."""

import pytest

from kgroup.cli.click import IntParamType
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.lazy import walk
from kgroup.cli.inputs.offset_files import parse_csv
from kgroup.cli.inputs.reset_specs import scope_of, time_ago_ms
from kgroup.cli.output.times import parse_time
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError
from kgroup.numbers import whole_number
from tests.cli.test_config import OPTIONS

DURATIONS = sorted(
    (c.path, max(p.opts, key=len)) for c in walk() for p in c.params if p.metavar == "DURATION"
)
NUMBERS = sorted(
    (c.path, max(p.opts, key=len)) for c in walk() for p in c.params if isinstance(p.type, IntParamType)
)


def typed(path: str, option: str, text: str) -> list[str]:
    """Return the command with its needed words, and the option; it fails before it does anything."""
    command = next(c for c in walk() if c.path == path)
    needed = ["x" for p in command.params if p.param_type_name == "argument" and p.required]
    options = [
        word
        for p in command.params
        if p.param_type_name == "option" and p.required
        for word in (p.opts[0], "1" if isinstance(p.type, IntParamType) else "x")
    ]
    return [*path.split(), *needed, *options, option, text]


@pytest.mark.parametrize(("path", "option"), DURATIONS)
def test_a_number_without_a_unit_is_refused_by_every_option(path, option, kgroup):
    ran = kgroup(*typed(path, option, "7"))
    assert ran.code == ExitCode.USAGE
    assert f"{option}: '7' has no unit" in ran.err and "7d" in ran.err


@pytest.mark.parametrize(("path", "option"), NUMBERS)
@pytest.mark.parametrize("text", ["1_0", " 1", "١", "1e3"])
def test_a_number_is_ascii_digits_in_every_option(path, option, text, kgroup):
    ran = kgroup(*typed(path, option, text))
    assert ran.code == ExitCode.USAGE and "is not a valid whole number" in ran.err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25),
        ("30s", 30),
        ("1.5h", 5400),
        ("1h30m", 5400),
        ("2d12h", 216_000),
        ("2w", 1_209_600),
        ("P1W", 604_800),
        ("PT5M", 300),
        ("P1DT2H30M", 95_400),
        ("0s", 0),
    ],
)
def test_the_forms_of_a_duration(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "1M",
        "5M",
        "1S",
        "30m1h",
        "-1s",
        "-0s",
        "--1s",
        "-PT2H",
        "PT-2H",
        "P1M",
        "PT",
        "1e5s",
        "1_0s",
        "١d",
        "1 h",
    ]
    + ["36501d", "99999999999d", "9" * 90 + "d", "P" + "9" * 18 + "D"],
)
def test_what_is_no_duration(text):
    with pytest.raises(ConfigError, match="^--x: "):
        parse_duration(text, "--x")


@pytest.mark.parametrize("text", ["1_0", " 1", "1 ", "١", "1.0", "", "-", "0x1", "9" * 19])
def test_what_is_no_number(text):
    with pytest.raises(ConfigError, match="offset"):
        whole_number(text, "offset")


def test_numbers_in_csv_and_in_a_scope_are_read_the_same():
    with pytest.raises(ConfigError, match="x.csv line 2: '1_0' is not a whole number"):
        parse_csv("topic,partition,offset\nt,0,1_0\n", ["g"], "x.csv")
    with pytest.raises(ConfigError, match="--topic t:٣"):
        scope_of(["t:٣"], False)


@pytest.mark.parametrize(("text", "numbers"), [("0", {0}), ("0-3,7", {0, 1, 2, 3, 7}), (" 1 , 2-2 ", {1, 2})])
def test_partitions_are_numbers_and_ranges(text, numbers):
    assert scope_of([f"t:{text}"], False).topics == {"t": numbers}


@pytest.mark.parametrize("text", ["", "3-1", "-", "1-", "-1", "0-2147483647", "0..3"])
def test_what_is_no_range_of_partitions_is_refused(text):
    with pytest.raises(ConfigError, match="--topic t:"):
        scope_of([f"t:{text}"], False)


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00+02:00", "36500d"])
def test_a_time_before_1970_is_refused(text):
    """As a number it is one of ListOffsets' sentinels, such as -1 for the end."""
    with pytest.raises(ConfigError, match="before 1970"):
        parse_time(text)


def test_a_duration_back_to_before_1970_is_refused():
    with pytest.raises(ConfigError, match="--by-duration: 36500d ago is before 1970"):
        time_ago_ms("36500d", "--by-duration")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"timeout": "30d"}, "--timeout: 30d is too long"),
        (
            {"property_": ["request.timeout.ms=30s"]},
            r"request.timeout.ms \(-X\): '30s' is not a whole number",
        ),
        ({"property_": ["request.timeout.ms=-1"]}, r"request.timeout.ms \(-X\): -1 is below 0"),
    ],
)
def test_the_time_limit_says_where_it_came_from(given, said):
    env = Env.of("list", {**OPTIONS, **given}, {})
    with pytest.raises(ConfigError, match=said):
        env.settings().timeout_s()


def test_help_says_what_fail_above_counts(kgroup):
    assert "300 is records, 300s or 5m is time" in " ".join(kgroup("lag", "--help").out.split())
