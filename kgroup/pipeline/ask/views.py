"""The derived tables as SQL for both DuckDB and Spark, over the stored ones.

Braces stand for what differs: `longest` is the longest time in a list of `unowned`, `place` a topic and its
partition as one value, `moment` a timestamp; the tables that are read are in braces too. Both support
`unix_millis`, DuckDB by a macro.
"""

from __future__ import annotations

from collections.abc import Mapping

from kgroup.history.fold.events import Kind

_COUNTED = """
ended AS (
  SELECT s.*, e.committed,
    row_number() OVER (PARTITION BY s.part, s.log_offset ORDER BY e.log_offset) AS nth
  FROM seen s JOIN ends e ON e.part = s.part AND e.producer_id = s.producer_id AND e.log_offset > s.log_offset
), counted AS (
  SELECT part, log_offset, group_id, topic, seen.partition, seen.offset, ts, is_tombstone
  FROM seen WHERE producer_id IS NULL
  UNION ALL
  SELECT part, log_offset, group_id, topic, ended.partition, ended.offset, ts, is_tombstone
  FROM ended WHERE nth = 1 AND committed
)"""
"""The commits that count among those in `seen`: of a transaction, if its next marker in `ends` says so."""

STATE_AT = f"""
WITH cuts AS (
  SELECT part, max(last_offset) AS cut FROM {{batches}} b
  WHERE {{moment}} IS NULL OR max_ts <= {{moment}} GROUP BY part
), seen AS (
  SELECT c.* FROM {{commits}} c JOIN cuts ON cuts.part = c.part WHERE c.log_offset <= cut
), ends AS (
  SELECT m.* FROM {{markers}} m JOIN cuts ON cuts.part = m.part WHERE m.log_offset <= cut
), {_COUNTED}, newest AS (
  SELECT part, group_id, topic, counted.partition, max(log_offset) AS log_offset
  FROM counted GROUP BY part, group_id, topic, counted.partition
)
SELECT s.part, s.log_offset, s.group_id, s.topic, s.partition, s.offset, s.leader_epoch, s.metadata,
  s.commit_ts
FROM seen s JOIN newest n ON n.part = s.part AND n.log_offset = s.log_offset
WHERE NOT s.is_tombstone
"""
"""The committed offsets at `moment`, a timestamp; null is the end.

A moment lies after the last batch that is not stamped later, as in `replay-log --at`.
"""

PROGRESS = f"""
WITH seen AS (SELECT c.* FROM {{commits}} c WHERE NOT is_tombstone),
ends AS (SELECT m.* FROM {{markers}} m), {_COUNTED}
SELECT CAST(floor(unix_millis(ts) / {{span_ms}}) AS BIGINT) * {{span_ms}} AS start, topic, counted.partition,
  count(*) AS commits, max_by(counted.offset, log_offset) AS offset
FROM counted GROUP BY 1, 2, 3
"""
"""The commits by span of `span_ms` (from `start`, in ms) and partition, and the last offset of each."""

_STARTS = f"'{Kind.MEMBER_JOINED}', '{Kind.MEMBER_REPLACED}'"
_ENDS = f"'{Kind.MEMBER_LEFT_FOR_NOW}', '{Kind.MEMBER_LEFT_OR_EXPIRED}'"
_WHOSE = "part, group_id, who"
_SESSION = f"{_WHOSE}, nr"
_MEMBERS = f"""
WITH own AS (
  SELECT e.*, coalesce(instance_id, member_id) AS who,
    CASE WHEN event IN ({_STARTS}) THEN 1 ELSE 0 END AS starts,
    CASE WHEN event IN ({_ENDS}) THEN 1 ELSE 0 END AS ends
  FROM {{events}} e WHERE member_id IS NOT NULL
), numbered AS (
  SELECT own.*, sum(starts) OVER (PARTITION BY {_WHOSE} ORDER BY log_offset, seq) AS nr FROM own
), placed AS (
  SELECT numbered.*,
    row_number() OVER (PARTITION BY {_SESSION} ORDER BY log_offset, seq) AS nth,
    row_number() OVER (PARTITION BY {_SESSION} ORDER BY log_offset DESC, seq DESC) AS back,
    row_number() OVER (PARTITION BY {_SESSION}, ends ORDER BY log_offset, seq) AS nth_end
  FROM numbered
), sessions AS (
  SELECT {_SESSION}, min(log_offset) AS log_offset, max(instance_id) AS instance_id,
    max(CASE WHEN back = 1 THEN member_id END) AS member_id,
    max(CASE WHEN nth = 1 THEN protocol END) AS protocol,
    max(CASE WHEN nth = 1 THEN epoch END) AS joined_epoch,
    max(CASE WHEN nth = 1 THEN ts END) AS begun,
    min(CASE WHEN starts = 1 THEN ts END) AS joined,
    max(CASE WHEN ends = 1 AND nth_end = 1 THEN event END) AS end_event,
    max(CASE WHEN ends = 1 AND nth_end = 1 THEN ts END) AS end_ts,
    max(CASE WHEN ends = 1 AND nth_end = 1 THEN epoch END) AS end_epoch,
    max(CASE WHEN ends = 1 AND nth_end = 1 THEN cause END) AS end_cause,
    max(CASE WHEN ends = 1 AND nth_end = 1 THEN log_offset END) AS end_at
  FROM placed GROUP BY {_SESSION}
), followed AS (
  SELECT sessions.*,
    lead(begun) OVER (PARTITION BY {_WHOSE} ORDER BY log_offset, nr) AS next_ts,
    lead(joined_epoch) OVER (PARTITION BY {_WHOSE} ORDER BY log_offset, nr) AS next_epoch,
    lead(log_offset) OVER (PARTITION BY {_WHOSE} ORDER BY log_offset, nr) AS next_at
  FROM sessions
), candidates AS (
  SELECT {_SESSION}, end_at AS place, end_ts AS ts, end_event AS kind, end_epoch AS epoch, end_cause AS cause
  FROM followed WHERE end_ts IS NOT NULL
  UNION ALL
  SELECT {_SESSION}, next_at, next_ts, '{Kind.MEMBER_REPLACED}', next_epoch, CAST(NULL AS STRING)
  FROM followed WHERE next_ts IS NOT NULL
  UNION ALL
  SELECT f.part, f.group_id, f.who, f.nr, d.log_offset, d.ts, d.event, d.epoch, d.cause
  FROM followed f JOIN {{events}} d
    ON d.part = f.part AND d.group_id = f.group_id AND d.log_offset > f.log_offset
  WHERE d.event = '{Kind.GROUP_DELETED}'
), ended AS (
  SELECT candidates.*, row_number() OVER (
    PARTITION BY {_SESSION} ORDER BY place, ts, kind, epoch NULLS FIRST, cause NULLS FIRST) AS nth
  FROM candidates
)
SELECT f.part, f.log_offset, f.group_id, f.member_id, f.instance_id, f.protocol, f.joined, e.ts AS left,
  e.kind AS ended, e.cause, f.joined_epoch, e.epoch AS left_epoch,
  unix_millis(e.ts) - unix_millis(f.joined) AS duration_ms
FROM followed f LEFT JOIN ended e
  ON e.part = f.part AND e.group_id = f.group_id AND e.who = f.who AND e.nr = f.nr AND e.nth = 1
"""

_REBALANCES = f"""
WITH ordered AS (
  SELECT e.*,
    lag(event) OVER (PARTITION BY part, group_id ORDER BY log_offset, seq) AS before,
    lag(ts) OVER (PARTITION BY part, group_id ORDER BY log_offset, seq) AS before_ts
  FROM {{events}} e WHERE event IN ('{Kind.REBALANCE_STARTED}', '{Kind.REBALANCE_COMPLETED}')
)
SELECT part, log_offset, group_id,
  CASE WHEN before = '{Kind.REBALANCE_STARTED}' THEN before_ts END AS started,
  end_ts AS completed, epoch, cause, {{longest}} AS unowned_ms, unowned
FROM ordered WHERE event = '{Kind.REBALANCE_COMPLETED}'
"""

_TOP_WRITERS = """
WITH every AS (
  SELECT group_id, bytes, ts, is_tombstone, NOT is_tombstone AS is_commit FROM {commits}
  UNION ALL
  SELECT group_id, bytes, ts, is_tombstone, false FROM {control}
), summed AS (
  SELECT group_id, CAST(sum(bytes) AS BIGINT) AS bytes, count(*) AS records,
    CAST(sum(CASE WHEN is_commit THEN 1 ELSE 0 END) AS BIGINT) AS commits,
    CAST(sum(CASE WHEN is_tombstone THEN 1 ELSE 0 END) AS BIGINT) AS tombstones,
    min(ts) AS first_ts, max(ts) AS last_ts
  FROM every GROUP BY group_id
)
SELECT summed.*, CASE WHEN unix_millis(last_ts) - unix_millis(first_ts) >= 1000
  THEN round(CAST(commits * 60000 AS DOUBLE) / (unix_millis(last_ts) - unix_millis(first_ts)), 1)
  END AS commits_per_minute
FROM summed
"""

_COMMIT_RATES = """
SELECT group_id, date_trunc('minute', ts) AS start, count(*) AS commits,
  count(DISTINCT {place}) AS partitions
FROM {commits} c WHERE NOT is_tombstone GROUP BY group_id, date_trunc('minute', ts)
"""

VIEWS: Mapping[str, str] = {
    "state_at": STATE_AT,
    "members": _MEMBERS,
    "rebalances": _REBALANCES,
    "top_writers": _TOP_WRITERS,
    "commit_rates": _COMMIT_RATES,
    "suspicious_commits": "SELECT * FROM {events} WHERE suspicious OR (event = 'rewound' AND NOT proven)",
}
"""Views by name, each over the stored tables; `state_at` is one for each moment."""
_STEP = ("part", "group_id", "log_offset", "seq", "event", "ts", "epoch", "cause")
_WRITTEN = ("group_id", "bytes", "is_tombstone", "ts")
_COMMIT = (
    "part",
    "log_offset",
    "ts",
    "group_id",
    "topic",
    "partition",
    "offset",
    "is_tombstone",
    "producer_id",
)
READS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "state_at": {
        "batches": ("part", "last_offset", "max_ts"),
        "commits": (*_COMMIT, "leader_epoch", "metadata", "commit_ts"),
        "markers": (),
    },
    "progress": {"commits": _COMMIT, "markers": ()},
    "members": {"events": (*_STEP, "member_id", "instance_id", "protocol")},
    "rebalances": {"events": (*_STEP, "end_ts", "unowned")},
    "top_writers": {"commits": _WRITTEN, "control": _WRITTEN},
    "commit_rates": {"commits": ("group_id", "ts", "topic", "partition", "is_tombstone")},
    "suspicious_commits": {"events": ()},
}
"""The tables that each text reads, with the columns it needs of them; () is all."""
