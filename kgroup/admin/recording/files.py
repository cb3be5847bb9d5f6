"""The logs of files to read, with what a recorder noted beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kgroup.admin.read.source import Source
from kgroup.admin.recording.gaps import gaps_in
from kgroup.domain import OFFSETS_TOPIC, grouped
from kgroup.errors import StorageDenied, StorageError, StorageMissing, StorageUnreachable
from kgroup.history.fold.removals import Today
from kgroup.history.sources.folders import Folder, folder_at
from kgroup.history.sources.layout import OBSERVED
from kgroup.history.sources.logs import logs_of, segments_of, state_logs_of, topic_names_near
from kgroup.storage.location import Location
from kgroup.storage.options import StorageOptions


def source_in(
    places: Sequence[Location], options: StorageOptions, until_ms: int | None, note: Callable[[str], None]
) -> Source:
    """Return the logs at paths or URLs, as the cluster was by this time; raise StorageError without any.

    `note` gets a sentence about each copy that is not read.
    """
    try:
        look = segments_of(places, options)
    except (StorageMissing, StorageDenied, StorageUnreachable):
        raise
    except StorageError as error:
        raise _not_recorded(_recordings(places, options)) or error from None
    for text in look.notes:
        note(text)
    logs = logs_of(look)
    named = topic_names_near(places, look.neighbours)
    recordings = _recordings(places, options)
    return Source(
        [*logs],
        named,
        sizes=[log.size for log in logs],
        state=[*state_logs_of(look)],
        gaps=grouped((gap.log, gap.text) for folder in recordings for gap in gaps_in(folder)),
        today=_today(recordings, until_ms),
    )


def _recordings(places: Sequence[Location], options: StorageOptions) -> list[Folder]:
    return [folder for place in places if (folder := folder_at(place, options)).files(OBSERVED)]


def _not_recorded(recordings: Sequence[Folder]) -> StorageError | None:
    """Return why a recorder has no segments; None of what is no recording."""
    from kgroup.admin.recording.then import unread_in

    hint = "doctor --at and lag --at show what its looks saw"
    why = ((folder, unread_in(folder)) for folder in recordings)
    texts = (f"{folder} has no {OFFSETS_TOPIC}: {text}" for folder, text in why if text)
    return next((StorageError(text, hint) for text in texts), None)


def _today(recordings: Sequence[Folder], until_ms: int | None) -> Today:
    """Return what a recorder saw of the cluster by this time; nothing of several recordings."""
    if len(recordings) != 1:
        return Today()
    from kgroup.admin.recording.then import today_in

    return today_in(recordings[0], until_ms)
