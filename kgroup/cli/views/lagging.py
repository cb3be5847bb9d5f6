"""Lag as text, tables and JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import add, attrgetter
from typing import Annotated, TypedDict

from kgroup.admin.as_json import document
from kgroup.admin.models import REBALANCING, ItemError, RowsToMake
from kgroup.admin.read.broker_clock import SET_RIGHT
from kgroup.admin.read.lag import counted, readers_unknown, total, unknown_of
from kgroup.admin.read.lag_report import GroupLag, LagReport, PartitionLag, oldest_of, rate_of
from kgroup.admin.read.readable import CLOCK_UNSURE, LOOK
from kgroup.admin.refusals import hint_of, naming
from kgroup.admin.shell import command
from kgroup.admin.statuses import READ
from kgroup.cli.output.tables import ByColumn, Column
from kgroup.cli.output.wording import UNKNOWN, lag_text
from kgroup.cli.views.description import STATUS, offset_cells, stable_cells
from kgroup.domain import Document, count_of, grouped

_RATES = (Column("consumed_per_s", "READ/S", right=True), Column("produced_per_s", "WRITTEN/S", right=True))
NOTED = 5
_TIME = Column("time_lag", right=True)


class Limit(TypedDict):
    """The limit of --fail-above: a number of `unit`, records or ms."""

    limit: int
    unit: Annotated[str, ("records", "ms")]


class NoVerdict(TypedDict):
    """A group without a verdict, and why."""

    group_id: str
    reason: str
    never_committed: bool
    beyond_end: bool


class Verdict(Limit):
    """The groups over the limit, and the undecided ones."""

    over: list[str]
    unknown: list[NoVerdict]


class TopicLag(TypedDict):
    """A topic of a group as printed; null where a part of the sum is unknown."""

    topic: str
    partitions: int
    lag: int | None
    lag_at_least: int | None
    unknown_partitions: int
    unreadable_lag: int
    max_time_lag_ms: int | None
    consumed_per_s: float | None
    produced_per_s: float | None


def verdict_of(measured: LagReport, limit: Limit) -> Verdict:
    """Return the groups over the limit, and the undecided ones with the reason."""
    over: list[str] = []
    unknown: list[NoVerdict] = []
    for group in measured.groups:
        if group.no_offsets is not None:
            continue  # nothing in it can be behind
        records = limit["unit"] == "records"
        if records:
            least, most = _work_at_least(group), group.work
        else:
            least, most = group.time_lag_at_least_ms, group.max_time_lag_ms
            most = group.time_lag_at_most_ms if most is None else most
        if least is not None and least > limit["limit"]:
            over.append(group.group_id)
        elif most is None or most > limit["limit"]:
            unknown.append(_why_unknown(group, records))
    return {**limit, "over": over, "unknown": unknown}


def _work_at_least(group: GroupLag) -> int | None:
    """Return how many of the offsets that count may hold records, where it is known that some do."""
    if group.lag_at_least is None:
        return None
    doubtful = (row.lag or 0 for row in _doubtful(group))
    return group.lag_at_least - group.unreadable_lag - sum(doubtful)


def _doubtful(group: GroupLag) -> list[PartitionLag]:
    """Return the partitions of which it could not be seen whether anything is left to read."""
    return [
        row
        for row in group.notable
        if row.lag
        and row.status is not None
        and row.status.unseen is not None
        and row.status.unseen.look == LOOK
    ]


def _why_unknown(group: GroupLag, records: bool) -> NoVerdict:
    """Return why; missing offsets, or ones beyond the end, are reported only if everything could be read."""

    def because(reason: str, *, never: bool = False, beyond: bool = False) -> NoVerdict:
        return {"group_id": group.group_id, "reason": reason, "never_committed": never, "beyond_end": beyond}

    unknown = unknown_of(group.offsets)
    if not records and not unknown:
        unknown = [row for row in group.offsets if row.time_lag_ms is None and not row.gone]
    if unknown:
        first = unknown[0]
        why = naming(first.place, first.reason or first.error or "the record there has no time")
        more = f" ({len(unknown)} partitions in all)" if len(unknown) > 1 else ""
        if group.errors or any(row.error is not None or row.lag is not None for row in unknown):
            return because(why + more)
        never = any(row.committed_offset is None for row in unknown)
        beyond = any(row.committed_offset is not None for row in unknown)
        return because(why + more, never=never, beyond=beyond)
    if group.errors:
        return because(group.errors[0].message)
    if doubtful := _doubtful(group):
        unseen = doubtful[0].status
        assert unseen is not None
        return because(f"whether any of its lag of {group.total_lag} can be read was not seen: {unseen.why}")
    if group.offsets and all(row.gone for row in group.offsets):
        return because("none of its partitions exists any more", never=True)
    if group.offsets or group.state in REBALANCING:
        return because(readers_unknown(group.state))
    return because("nothing is committed and no member reads a partition", never=True)


def notes(group: GroupLag) -> Iterator[str]:
    """Yield why partitions are unknown or excluded, for a person: the first few of them."""
    if group.no_offsets is not None:
        yield f"{group.group_id}: no committed offsets: {group.no_offsets}"
    noted = [row for row in group.notable if row.error or row.reason]
    if unsure := [row for row in noted if row.error_code == CLOCK_UNSURE.code]:
        yield f"{group.group_id}: lag in time has bounds only: {unsure[0].reason}"
        noted = [row for row in noted if row.error_code != CLOCK_UNSURE.code]
    for row in noted[:NOTED]:
        left = "left out: " if row.gone else ""
        why = (row.error or row.reason or "").removeprefix(f"{row.place}: ")
        yield f"{group.group_id}: {row.place} {left}{why}"
    if len(noted) > NOTED:
        yield f"{group.group_id}: and {count_of(len(noted) - NOTED, 'partition')} more; -o json has them all"
    if group.unreadable_lag:
        yield (
            f"{group.group_id}: {group.unreadable_lag} of a lag of {group.lag_at_least} cannot be read: "
            "markers of transactions, or aborted, compacted or deleted records; conditions do not count them"
        )
    if not noted and group.total_lag is None and group.no_offsets is None:
        yield f"{group.group_id}: {_why_unknown(group, True)['reason']}"


def duration_text(ms: int | None) -> str | None:
    """Return `0s`, `850ms`, `12s`, `3m 10s`, `2h 5m`, `3d 4h`: the two largest units."""
    if ms is None:
        return None
    if 0 < ms < 1000:
        return f"{ms}ms"
    parts, rest = [], ms // 1000
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


def no_verdict(group: GroupLag, verdict: NoVerdict) -> ItemError:
    """Report that no verdict on a group can be given, and the remedy."""
    hint = "commit an offset for these partitions: kgroup reset-offsets, or let the readers do it"
    if doubtful := [] if group.errors else _doubtful(group):
        unseen = doubtful[0].status.unseen if doubtful[0].status is not None else None
        code = unseen.code if unseen is not None else "LAG_UNKNOWN"
        return ItemError(group.group_id, code, f"{group.group_id}: {verdict['reason']}", hint_of(code))
    if not group.offsets or all(row.gone for row in group.offsets):
        hint = f"{command('doctor', group.group_id)} says what its members wait for"
    elif not group.errors and any(row.error_code == CLOCK_UNSURE.code for row in group.offsets):
        hint = SET_RIGHT
    elif group.errors or group.lag_at_least is not None and not group.unknown_partitions:
        hint = "retry when it can be read"
    elif verdict["beyond_end"]:
        hint = f"{command('doctor', group.group_id)} says what to do about an offset beyond the end"
    reason = f"{group.group_id}: lag unknown: {verdict['reason']}"
    return ItemError(group.group_id, "LAG_UNKNOWN", reason, hint)


def headline(group: GroupLag) -> str:
    """Return a group in one line."""
    lag = lag_text(group.total_lag, group.lag_at_least, group.unknown_partitions, group.row_count)
    parts = [group.group_id, group.state, lag if group.no_offsets is None else "no committed offsets, no lag"]
    if group.time_lag_at_least_ms is not None:
        least = "" if group.max_time_lag_ms is not None else "at least "
        most = (
            ""
            if group.time_lag_at_most_ms is None
            else f", at most {duration_text(group.time_lag_at_most_ms)}"
        )
        parts.append(f"oldest unread {least}{duration_text(group.time_lag_at_least_ms)}{most}")
    if group.consumed_per_s is not None and group.produced_per_s is not None:
        parts.append(f"reads {group.consumed_per_s:g}/s of {group.produced_per_s:g}/s written")
        left = group.catches_up_in_s
        if left is not None:
            parts.append(f"caught up in {duration_text(int(left * 1000))}")
        elif group.total_lag is not None and group.gain_per_s == 0 and group.consumed_per_s:
            parts.append("as fast as records arrive")
        elif group.total_lag is not None:
            parts.append("does not catch up")
    return "   ".join(parts)


def columns_of(by_topic: bool, in_time: bool, rated: bool, several: bool, held: bool) -> tuple[Column, ...]:
    """Return the columns for the requested options."""
    columns = [Column("group_id", "GROUP", wide=not several), Column("topic")]
    if by_topic:
        columns.append(Column("partitions", right=True))
    else:
        columns += [
            Column("partition", right=True),
            Column("committed_offset", "COMMITTED", right=True),
            Column("log_end_offset", "LOG-END", right=True),
            Column("last_stable_offset", "STABLE", right=True, wide=not held),
        ]
    columns.append(Column("lag", right=True))
    if not by_topic:
        columns.append(STATUS)
    columns += [_TIME] if in_time else []
    columns += _RATES if rated else ()
    if not by_topic:
        columns += [
            Column("instance_id", "INSTANCE"),
            Column("member_id", "MEMBER", wide=True),
            Column("error", wide=True),
        ]
    return tuple(columns)


def rows_of(group: GroupLag, columns: Iterable[Column], by_topic: bool) -> list[Document]:
    """Return a row for each partition, or each topic, of a group."""
    if by_topic:
        return [_topic_row(group, topic, oldest) for topic, oldest in _topics(group)]
    return list(partitions_of([group], columns))


def partitions_of(groups: Sequence[GroupLag], columns: Iterable[Column]) -> ByColumn:
    """Return a row for each partition of the groups, of which there may be a million."""
    columns = list(columns)
    cells: dict[str, list[object]] = {"group_id": [], "status": [], "instance_id": []}
    cells |= {column.key: [] for column in columns}
    for group in groups:
        rows = group.to_make
        # Who owns what is in the rows; a group without members has no owners.
        of_group = (
            _cells_of(group.offsets, columns) if rows is None or rows.waits == READ else _cells_to_make(rows)
        )
        cells["group_id"] += [group.group_id] * group.row_count
        for key in cells.keys() - {"group_id"}:
            cells[key] += of_group.get(key) or [None] * group.row_count
    return ByColumn(cells)


def _cells_to_make(rows: RowsToMake) -> Mapping[str, Sequence[object]]:
    """Return the columns of rows that need not be made for them; those that are left out are empty."""
    late, read = rows.waits.name, READ.name
    ends = list(map(add, rows.offsets, rows.lags))
    return {
        "topic": [partition.topic for partition in rows.places],
        "partition": [partition.partition for partition in rows.places],
        "committed_offset": rows.offsets,
        "log_end_offset": ends,
        "last_stable_offset": [end if lag else None for end, lag in zip(ends, rows.lags, strict=True)],
        "lag": rows.lags,
        "status": [late if lag else read for lag in rows.lags],
    }


def _cells_of(rows: Sequence[PartitionLag], columns: Iterable[Column]) -> Mapping[str, Sequence[object]]:
    cells: dict[str, list[object]] = {
        "status": [None if row.status is None else row.status.name for row in rows],
        # A dynamic member has no instance id; this column is for its reader.
        "instance_id": [row.instance_id or row.member_id for row in rows],
    }
    for column in columns:
        if column == _TIME:
            cells[column.key] = [_measured(row, duration_text(row.time_lag_ms)) for row in rows]
        elif column in _RATES:
            cells[column.key] = [_measured(row, getattr(row, column.key)) for row in rows]
        elif column.key not in cells and column.key != "group_id":
            cells[column.key] = list(map(attrgetter(column.key), rows))
    for number, row in enumerate(rows):
        if row.lag is None or (row.lag and row.last_stable_offset is None):
            for key, cell in {**offset_cells(row), **stable_cells(row)}.items():
                cells[key][number] = cell
    return cells


def _measured(row: PartitionLag, cell: object) -> object:
    """Return a cell of what is measured: unknown without one, and nothing of a partition that is gone."""
    return cell if cell is not None else None if row.lag is None and row.gone else UNKNOWN


def _topic_row(group: GroupLag, topic: TopicLag, oldest: int | None) -> Document:
    rest = None if all(row.gone for row in group.offsets if row.topic == topic["topic"]) else UNKNOWN
    fields: Document = {**topic, "group_id": group.group_id, "time_lag": duration_text(oldest)}
    measured = ("consumed_per_s", "produced_per_s", "lag", "time_lag")
    return {**fields, **{key: rest if fields[key] is None else fields[key] for key in measured}}


def _topics(group: GroupLag) -> list[tuple[TopicLag, int | None]]:
    """Return each topic as printed, and its oldest unread record's age, None if unknown."""
    by_topic = grouped((row.topic, row) for row in group.offsets)
    rows_of_topics: list[tuple[TopicLag, int | None]] = []
    for topic, rows in by_topic.items():
        those = counted(rows)
        summed = total(those)
        oldest, all_ages = oldest_of(those)
        age = oldest if all_ages else None
        document: TopicLag = {
            "topic": topic,
            "partitions": len(rows),
            "lag": summed.lag,
            "lag_at_least": summed.at_least,
            "unknown_partitions": summed.unknown,
            "unreadable_lag": summed.unreadable,
            "max_time_lag_ms": age,
            "consumed_per_s": rate_of(row.consumed_per_s for row in those),
            "produced_per_s": rate_of(row.produced_per_s for row in those),
        }
        rows_of_topics.append((document, age))
    return rows_of_topics


def documents(groups: Iterable[GroupLag]) -> Iterator[Document]:
    """Yield each group as JSON."""
    for group in groups:
        made = document(group)
        made["catches_up_in_s"] = group.catches_up_in_s
        made["topics"] = [topic for topic, _ in _topics(group)]
        del made["errors"]  # they are the envelope's
        yield made


def over_limit(group: GroupLag, verdict: Verdict) -> ItemError:
    """Report that a group is over the limit."""
    limit = verdict["limit"]
    least = ""
    if verdict["unit"] == "records":
        least = "" if group.total_lag is not None else "at least "
        cannot = f", {group.unreadable_lag} of it cannot be read," if group.unreadable_lag else ""
        text = f"lag {least}{group.lag_at_least}{cannot} is above {limit}"
    else:
        text = f"the oldest unread record waits {duration_text(group.time_lag_at_least_ms)}, "
        text += f"longer than {duration_text(limit)}"
    return ItemError(group.group_id, "LAG_ABOVE_LIMIT", f"{group.group_id}: {text}")
