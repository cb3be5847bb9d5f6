"""What tables and columns mean, as comments in the Delta tables; docs/pipeline.md has more."""

from __future__ import annotations

from collections.abc import Mapping

from kgroup.history.fold.events import stored_fields

TABLES: Mapping[str, str] = {
    "commits": "One row per offset commit or tombstone of one",
    "control": "One row per other record of a group",
    "markers": "One row per end of a transaction",
    "batches": "One row per batch of the log",
    "bad_ranges": "One row per damaged range of a file, or record that does not decode",
    "events": "One row per event of a group, as kgroup replay-log reports it",
    "deliveries": "One row per event of a share group's deliveries, from __share_group_state",
    "events_open": "Events that later records may extend; of a group, the rows of its newest run count",
    "folds": "Where the fold of each group stopped; the row of its newest run counts. For kgroup alone",
    "runs": "One row per run: which versions of the other tables belong together, and what was read",
}
_COLUMNS: Mapping[str, str] = {
    "part": "Partition of __consumer_offsets",
    "log_offset": "Offset of the record in __consumer_offsets",
    "ts": "When the record was written, as its batch says; UTC, ms",
    "date": "UTC day of the time of the row; 1970-01-01 for times outside the calendar",
    "run": "The run that wrote the row",
    "group_id": "Group; empty for what belongs to no group",
    "topic": "Topic of the committed offset",
    "partition": "Partition of the topic",
    "offset": "Committed offset; null in a tombstone",
    "leader_epoch": "Leader epoch of the committed offset; null where the commit has none",
    "metadata": "Metadata of the commit",
    "commit_ts": "When the commit was made, as its value says; UTC, ms",
    "expire_ts": "When the offset expires; only value version 1 has it",
    "topic_id": "Id of the topic as Kafka prints it; null where the commit has none",
    "value_version": "Version of the commit's value; null in a tombstone",
    "is_tombstone": "Whether the record removes its key",
    "producer_id": "Producer of the transaction; null outside transactions",
    "bytes": "Bytes of key and value, of a batch all of its bytes",
    "key_type": "Type of the key, the first two bytes of it",
    "key": "Raw key",
    "value": "Raw value; null in a tombstone",
    "committed": "Whether the transaction was committed, not aborted",
    "last_offset": "Last offset of the batch",
    "records": "Records in the batch",
    "max_ts": "The largest time of the batch; UTC, ms",
    "source": "The file or partition that the range is in",
    "start": "First byte of the range; -1 for a record that does not decode",
    "end": "Byte behind the range; -1 for a record that does not decode",
    "reason": "What is wrong with it",
    "problem": "corrupt, cut_short (the last batch) or not_read (by a merge of copies)",
    "delivered": "Records that the event is about: first and last offset, and how often they were delivered",
    "deliveries": "What was read of each partition of __share_group_state up to this run",
    "seq": "Order of the events of a group",
    "key_hash": "CRC-32 of the group id, shifted right by one bit; shares of a run are ranges of it",
    "pending": "Whether a transaction of the group had not ended",
    "state": "State of the fold as JSON",
    "kind": "run or compaction",
    "token": "What the names of the run's files begin with",
    "ended": "When the run committed, in ms since 1970",
    "format": "Number of the format of the row",
    "formats": "Number of the format of each other table",
    "places": "The segment and the byte where the batch begins that was read last of each partition",
    "resumed": "Files that the run did not read from their start, and the byte where it began",
    "kgroup_version": "Version of kgroup that made the run",
    "cluster_id": "Cluster that was read; null where nothing says it",
    "bytes_read": "Bytes of the log that were read",
    "sources": "What the run was asked to read",
    "files": "Files that were read",
    "versions": "Versions of the other tables that belong together",
    "spans": "What was read of each partition up to this run",
    "share_groups": "Whether records of share groups were read up to this run",
    "names": "Topic ids that the run learned, with their names",
    **{stored.column: stored.meaning for _, stored in stored_fields().values() if stored.meaning},
}
_OWN: Mapping[tuple[str, str], str] = {
    ("batches", "log_offset"): "First offset of the batch",
    ("runs", "run"): "Number of the run",
    ("deliveries", "part"): "Partition of __share_group_state",
    ("deliveries", "log_offset"): "Offset of the record in __share_group_state",
    ("deliveries", "seq"): "Order of the events at one offset",
    ("deliveries", "topic"): "Topic that the group reads; its id where no name is known",
    ("deliveries", "group_id"): "Share group; empty for a record that does not decode",
}


def comment_of(table: str, column: str) -> str:
    """Return the meaning of a table's column; KeyError for an undocumented one."""
    return _OWN.get((table, column)) or _COLUMNS[column]
