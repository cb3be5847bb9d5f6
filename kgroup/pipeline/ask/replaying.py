"""A replay on Spark with the result of one in process: `kgroup replay-log --engine spark`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from kgroup.domain import OFFSETS_TOPIC
from kgroup.history.fold.folding import Fold
from kgroup.history.replay import Story
from kgroup.history.selection import Choice
from kgroup.pipeline.ask.story import story_in
from kgroup.pipeline.read.inputs import Input
from kgroup.pipeline.spark.scratch import scratch
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import Store

if TYPE_CHECKING:
    from pyspark import SparkContext


def replay_on_spark(
    context: SparkContext, sources: Sequence[Path] | Input, **choice: Unpack[Choice]
) -> Story:
    """Return the story of segments, folded by Spark; `choice` selects the groups.

    The folds of the story name the groups that events are about; their states stay where they were folded.
    Needs a place for temporary files that driver and executors share.
    """
    with scratch() as folder:
        store = Store(folder)
        ingest(context, sources, store, tables=frozenset({"bad_ranges"}), **choice)
        return as_story(store)


def as_story(store: Store, group: str | None = None) -> Story:
    """Return a store's events in the form in which a replay of segments returns them."""
    story = story_in(store, group)
    folds = {covered.partition: Fold(covered.partition) for covered in story.coverage}
    for event in story.events:
        if event.group and event.log_topic == OFFSETS_TOPIC:
            folds[event.log_partition]._group(event.group, event.offset)
    replayed = Story(story.events, folds, story.coverage, story.state_coverage)
    if story.state_coverage:
        replayed.deliveries = {}
    return replayed
