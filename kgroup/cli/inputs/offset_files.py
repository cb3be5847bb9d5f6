"""Offsets in files: Kafka's CSV (`topic,partition,offset`, the group first for several) and JSON."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from kgroup.admin.models import SHARE
from kgroup.domain import Document, TopicPartition
from kgroup.errors import ConfigError
from kgroup.numbers import INT64_MAX, whole_number

if TYPE_CHECKING:
    from kgroup.admin.change.offset_plans import CommittedOffset

ONE, SEVERAL = ("topic", "partition", "offset"), ("group", "topic", "partition", "offset")


def parse_csv(
    text: str, groups: Sequence[str], name: str, how: str = "name the group on the command line"
) -> dict[str, dict[TopicPartition, int]]:
    """Return offsets by group from Kafka's CSV; rows without a group are for each of `groups`.

    A header line shows that a program wrote the names, so their blanks belong to them; without one blanks
    around cells are ignored. Raise ConfigError with the line's number for anything that is not a row.
    """
    by_group: dict[str, dict[TopicPartition, int]] = {}
    headed = False
    for number, cells in _csv_rows(text, name):
        row = [cell.strip() for cell in cells]
        header = tuple(row) in (ONE, SEVERAL, ("group_id", *ONE))
        headed = headed or header
        if header or not any(row):
            continue
        if headed:
            row = [*cells[:-2], *row[-2:]]
        where = f"{name} line {number}"
        if len(row) not in (3, 4):
            raise ConfigError(
                f"{where} has {len(row)} cells", f"rows are {','.join(ONE)} or {','.join(SEVERAL)}"
            )
        if len(row) == 3 and not groups:
            raise ConfigError(f"{where} names no group", how)
        # A headed file keeps a name's blanks; those around numbers are none.
        partition, offset = (whole_number(cell.strip(), where, least=-INT64_MAX) for cell in row[-2:])
        for group in [row[0]] if len(row) == 4 else groups:
            by_group.setdefault(group, {})[TopicPartition(row[-3], partition)] = offset
    if not by_group:
        raise ConfigError(f"{name} holds no offsets")
    return by_group


def _csv_rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with their line numbers; raise ConfigError where the text is no CSV."""
    reader = csv.reader(io.StringIO(text, newline=""))
    while True:
        try:
            yield reader.line_num + 1, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ConfigError(f"{name} line {reader.line_num} is not CSV: {error}") from None


class Exported(TypedDict):
    """A group in an export."""

    group_id: str
    type: str | None
    offsets: list[Document]
    no_offsets: str | None


def offsets_document(
    groups: Mapping[str, Mapping[TopicPartition, "CommittedOffset"]], types: Mapping[str, str | None]
) -> list[Exported]:
    """Return committed offsets by group as the JSON of `offsets export`: nothing is lost."""
    return [
        {
            "group_id": group_id,
            "type": types.get(group_id),
            "offsets": [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "committed_offset": stored.offset,
                    "leader_epoch": stored.leader_epoch,
                    "metadata": stored.metadata,
                }
                for partition, stored in sorted(offsets.items(), key=lambda pair: pair[0])
            ],
            "no_offsets": None,
        }
        for group_id, offsets in groups.items()
    ]


def parse_offsets(
    text: str, groups: Sequence[str], name: str, how: str = "name the group on the command line"
) -> dict[str, dict[TopicPartition, "CommittedOffset"]]:
    """Return committed offsets by group from an export: its JSON, its `data`, ndjson, or Kafka's CSV.

    With `groups`, only those of a file that names groups. Raise ConfigError for anything else; `how` says
    where to name the group of a file that names none.
    """
    from kgroup.admin.change.offset_plans import CommittedOffset

    if not text.lstrip().startswith(("{", "[")):
        rows = parse_csv(text, groups, name, how)
        by_group = {
            group: {p: CommittedOffset(offset) for p, offset in by_p.items()} for group, by_p in rows.items()
        }
    else:
        by_group = {}
        for group in _group_documents(text, name):
            offsets = by_group[str(group["group_id"])] = {}
            for row in group["offsets"]:
                try:
                    partition = TopicPartition(str(row["topic"]), _whole(row["partition"], 31))
                    epoch = row.get("leader_epoch")
                    offsets[partition] = CommittedOffset(
                        _whole(row["committed_offset"], 63),
                        -1 if epoch is None else _whole(epoch, 31),
                        str(row.get("metadata") or ""),
                    )
                except (KeyError, TypeError, ValueError):
                    raise ConfigError(f"{json.dumps(row)} is not a committed offset") from None
    missing = [group for group in groups if group not in by_group]
    if missing:
        raise ConfigError(f"{name} has no offsets of group {missing[0]}")
    return {group: rows for group, rows in by_group.items() if not groups or group in groups}


def _whole(value: object, bits: int) -> int:
    """Return a JSON number that is whole and fits; ValueError otherwise: 1.9 is no partition."""
    if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
        raise ValueError(value)
    return value


def names_groups(text: str, name: str) -> bool:
    """Return whether every row of an export says which group it is of; Kafka's CSV of one group does not."""
    if text.lstrip().startswith(("{", "[")):
        return True
    return all(len(row) != len(ONE) for _, row in _csv_rows(text, name))


def share_groups(text: str, name: str) -> frozenset[str]:
    """Return the groups of an export that were share groups; CSV does not say which."""
    if not text.lstrip().startswith(("{", "[")):
        return frozenset()
    return frozenset(str(g["group_id"]) for g in _group_documents(text, name) if g.get("type") == SHARE)


def cluster_of(text: str) -> str | None:
    """Return the id of the cluster that an export is of; None where it does not say."""
    try:
        document = json.loads(text)
    except ValueError:
        return None
    cluster = document.get("cluster") if isinstance(document, dict) else None
    known = cluster.get("id") if isinstance(cluster, dict) else None
    return known if isinstance(known, str) else None


def _group_documents(text: str, name: str) -> Iterable[Mapping[str, Any]]:
    try:
        document = json.loads(text)
    except ValueError:
        try:
            document = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise ConfigError(f"{name} is neither JSON nor CSV: {error}") from None
    for key in ("data", "groups"):
        if isinstance(document, dict):
            document = document.get(key) or ([document] if "group_id" in document else document)
    groups = document if isinstance(document, list) else []
    if not groups or not all(isinstance(g, dict) and "group_id" in g and "offsets" in g for g in groups):
        raise ConfigError(
            f"{name} is not an export of offsets", "kgroup offsets export GROUP -o json makes one"
        )
    return groups
