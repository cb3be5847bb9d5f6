"""Schemas of the commands that need no cluster."""

from collections.abc import Mapping

from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, STRING, Schema, array, nullable, one_of, record

_SETTING = record(setting=STRING, value=STRING)

LOCAL: Mapping[str, Schema] = {
    "explain": record(
        entries=array(
            record(
                name=STRING,
                kind=one_of("error", "group-state", "member-state", "finding"),
                meaning=STRING,
                classic=nullable(STRING),
                consumer=nullable(STRING),
                cause=nullable(STRING),
                next=array(STRING),
                code=nullable(INTEGER),
                retriable=nullable(BOOLEAN),
                aliases=array(STRING),
            )
        )
    ),
    "config show": record(
        config_file=STRING,
        target=STRING,
        settings=array(record(setting=STRING, value=STRING, origin=STRING)),
    ),
    "context list": record(
        config_file=STRING,
        current=nullable(STRING),
        contexts=array(record(name=STRING, current=BOOLEAN, target=STRING)),
    ),
    "context use": record(current=STRING, previous=nullable(STRING)),
    "context show": record(name=STRING, current=BOOLEAN, settings=array(_SETTING)),
}
