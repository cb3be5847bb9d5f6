"""`kgroup regex check`: the topics of now, and the verdict as an exit code."""

import io
import sys

import jsonschema

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for


def test_topics_of_the_cluster(on_cluster):
    ran = on_cluster("regex", "check", "ord.*", "-o", "json")
    assert ran.code == ExitCode.OK
    jsonschema.validate(ran.document, schema_for("regex check"))
    assert "orders" in ran.document["data"]["matches"]
    assert on_cluster("regex", "check", "ord.*", "-o", "name").out.split()[0] == "orders"


def test_not_re2_is_a_bad_verdict(kgroup):
    ran = kgroup("regex", "check", "ab(?!c)", "--offline", "-o", "json")
    assert ran.code == ExitCode.BAD_VERDICT
    jsonschema.validate(ran.document, schema_for("regex check"))
    assert ran.document["errors"][0]["code"] == "INVALID_REGULAR_EXPRESSION"
    out = kgroup("regex", "check", "ab(?!c)", "--offline").out.splitlines()
    assert out[0] == "ab(?!c)   NOT RE2"
    assert out[1].startswith("  ^ ")


def test_names_from_stdin(kgroup, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("orders\npay\norders-eu\n"))
    out = kgroup("regex", "check", "orders", "--topics", "-").out
    assert "matches 1 of 3 topics" in out
    assert "only the beginning matches, so excluded: orders-eu" in out
