"""Incidents as they are posted: kgroup's own JSON, alerts for Alertmanager, a text for Slack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from kgroup.admin.recording.lines import CLOSED, Incident
from kgroup.domain import Document, first_of
from kgroup.durations import iso

_AHEAD_MS = 30 * 86_400_000
"""An alert without an end is resolved after some minutes; one ends when its incident is closed."""


def document(incident: Incident) -> Document:
    """Return an incident as JSON."""
    body = asdict(incident) | {"event": f"incident_{incident.event}", "time_ms": incident.at_ms}
    return body | {"time": iso(incident.at_ms), "since": iso(incident.since_ms)}


def _alerts(incident: Incident) -> object:
    # Labels make an alert: none may change before it ends, and a cause may be known better by then.
    labels = {"alertname": "KafkaConsumerGroups", "incident": incident.id}
    notes = {
        "cause": incident.key,
        "summary": incident.title,
        "severity": incident.severity,
        "codes": " ".join(incident.codes),
        "groups": first_of(incident.groups, 20),
        "caused_by": incident.caused_by,
        "evidence": "\n".join(incident.evidence),
        "run": incident.run,
    }
    ends_ms = incident.at_ms + (0 if incident.event == CLOSED else _AHEAD_MS)
    times = {"startsAt": iso(incident.since_ms), "endsAt": iso(ends_ms)}
    return [{"labels": labels, "annotations": notes, **times}]


def _slack(incident: Incident) -> object:
    lines = [
        f"*{incident.event}* {incident.severity}: {incident.title}",
        f"groups: {first_of(incident.groups)}; since {iso(incident.since_ms)}",
        f"caused by: {incident.caused_by}",
        *(f"• {fact}" for fact in incident.evidence[:5]),
        f"run: {incident.run}",
    ]
    text = "\n".join(lines)
    return {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}


FORMATS: dict[str, Callable[[Incident], object]] = {
    "json": document,
    "alertmanager": _alerts,
    "slack": _slack,
}
