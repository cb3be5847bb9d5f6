"""Lag as text, tables and JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from kgroup.admin.lag_report import GroupLag, LagReport, PartitionLag
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.output import ItemError, Result
from kgroup.cli.rendering import exit_codes, grouped, shown_errors
from kgroup.cli.tables import Column, Table

_RATES = (
    Column("consumed_per_s", "READ/S", right=True),
    Column("produced_per_s", "WRITTEN/S", right=True),
)
_TIME = Column("time_lag", right=True)


def result(
    measured: LagReport,
    verdict: Mapping[str, Any] | None,
    by_topic: bool,
    in_time: bool,
    where: Mapping[str, Any] | None,
) -> Result:
    """The report; BAD_VERDICT when a group is over the limit, whatever else could not be read."""
    rated = any(group.consumed_per_s is not None for group in measured.groups)
    several = len(measured.groups) > 1
    columns = _columns(by_topic, in_time, rated, several)
    rows = [row for group in measured.groups for row in _rows(group, by_topic)]
    blocks: list[str | Table] = [_headline(group) for group in measured.groups]
    if rows:
        blocks += ["", Table(columns, rows)]
    errors = shown_errors(measured.errors)
    code = of_batch(exit_codes(measured.errors), bool(measured.groups))
    if verdict and verdict["over"]:
        code = ExitCode.BAD_VERDICT
        errors += [_over(group, verdict) for group in measured.groups if group.group_id in verdict["over"]]
    return Result(
        {"groups": [_json(group) for group in measured.groups], "verdict": verdict},
        blocks,
        items="groups",
        names=[group.group_id for group in measured.groups],
        errors=errors,
        exit_code=code,
        cluster=where,
        main=Table(columns, rows),
    )


def duration_text(ms: int | None) -> str | None:
    """`0s`, `850ms`, `12s`, `3m 10s`, `2h 5m`, `3d 4h`: the two largest units."""
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


def _headline(group: GroupLag) -> str:
    total = "unknown" if group.total_lag is None else grouped(group.total_lag)
    parts = [group.group_id, group.state, f"lag {total}"]
    if group.max_time_lag_ms is not None:
        parts.append(f"oldest unread {duration_text(group.max_time_lag_ms)}")
    if group.consumed_per_s is not None and group.produced_per_s is not None:
        parts.append(f"reads {group.consumed_per_s:g}/s of {group.produced_per_s:g}/s written")
        left = group.catches_up_in_s
        parts.append(
            "does not catch up" if left is None else f"caught up in {duration_text(int(left * 1000))}"
        )
    return "   ".join(parts)


def _columns(by_topic: bool, in_time: bool, rated: bool, several: bool) -> tuple[Column, ...]:
    columns = [Column("group_id", "GROUP", wide=not several), Column("topic")]
    if by_topic:
        columns.append(Column("partitions", right=True))
    else:
        columns += [
            Column("partition", right=True),
            Column("committed_offset", "COMMITTED", right=True),
            Column("log_end_offset", "LOG-END", right=True),
        ]
    columns.append(Column("lag", right=True))
    columns += [_TIME] if in_time else []
    columns += _RATES if rated else ()
    if not by_topic:
        columns += [
            Column("instance_id", "INSTANCE"),
            Column("member_id", "MEMBER", wide=True),
            Column("error", wide=True),
        ]
    return tuple(columns)


def _rows(group: GroupLag, by_topic: bool) -> Iterable[dict[str, Any]]:
    if not by_topic:
        return [
            {
                "group_id": group.group_id,
                **asdict(row),
                "time_lag": duration_text(row.time_lag_ms),
                # A dynamic member has no instance id; the reader is who one looks for here.
                "instance_id": row.instance_id or row.member_id,
            }
            for row in group.offsets
        ]
    return [
        {"group_id": group.group_id, **topic, "time_lag": duration_text(topic["max_time_lag_ms"])}
        for topic in _topics(group)
    ]


def _topics(group: GroupLag) -> list[dict[str, Any]]:
    by_topic: dict[str, list[PartitionLag]] = {}
    for row in group.offsets:
        by_topic.setdefault(row.topic, []).append(row)
    return [
        {
            "topic": topic,
            "partitions": len(rows),
            "lag": _total([row.lag for row in rows]),
            "max_time_lag_ms": max((r.time_lag_ms for r in rows if r.time_lag_ms is not None), default=None),
            "consumed_per_s": _total([row.consumed_per_s for row in rows]),
            "produced_per_s": _total([row.produced_per_s for row in rows]),
        }
        for topic, rows in by_topic.items()
    ]


def _total(values: Iterable[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _json(group: GroupLag) -> dict[str, Any]:
    return {**asdict(group), "catches_up_in_s": group.catches_up_in_s, "topics": _topics(group)}


def _over(group: GroupLag, verdict: Mapping[str, Any]) -> ItemError:
    limit: int = verdict["limit"]
    if verdict["unit"] == "records":
        text = f"lag {group.total_lag} is above {limit}"
    else:
        text = f"the oldest unread record waits {duration_text(group.max_time_lag_ms)}, "
        text += f"longer than {duration_text(limit)}"
    return ItemError("LAG_ABOVE_LIMIT", f"{group.group_id}: {text}", None, group.group_id)
