"""Schemas of the commands about groups; the field names are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.cli.schemas.parts import INTEGER, STRING, Schema, array, nullable, record

NODE = record(id=INTEGER, host=STRING, port=INTEGER)

GROUPS: Mapping[str, Schema] = {
    "coordinator": record(
        groups=array(record(group_id=STRING, offsets_partition=INTEGER, coordinator=nullable(NODE)))
    ),
}
