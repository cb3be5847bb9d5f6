"""Committed offsets for keeping: JSON with everything, CSV as Kafka's tool has it."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import kgroup
from kgroup.admin.change.offset_plans import ABSENT, CommittedOffset, GroupNow
from kgroup.admin.models import ItemError
from kgroup.admin.refusals import item_error
from kgroup.cli.exit_codes import ExitCode, of_batch, of_error
from kgroup.cli.inputs.files import write_text
from kgroup.cli.inputs.offset_files import offsets_document
from kgroup.cli.output.result import Result
from kgroup.cli.output.schema_ids import schema_id
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import absent, of_seen
from kgroup.domain import Document, TopicPartition
from kgroup.errors import ConfigError

CommittedOffsets = Mapping[str, Mapping[TopicPartition, CommittedOffset]]


def result(
    now: Mapping[str, GroupNow],
    chosen: CommittedOffsets,
    where: Mapping[str, object] | None,
    unseen: Sequence[ItemError] = (),
) -> Result:
    """Return the committed offsets chosen; missing and unreadable groups are errors of their own.

    `unseen` says where the export may be incomplete.
    """
    there = {g: rows for g, rows in chosen.items() if now[g].state != ABSENT or rows}
    groups = offsets_document(there, {name: group_now.type for name, group_now in now.items()})
    # A reason for no offsets holds only where none can be hidden.
    reasons = {name: None if group_now.unseen else group_now.no_offsets for name, group_now in now.items()}
    exported = [{**group, "no_offsets": reasons[group["group_id"]]} for group in groups]
    rows = [{"group_id": group["group_id"], **row} for group in groups for row in group["offsets"]]
    several = (Column("group_id", "group"),) if len(now) > 1 else ()
    columns = (
        *several,
        Column("topic"),
        Column("partition", right=True),
        Column("committed_offset", "OFFSET", right=True),
    )
    full = (*columns, Column("leader_epoch", wide=True, right=True), Column("metadata", wide=True))
    csv_rows = [{**row, "offset": row["committed_offset"]} for row in rows]
    errors, codes = [], []
    for group in now.values():
        if group.error:
            errors.append(item_error(group.group_id, group.error))
            codes.append(of_error(group.error))
        elif group.state == ABSENT and not chosen[group.group_id]:
            errors.append(absent(group.group_id))
            codes.append(ExitCode.NOT_FOUND)
    some = bool(groups) or not errors
    return Result(
        {"groups": exported},
        (Table(full, rows),) if some else (),
        items="groups",
        names=[str(group["group_id"]) for group in groups],
        errors=[*errors, *unseen],
        exit_code=of_seen(of_batch(codes, bool(groups)), unseen),
        cluster=where,
        main=Table((*several, Column("topic"), Column("partition"), Column("offset")), csv_rows)
        if some
        else None,
    )


def document_text(now: Mapping[str, GroupNow], where: Mapping[str, object] | None) -> str:
    """Return the same document that `offsets export -o json` prints, for a file."""
    offsets = {name: group_now.committed for name, group_now in now.items()}
    groups = offsets_document(offsets, {name: group_now.type for name, group_now in now.items()})
    document: Document = {
        "schema": schema_id("offsets export"),
        "kgroup_version": kgroup.__version__,
        "cluster": where,
        "status": "ok",
        "exit_code": 0,
        "data": {"groups": groups},
        "errors": [],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def keep(file: str | None, now: Mapping[str, GroupNow], where: Mapping[str, object] | None) -> str:
    """Store the offsets of groups to delete in a new file; return its name. ConfigError if it exists."""

    from platformdirs import user_state_path

    if file is None:
        folder = Path(user_state_path("kgroup")) / "exports"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(
                f"cannot make {folder}: {error.strerror}",
                "make it writable, or name another file with --export",
            ) from None
        file = str(
            folder / f"delete-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{time.time_ns() % 1000}.json"
        )
    write_text(file, document_text(now, where), new=True)
    return file
