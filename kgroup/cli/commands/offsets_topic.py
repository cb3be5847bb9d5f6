"""`kgroup offsets-topic`: the contents of `__consumer_offsets`, and the meaning of its keys and values."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.models import ItemError
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.inputs.history import not_read, opened
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.inputs.locations import Files, StorageOption
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.domain import count_of
from kgroup.durations import iso
from kgroup.errors import ConfigError
from kgroup.history.log_items import RawRecord

if TYPE_CHECKING:
    from kgroup.admin.read.source import Source
    from kgroup.history.stats import Statistics, Tally

_SORTS = ("bytes", "records", "commits", "tombstones")


@make(
    "offsets-topic stats",
    examples=(
        ("kgroup offsets-topic stats -b broker:9092", "what the topic holds and what keeps it large"),
        ("kgroup offsets-topic stats --files ./backup -o json", "of segment files, no broker needed"),
    ),
)
def stats(env: Env, files: Files = None, storage_option: StorageOption = None) -> ExitCode:
    """Count bytes and records by type, tombstones, superseded records and open transactions."""
    from kgroup.history.decode.records import type_name

    with opened(env, files or [], Selection(), storage_option) as source:
        statistics, where = _scan(source), source.cluster
    rows = [
        {"type": number, "name": type_name(number) if number >= 0 else "no key", **_tally(tally)}
        for number, tally in sorted(statistics.by_type().items())
    ]
    columns = (
        Column("type", right=True),
        Column("name"),
        Column("records", right=True),
        Column("bytes", right=True),
        Column("tombstones", right=True),
    )
    total = statistics.total()
    remarks = _remarks(statistics)
    data = {
        "types": rows,
        "total": _tally(total),
        "batches": statistics.batches,
        "compressed_batches": statistics.compressed_batches,
        "markers": statistics.markers,
        "superseded_records": statistics.superseded,
        "superseded_bytes": statistics.superseded_bytes,
        "groups": len(statistics.by_group()),
        "partitions": [{"partition": p, "bytes": size} for p, size in sorted(statistics.partitions.items())],
        "open_transactions": [{**asdict(t), "since": iso(t.since_ms)} for t in statistics.open_transactions],
        "unreadable_batches": statistics.unreadable,
        "remarks": remarks,
    }
    size = sum(statistics.partitions.values())
    summary = (
        f"{count_of(len(statistics.partitions), 'partition')} · {count_of(size, 'byte')} in "
        f"{count_of(statistics.batches, 'batch', 'es')} · "
        f"{count_of(total.records, 'record')} of {count_of(len(statistics.by_group()), 'group')} · "
        f"{statistics.markers} transaction markers"
    )
    shown: list[str | Table] = [summary, "", Table(columns, rows), "", *remarks]
    errors, code = _damage(statistics)
    return show(env, Result(data, shown, "types", (), errors, code, where))


@make(
    "offsets-topic top",
    examples=(
        ("kgroup offsets-topic top -b broker:9092", "the groups that take most of the topic"),
        ("kgroup offsets-topic top --by commits --limit 5", "who commits most often"),
    ),
)
def top(
    env: Env,
    files: Files = None,
    by: Annotated[str, option("--by WHAT", "|".join(_SORTS) + ".", autocompletion=lambda: _SORTS)] = "bytes",
    limit: Annotated[int, option("--limit N", "How many groups to show.", min=1)] = 20,
    storage_option: StorageOption = None,
) -> ExitCode:
    """List the groups that write most to the topic: bytes, records, commits per minute, tombstones.

    Sorted by bytes by default: one classic group's metadata can outweigh a million commits.
    """
    if by not in _SORTS:
        raise ConfigError(f"--by {by!r} is unknown", "one of " + ", ".join(_SORTS))
    with opened(env, files or [], Selection(), storage_option) as source:
        scanned, where = _scan(source), source.cluster
    counts = {
        name: {**_tally(tally), "commits": scanned.commits(name).records}
        for name, tally in scanned.by_group().items()
    }
    names = sorted(counts, key=lambda name: (-counts[name][by], name))[:limit]
    rows = []
    for name in names:
        rate = scanned.commits(name).per_minute
        per_minute = None if rate is None else round(rate, 1)
        rows.append({"group_id": name, **counts[name], "commits_per_minute": per_minute})
    columns = (
        Column("group_id", "GROUP"),
        Column("bytes", right=True),
        Column("records", right=True),
        Column("commits", right=True),
        Column("commits_per_minute", "COMMITS/MIN", right=True),
        Column("tombstones", right=True),
    )
    errors, code = _damage(scanned)
    return show(env, Result({"groups": rows}, (Table(columns, rows),), "groups", names, errors, code, where))


@make(
    "offsets-topic decode",
    examples=(
        ("kgroup offsets-topic decode 000200037061793a", "a key from hex"),
        ("kgroup offsets-topic decode 00030003706179 --value 00000000000700", "a key with its value"),
    ),
)
def decode(
    env: Env,
    key: Annotated[str, argument("HEX", "The key in hex; blanks and 0x are ignored.")],
    value: Annotated[
        str | None, option("--value HEX", "The value in hex; without one it is a tombstone.")
    ] = None,
) -> ExitCode:
    """Decode one key, and its value, from hex."""

    from kgroup.history.raw import raw_row

    record = RawRecord(-1, -1, _hex(key, "the key"), _hex(value, "--value") if value else None, -1, -1)
    row = raw_row(record, -1, False, {})
    data = {
        name: row.get(name) for name in ("type", "type_name", "group_id", "key", "value_version", "value")
    }
    data["error"] = row.get("error")
    text = [f"{data['type_name']} (type {data['type']})"]
    text.append(f"key    {json.dumps(data['key'], ensure_ascii=False)}")
    shown = "tombstone" if record.value is None else json.dumps(data["value"], ensure_ascii=False)
    text.append(f"value  {shown}")
    if data["error"]:
        hint = "a key begins with its type, a value with its version"
        raise ConfigError(f"that does not decode: {data['error']}", hint)
    return show(env, Result(data, text))


def _hex(text: str, what: str) -> bytes:
    try:
        return bytes.fromhex(text.replace("0x", "").replace(":", ""))
    except ValueError:
        raise ConfigError(f"{what} is not hexadecimal", "two digits a byte, as in 0001") from None


def _scan(source: "Source") -> "Statistics":
    from kgroup.history.stats import scan

    with source.progress() as progress:
        scanned = scan(source.logs, progress)
    source.check()
    return scanned


def _tally(tally: "Tally") -> dict[str, int]:
    return {"records": tally.records, "bytes": tally.size, "tombstones": tally.tombstones}


def _remarks(statistics: "Statistics") -> list[str]:
    """Return what keeps the topic large, in words."""
    total, remarks = statistics.total(), []
    if total.records:
        share = 100 * statistics.superseded / total.records
        records = count_of(statistics.superseded, "record")
        remarks.append(f"superseded, so compaction may take them: {records} ({share:.0f} %)")
        remarks.append(f"tombstones: {total.tombstones} ({100 * total.tombstones / total.records:.0f} %)")
        name, largest = max(statistics.by_group().items(), key=lambda item: item[1].size)
        share = 100 * largest.size / max(1, total.size)
        remarks.append(f"largest group: {name} with {share:.0f} % of the bytes")
    remarks += [
        f"transaction of producer {t.producer_id} on partition {t.partition} is open since offset "
        f"{t.first_offset}: compaction stops there"
        for t in statistics.open_transactions
    ]
    return remarks


def _damage(statistics: "Statistics") -> tuple[list[ItemError], ExitCode]:
    errors = [ItemError(bad.source, bad.code, str(bad)) for bad in statistics.bad]
    unread = [not_read(source, failure) for source, failure in statistics.failures.items()]
    if unread:
        return [*errors, *unread], ExitCode.PARTIAL
    if not errors:
        return [], ExitCode.OK
    return errors, ExitCode.PARTIAL if statistics.batches else ExitCode.FAILED


_HELP = "Show statistics of __consumer_offsets, and decode its records."
command = subcommands("offsets-topic", _HELP, stats, top, decode)
