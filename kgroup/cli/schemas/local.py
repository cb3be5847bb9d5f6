"""Schemas of the commands that need no cluster."""

from collections.abc import Mapping

from kgroup.cli.explanations.entry import Entry
from kgroup.cli.schemas.derive import model, schema_of
from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, STRING, Schema, array, note, nullable, one_of, record
from kgroup.simulation.play.planning import PlanResult
from kgroup.simulation.play.trace import Line

LOCAL: Mapping[str, Schema] = {
    "simulate": record(
        scenario=nullable(STRING),
        results=array(model(PlanResult, "history")),
        run=note(
            nullable(
                record(
                    seed=INTEGER,
                    steps=INTEGER,
                    simulated_ms=INTEGER,
                    fingerprint=STRING,
                    violation=nullable(STRING),
                    commits_only_relaxed_check_accepted=INTEGER,
                    commits_both_checks_refused=INTEGER,
                    events=array(schema_of(Line)),
                )
            ),
            "with `--seed`; ndjson prints its events then",
        ),
    ),
    "explain": record(
        entries=array(model(Entry, kind=one_of("error", "group-state", "member-state", "finding")))
    ),
    "config show": record(
        config_file=STRING,
        target=STRING,
        settings=note(array(record(setting=STRING, value=STRING, origin=STRING)), "secrets as `********`"),
    ),
    "context list": record(
        config_file=STRING,
        current=nullable(STRING),
        contexts=array(record(name=STRING, current=BOOLEAN, target=STRING)),
    ),
    "context use": record(current=STRING, previous=nullable(STRING)),
    "context show": record(
        name=STRING, current=BOOLEAN, settings=array(record(setting=STRING, value=STRING))
    ),
}
