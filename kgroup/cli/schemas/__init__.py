"""JSON Schemas of the commands' `-o json` output: an interface, tested against real output."""

from collections.abc import Mapping
from functools import cache

from kgroup.cli.output.schema_ids import schema_id
from kgroup.cli.schemas.parts import Schema
from kgroup.domain import Document

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def _known() -> Mapping[str, Schema]:
    from kgroup.cli.schemas.groups import GROUPS, LOCAL, MIGRATE
    from kgroup.cli.schemas.history import HISTORY
    from kgroup.cli.schemas.offsets import OFFSETS
    from kgroup.cli.schemas.pipeline import PIPELINE

    return {**LOCAL, **HISTORY, **GROUPS, **OFFSETS, **MIGRATE, **PIPELINE}


def commands() -> tuple[str, ...]:
    """Return the full names of the commands that have a schema."""
    return tuple(sorted(_known()))


def data_of(command: str) -> Schema:
    """Return the schema of a command's own part of the envelope."""
    return _known()[command]


def schema_for(command: str) -> Document | None:
    """Return the schema of the whole envelope a command prints; None for a command without one.

    A failed command prints `data: null`; otherwise `data` follows this schema.
    """
    data = _known().get(command)
    if data is None:
        return None
    return {
        "$schema": DIALECT,
        "title": f"kgroup {command} -o json",
        "type": "object",
        "properties": {
            "schema": {"const": schema_id(command)},
            "kgroup_version": {"type": "string"},
            "cluster": {"anyOf": [{"type": "null"}, _CLUSTER]},
            "status": {"enum": ["ok", "partial", "failed"]},
            "exit_code": {"type": "integer"},
            "data": {"anyOf": [{"type": "null"}, data]},
            "errors": {"type": "array", "items": _ERROR},
        },
        "required": ["schema", "kgroup_version", "cluster", "status", "exit_code", "data", "errors"],
    }


_CLUSTER = {
    "type": "object",
    "properties": {"id": {"type": ["string", "null"]}, "bootstrap": {"type": ["string", "null"]}},
    "required": ["id", "bootstrap"],
}
_ERROR = {
    "type": "object",
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "hint": {"type": ["string", "null"]},
        "item": {"type": ["string", "null"]},
    },
    "required": ["code", "message", "hint", "item"],
}
