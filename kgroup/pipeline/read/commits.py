"""Turns places of commits into rows of the table `commits`, for all commits of a chunk at once."""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgroup.domain import ZERO_UUID
from kgroup.history.decode.places import KEY, ROW, Places
from kgroup.history.decode.scan import MOST
from kgroup.pipeline.read.values import Ints, commit_columns
from kgroup.pipeline.schemas import COMMITS

MAX_NAMES = 50_000
Ids = NDArray[np.uint8]
_STAMP = COMMITS.field("ts").type


class TopicIds:
    """The topic ids seen so far, and how commits name those topics."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        """The topic of each id, as Kafka prints ids; at most `MAX_NAMES`."""
        self._numbers = {ZERO_UUID: 0}
        self._texts = pa.array([""], pa.string())
        self._known = np.zeros((1, 2), dtype=np.int64)
        self._newest = np.zeros(0, dtype=np.int32)

    def column(self, ids: Ids, topic: NDArray[np.int32], topics: list[str]) -> pa.Array:
        """Return the ids (16 bytes per row) as Kafka prints them, null for zero.

        `topic` is each row's index in `topics`. A topic keeps its id unless it is created again, so each
        row's id is compared with the newest of its topic.
        """
        # Fewer topics than before: the decoder has dropped them and numbers from zero.
        kept = self._newest[: len(topics)]
        self._newest = np.append(kept, np.zeros(len(topics) - len(kept), dtype=np.int32))
        number, texts = self._newest[topic], self._texts
        rows = np.flatnonzero((self._known[number] != ids.view(np.int64)).any(axis=1))
        if len(rows):
            number[rows], texts = self._looked_up(ids[rows], topic[rows], topics)
            self._newest[topic[rows]] = np.where(number[rows] < len(self._known), number[rows], 0)
        return pa.DictionaryArray.from_arrays(pa.array(number, mask=number == 0), texts)

    def _looked_up(
        self, ids: Ids, topic: NDArray[np.int32], topics: list[str]
    ) -> tuple[NDArray[np.int32], pa.Array]:
        """Return the number of each id, and the texts by number; numbers from `MAX_NAMES` on are not kept."""
        distinct, first, row = np.unique(ids.view("V16").ravel(), return_index=True, return_inverse=True)
        raws = distinct.tolist()
        number = np.array([self._numbers.get(raw, -1) for raw in raws], dtype=np.int32)
        new = np.flatnonzero(number < 0)
        number[new] = np.arange(len(new)) + len(self._known)
        added = _texts(distinct[new])
        texts = pa.concat_arrays([self._texts, added])
        if room := len(new[: MAX_NAMES + 1 - len(self._known)]):
            for at, text in zip(new[:room].tolist(), added[:room].to_pylist(), strict=True):
                self._numbers[raws[at]] = len(self._numbers)
                self.names[text] = topics[topic[first[at]]]
            self._known = np.frombuffer(b"".join(self._numbers), dtype=np.int64).reshape(-1, 2)
            self._texts = texts[: len(self._known)]
        return number[row], texts


class CommitRows:
    """The commits of one split, chunk by chunk."""

    def __init__(self, part: int) -> None:
        self.part = part
        self.ids = TopicIds()

    def table(self, chunk: bytes, places: Places) -> tuple[pa.Table, dict[int, str]]:
        """Return the commits in a chunk; and why some of them are not rows, by log offset."""
        rows = np.frombuffer(places.commits.getvalue(), dtype=np.dtype(list(ROW)))
        size, offset = rows["size"], np.ascontiguousarray(rows["offset"])
        gone = size < 0
        values = commit_columns((chunk, *places.bodies), rows["value"], np.maximum(size, 0))
        key = np.frombuffer(places.keys.getvalue(), dtype=np.dtype(list(KEY)))[rows["key"]]
        topic, topics = np.ascontiguousarray(key["topic"]), list(places.topics)
        group, groups = np.ascontiguousarray(key["group"]), list(places.groups)
        metadata: list[str | None] = [None] * len(rows)
        for row, text in values.metadata.items():
            metadata[row] = text
        epoch = values.leader_epoch
        columns = {
            "part": full(self.part, len(rows)),
            "log_offset": pa.array(offset),
            "ts": pa.array(rows["ts"]).cast(_STAMP),
            "is_tombstone": pa.array(gone),
            "producer_id": pa.array(rows["producer"], mask=rows["producer"] < 0),
            "group_id": pa.DictionaryArray.from_arrays(group, pa.array(groups, pa.string())),
            "topic": pa.DictionaryArray.from_arrays(topic, pa.array(topics, pa.string())),
            "partition": pa.array(key["partition"]),
            "topic_id": self.ids.column(values.topic_id, topic, topics),
            "bytes": pa.array((key["size"] + np.maximum(size, 0)).astype(np.int32)),
            "offset": pa.array(values.offset, mask=gone),
            "leader_epoch": pa.array(epoch.astype(np.int32), mask=gone | (epoch < 0)),
            "metadata": pa.array(metadata, pa.string()),
            "commit_ts": _stamps(values.commit_ms, gone),
            "expire_ts": _stamps(values.expire_ms, gone),
            "value_version": pa.array(values.version.astype(np.int16), mask=gone),
        }
        table = pa.table([columns[name] for name in COMMITS.names], schema=COMMITS)
        bad = [row for row in values.errors if not gone[row]]
        if not bad:
            return table, {}
        sound = np.ones(len(rows), dtype=bool)
        sound[bad] = False
        return table.filter(pa.array(sound)), {int(offset[row]): values.errors[row] for row in bad}


def full(value: int, count: int) -> pa.Array:
    """Return a column with the same value in every row."""
    return pa.array(np.full(count, value, dtype=np.int32))


def _stamps(ms: Ints, gone: NDArray[np.bool_]) -> pa.Array:
    """Return times, null where there is none: Spark cannot read a column with a time outside the calendar."""
    return pa.array(ms, pa.int64(), mask=gone | (ms < 0) | (ms > MOST)).cast(_STAMP)


def _texts(ids: NDArray[np.void]) -> pa.Array:
    """Return topic ids as Kafka prints them."""
    # 18 bytes are 24 characters, so that one call does for all; 22 of them belong to the 16 bytes.
    padded = np.zeros((len(ids), 18), dtype=np.uint8)
    padded[:, :16] = ids.view(np.uint8).reshape(-1, 16)
    text = np.frombuffer(base64.urlsafe_b64encode(padded.tobytes()), dtype=np.uint8).reshape(-1, 24)[:, :22]
    ends = np.arange(len(ids) + 1, dtype=np.int32) * 22
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), pa.py_buffer(text.tobytes()))
