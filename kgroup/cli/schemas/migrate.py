"""Schemas of `upgrade` and `downgrade`; the names of the plan are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.cli.schemas.parts import STRING, Schema, array, nullable, one_of, record

CHECK = record(
    code=STRING,
    status=one_of("ok", "warn", "block", "info"),
    message=STRING,
    hint=nullable(STRING),
    evidence={"type": "object"},
)
PLAN = record(group_id=STRING, verdict=one_of("ready", "blocked", "already"), checks=array(CHECK))

MIGRATE: Mapping[str, Schema] = {"upgrade plan": PLAN, "downgrade plan": PLAN}
