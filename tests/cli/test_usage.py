"""What every command shares: help, usage errors, exit codes, output formats."""

import json

import jsonschema
import pytest
import yaml

import kgroup as package
from kgroup.cli.exit_codes import MEANINGS, ExitCode, Failure, name_of, of_batch, of_error, of_kafka_code
from kgroup.cli.schemas import schema_for
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError, StorageError, Unreachable


def test_help_lists_commands_by_panel(kgroup):
    ran = kgroup("--help")
    assert ran.code == 0
    assert ran.out.index("READ:") < ran.out.index("explain") < ran.out.index("LOCAL:")
    assert "Exit codes:" in ran.out


def test_version(kgroup):
    assert kgroup("--version").out == f"kgroup {package.__version__}\n"


def test_no_command_is_a_usage_error_with_the_help(kgroup):
    ran = kgroup()
    assert ran.code == ExitCode.USAGE
    assert "LOCAL:" in ran.out


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["exlain"], "no command 'exlain'"),
        (["explain", "--nope"], "no such option: --nope"),
        (["explain", "X", "-o", "xml"], "--output 'xml' is not an output format"),
        (["explain", "X", "--color", "red"], "--color 'red' is unknown"),
        (["explain", "X", "-X", "a"], "an argument of -X is not KEY=VALUE"),
        (["coordinator"], "missing argument 'GROUP…'"),
        (["completion", "powershell"], "there is no completion for 'powershell'"),
    ],
)
def test_usage_errors_end_with_2_and_two_lines(kgroup, argv, error):
    ran = kgroup(*argv)
    assert ran.code == ExitCode.USAGE
    assert ran.out == ""
    assert ran.err.splitlines()[0] == f"error: {error}"
    assert ran.err.splitlines()[1].startswith("hint: ")
    assert len(ran.err.splitlines()) == 2


@pytest.mark.parametrize(
    "argv",
    [
        ["-o", "json", "explain", "Empty"],
        ["-ojson", "explain", "Empty"],
        ["--output=json", "-q", "--timeout", "3s", "explain", "Empty"],
        ["--local", "./data", "-o", "json", "explain", "Empty"],
        ["-o", "csv", "explain", "Empty", "-o", "json"],
    ],
)
def test_shared_options_may_stand_in_front_of_the_command(kgroup, argv):
    """As with every peer; the one nearer to the command's own words counts."""
    assert kgroup(*argv).document["schema"] == "kgroup/explain@1"


def test_shared_options_may_stand_in_front_of_a_subcommand(kgroup):
    for argv in (["-o", "json", "config", "show"], ["config", "-o", "json", "show"]):
        assert kgroup(*argv).document["schema"] == "kgroup/config-show@1"


def test_an_unknown_option_in_front_is_named(kgroup):
    ran = kgroup("--nope", "explain", "Empty")
    assert (ran.code, ran.err.splitlines()[0]) == (ExitCode.USAGE, "error: no such option: --nope")


def test_every_exit_code_has_a_meaning():
    assert MEANINGS.keys() == set(ExitCode)


@pytest.mark.parametrize(
    ("error", "code", "name"),
    [
        (ConfigError("x"), ExitCode.USAGE, "CONFIG_ERROR"),
        (Unreachable("x"), ExitCode.UNREACHABLE, "UNREACHABLE"),
        (StorageError("x"), ExitCode.FAILED, "FAILED"),
        (KgroupError("x"), ExitCode.FAILED, "FAILED"),
        (BrokerRefused(69, "x"), ExitCode.NOT_FOUND, "GROUP_ID_NOT_FOUND"),
        (BrokerRefused(68, "x"), ExitCode.REFUSED, "NON_EMPTY_GROUP"),
        (BrokerRefused(30, "x"), ExitCode.NOT_AUTHORISED, "GROUP_AUTHORIZATION_FAILED"),
        (BrokerRefused(58, "x"), ExitCode.NOT_AUTHORISED, "SASL_AUTHENTICATION_FAILED"),
        (BrokerRefused(7, "x"), ExitCode.UNREACHABLE, "REQUEST_TIMED_OUT"),
        (BrokerRefused(-1, "x"), ExitCode.FAILED, "UNKNOWN_SERVER_ERROR"),
        (BrokerRefused(9999, "x"), ExitCode.FAILED, "ERROR_9999"),
        (Failure(ExitCode.BAD_VERDICT, "LAG", "x"), ExitCode.BAD_VERDICT, "LAG"),
    ],
)
def test_failures_map_to_exit_codes(error, code, name):
    assert (of_error(error), name_of(error)) == (code, name)


def test_no_error_code_maps_to_ok_but_none():
    assert [c for c in ErrorCode if of_kafka_code(c) == ExitCode.OK] == [ErrorCode.NONE]


def test_batches():
    assert of_batch([], True) == ExitCode.OK
    assert of_batch([ExitCode.NOT_FOUND], True) == ExitCode.PARTIAL
    assert of_batch([ExitCode.NOT_FOUND, ExitCode.NOT_FOUND], False) == ExitCode.NOT_FOUND
    assert of_batch([ExitCode.NOT_FOUND, ExitCode.REFUSED], False) == ExitCode.FAILED


class TestFormats:
    """One answer in every format."""

    ARGV = ("coordinator", "orders", "pay", "--partitions", "50")

    def test_table(self, kgroup):
        assert kgroup(*self.ARGV).out == (
            "GROUP   OFFSETS-PARTITION\norders                 31\npay                    10\n"
        )

    def test_no_headers(self, kgroup):
        assert kgroup(*self.ARGV, "--no-headers").out == "orders  31\npay     10\n"

    def test_columns(self, kgroup):
        assert kgroup(*self.ARGV, "--columns", "OFFSETS-PARTITION,group_id").out.split() == [
            *("OFFSETS-PARTITION", "GROUP"),
            *("31", "orders"),
            *("10", "pay"),
        ]

    def test_unknown_column_names_the_known_ones(self, kgroup):
        ran = kgroup(*self.ARGV, "--columns", "nope")
        assert ran.code == ExitCode.USAGE
        assert (
            ran.err
            == "error: --columns: there is no column 'nope'\nhint: one of group_id, offsets_partition\n"
        )

    def test_json_is_one_envelope_that_fits_its_schema(self, kgroup):
        document = kgroup(*self.ARGV, "-o", "json").document
        jsonschema.validate(document, schema_for("coordinator"))
        assert document["schema"] == "kgroup/coordinator@1"
        assert document["kgroup_version"] == package.__version__
        assert (document["status"], document["exit_code"], document["errors"]) == ("ok", 0, [])
        assert document["data"]["groups"][0] == {
            "group_id": "orders",
            "offsets_partition": 31,
            "coordinator": None,
        }

    def test_yaml_says_the_same_as_json(self, kgroup):
        as_yaml = yaml.safe_load(kgroup(*self.ARGV, "-o", "yaml").out)
        assert as_yaml == kgroup(*self.ARGV, "-o", "json").document

    def test_ndjson_is_one_object_a_line(self, kgroup):
        lines = [json.loads(line) for line in kgroup(*self.ARGV, "-o", "ndjson").out.splitlines()]
        assert [line["group_id"] for line in lines] == ["orders", "pay"]
        assert {line["schema"] for line in lines} == {"kgroup/coordinator@1"}

    def test_csv(self, kgroup):
        assert kgroup(*self.ARGV, "-o", "csv").out == "group_id,offsets_partition\norders,31\npay,10\n"

    def test_name(self, kgroup):
        assert kgroup(*self.ARGV, "-o", "name").out == "orders\npay\n"

    def test_format_from_the_environment_yields_to_the_flag(self, kgroup, monkeypatch):
        monkeypatch.setenv("KGROUP_OUTPUT", "name")
        assert kgroup(*self.ARGV).out == "orders\npay\n"
        assert kgroup(*self.ARGV, "-o", "csv").out.startswith("group_id,")


def test_control_characters_of_a_name_never_reach_the_terminal(kgroup):
    ran = kgroup("coordinator", "evil\x1b[2J\nname", "--partitions", "3")
    assert "\x1b" not in ran.out
    assert "evil\\x1b[2J\\nname" in ran.out
    assert len(ran.out.splitlines()) == 2


def test_long_rows_are_neither_cut_nor_wrapped_off_a_terminal(kgroup):
    ran = kgroup("coordinator", "g" * 400, "--partitions", "3")
    assert len(ran.out.splitlines()) == 2
    assert "g" * 400 in ran.out


def test_colour_only_where_asked_for(kgroup, monkeypatch):
    argv = ("coordinator", "orders", "--partitions", "3")
    assert "\x1b" not in kgroup(*argv).out
    assert "\x1b[1m" in kgroup(*argv, "--color", "always").out


def test_a_schema_is_asked_for_by_the_name_in_a_document(kgroup):
    told = json.loads(kgroup("schema", "kgroup/describe@2").out)
    assert told == schema_for("describe") and told["properties"]["schema"] == {"const": "kgroup/describe@2"}


def test_a_version_that_is_no_longer_printed_has_no_schema(kgroup):
    ran = kgroup("schema", "kgroup/describe@1")
    assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
    assert "this kgroup prints kgroup/describe@2, not version 1" in ran.err


def test_a_failed_command_prints_an_envelope_too(kgroup):
    ran = kgroup("explain", "NO_SUCH_THING", "-o", "json")
    assert ran.code == ran.document["exit_code"] == ExitCode.NOT_FOUND
    jsonschema.validate(ran.document, schema_for("explain"))
    assert (ran.document["status"], ran.document["data"]) == ("failed", None)
    assert ran.document["errors"][0]["code"] == "UNKNOWN_TERM"
    assert ran.document["errors"][0]["item"] == "NO_SUCH_THING"
    assert ran.err.startswith("error: ")


def test_traceback_only_with_debug(kgroup):
    assert "Traceback" not in kgroup("explain", "nope").err
    assert "Traceback" in kgroup("explain", "nope", "--debug").err
