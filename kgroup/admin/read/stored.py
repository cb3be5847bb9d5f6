"""Every record of groups as their logs store it, decoded while reading."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kgroup.admin.read.source import Chosen, Source
from kgroup.domain import SHARE_STATE_TOPIC
from kgroup.errors import KgroupError
from kgroup.history.log_items import BadRange
from kgroup.history.raw import Row, raw_rows
from kgroup.protocol.share_records import TYPES as SHARE_TYPES


@dataclass(slots=True)
class Stored:
    """The records of a source: `rows` reads them once, and the other fields are whole when it has ended."""

    rows: Iterator[Row] = iter(())
    bad: list[BadRange] = field(default_factory=list)
    failures: list[tuple[str, KgroupError]] = field(default_factory=list)
    deliveries_unread: bool = False
    """Whether there are share groups, and no log of the topic with their deliveries."""


def stored(source: Source, selection: Chosen) -> Stored:
    """Return the records of the selected groups; reading them raises a failure of all logs."""
    contents = Stored()
    contents.rows = _rows(source, selection, contents)
    return contents


def _rows(source: Source, selection: Chosen, contents: Stored) -> Iterator[Row]:
    shared = False
    for log in source.logs:
        for row in raw_rows(log, selection.names, selection.wanted, source.topic_names):
            shared = shared or row["type"] in SHARE_TYPES
            yield row
        contents.bad += log.bad
    # Only now is it known whether there are share groups, whose other topic needs its own right.
    for log in source.state_logs() if shared or source.state else ():
        yield from raw_rows(log, selection.names, selection.wanted, source.topic_names, SHARE_STATE_TOPIC)
        contents.bad += log.bad
    source.check()
    contents.failures = source.failures
    contents.deliveries_unread = shared and not source.state and source.admin is None
