"""Who was a member when: sessions from the events of a store, by built-in functions only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.window import Window

from kgroup.history.fold.events import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SESSION_COLUMNS = (
    *("part", "group_id", "log_offset", "seq", "event", "ts", "epoch", "cause"),
    *("member_id", "instance_id", "protocol"),
)
"""What of events `sessions` needs."""
_STARTS = (Kind.MEMBER_JOINED, Kind.MEMBER_REPLACED)
_ENDS = (Kind.MEMBER_LEFT_FOR_NOW, Kind.MEMBER_LEFT_OR_EXPIRED)


def sessions(events: DataFrame) -> DataFrame:
    """One row a session of a member, or of an instance id under one member id; see `schemas.MEMBERS`.

    A session begins when a member joins, comes back, or takes an instance id over; it ends when the member
    leaves (for now too), is replaced, or its group is deleted. `joined` is null for members that were there
    before the log begins; `left` and `ended` are null for those that are members still.
    """
    own = events.where(f.col("member_id").isNotNull())
    who = f.coalesce("instance_id", "member_id")
    marked = (
        own.withColumn("who", who)
        .withColumn("starts", f.col("event").isin(*map(str, _STARTS)))
        .withColumn("ends", f.col("event").isin(*map(str, _ENDS)))
    )
    in_order = Window.partitionBy("part", "group_id", "who").orderBy("log_offset", "seq")
    numbered = marked.withColumn("number", f.sum(f.col("starts").cast("int")).over(in_order))
    rows = numbered.groupBy("part", "group_id", "who", "number").agg(*_session())
    following = Window.partitionBy("part", "group_id", "who").orderBy("log_offset", "number")
    rows = rows.withColumn("after", f.lead("begin").over(following))
    gone = events.where(f.col("event") == str(Kind.GROUP_DELETED))
    told = f.sort_array(f.collect_list(f.struct("log_offset", "ts", "epoch", "cause")))
    return _ended(rows, gone.groupBy("part", "group_id").agg(told.alias("deletions")))


def _session() -> list[Column]:
    at = f.struct("log_offset", "seq")
    end = f.struct("event", "ts", "epoch", "cause", "log_offset")
    return [
        f.min("log_offset").alias("log_offset"),
        f.max("instance_id").alias("instance_id"),
        f.max_by("member_id", at).alias("member_id"),
        f.min_by("protocol", at).alias("protocol"),
        f.min_by("epoch", at).alias("joined_epoch"),
        f.min(f.when(f.col("starts"), f.col("ts"))).alias("joined"),
        f.min_by(f.struct("ts", "epoch", "log_offset"), at).alias("begin"),
        f.min_by(f.when(f.col("ends"), end), f.when(f.col("ends"), at)).alias("end"),
    ]


def _ended(rows: DataFrame, deletions: DataFrame) -> DataFrame:
    """What ended each session first: an event of its own, the next session, or the group's deletion."""
    joined = rows.join(deletions, ["part", "group_id"], "left")
    gone = f.get(f.filter("deletions", lambda d: d.log_offset > f.col("log_offset")), f.lit(0))

    def candidate(kind: Column, place: str) -> Column:
        columns = (f.col(f"{place}.{name}") for name in ("ts", "epoch", "cause", "log_offset"))
        ts, epoch, cause, offset = columns
        told = f.struct(offset.alias("offset"), ts.alias("ts"), kind.alias("kind"), epoch, cause)
        return f.when(f.col(f"{place}.ts").isNotNull(), told)

    ends = f.array(
        candidate(f.col("end.event"), "end"),
        candidate(f.lit(str(Kind.MEMBER_REPLACED)), "after"),
        candidate(f.lit(str(Kind.GROUP_DELETED)), "gone"),
    )
    whole = (
        joined.withColumn("gone", gone)
        .withColumn("after", f.when(f.col("after").isNotNull(), _with_cause("after")))
        .withColumn("last", f.array_compact(ends))
        .withColumn("last", f.array_min("last"))
    )
    return whole.select(
        "part",
        "log_offset",
        "group_id",
        "member_id",
        "instance_id",
        "protocol",
        "joined",
        f.col("last.ts").alias("left"),
        f.col("last.kind").alias("ended"),
        f.col("last.cause").alias("cause"),
        "joined_epoch",
        f.col("last.epoch").alias("left_epoch"),
        (f.unix_millis("last.ts") - f.unix_millis("joined")).alias("duration_ms"),
    )


def _with_cause(place: str) -> Column:
    return f.struct(
        f.col(f"{place}.ts"),
        f.col(f"{place}.epoch"),
        f.lit(None).cast("string").alias("cause"),
        f.col(f"{place}.log_offset"),
    )
