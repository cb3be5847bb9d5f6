"""The common part of commands over `__consumer_offsets`: its source, the groups, what is complete."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from kgroup.admin.models import ItemError
from kgroup.admin.refusals import unread_deliveries
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, limit_of_many, open_admin
from kgroup.cli.exit_codes import ExitCode, name_of
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.inputs.locations import storage_options
from kgroup.cli.output.bars import bar
from kgroup.domain import OFFSETS_TOPIC, count_of
from kgroup.durations import iso
from kgroup.errors import KgroupError
from kgroup.history.fold.events import Event, Kind
from kgroup.storage.location import Location

if TYPE_CHECKING:
    from kgroup.admin.read.source import Source
    from kgroup.history.replay import Coverage, Story
    from kgroup.history.sources.chunks import Progress

_COVERAGE_LINES = 8
_SHOW_PROGRESS_FROM = 32 << 20
LIMITS = (
    "refused requests (a fenced or refused member, a refused commit) leave no record",
    "a commit says neither which member made it nor in which epoch",
    "a member that left, expired or was removed leaves the same records",
    "a classic rebalance is recorded when it completes, not when it starts",
    "what is stored of a share group's deliveries names no member",
)
"""The limits of every reader of the topic; every JSON answer carries them."""
SUSPICIOUS = (
    "the log cannot settle it (KIP-1251), as a commit names neither member nor epoch,",
    "and a refused one is not in it; kgroup's own broker and simulate count exactly",
    "(cluster status, kgroup docs metrics)",
)


@contextmanager
def opened(
    env: Env,
    files: Sequence[str],
    selection: Selection,
    options: Sequence[str] | None = None,
    ends_s: float | None = None,
) -> Iterator["Source"]:
    """Open the logs to read: files by path or URL, reached by `options`, or those of `env`'s cluster.

    Only a cluster's relevant partitions are opened. `ends_s` is the end of a command that runs on.
    """
    if files:
        from kgroup.admin.recording.files import source_in

        places, how = list(map(Location.parse, files)), storage_options(env, options)
        source = source_in(places, how, selection.span.until_ms, env.note)
        source.progress = _bar(env, sum(source.sizes))
        yield source
        return
    from kgroup.admin.read.source import source_of

    with open_admin(env, stop_after_s=limit_of_many(env) if ends_s is None else ends_s) as admin:
        live = source_of(admin, selection.names)
        live.cluster, live.progress = identity(admin, env), _bar(env)
        yield live


def _bar(env: Env, size: int | None = None) -> "Callable[[], AbstractContextManager[Progress | None]]":
    """Return what shows a progress bar on a terminal for long input, and for a live log of unknown size."""
    return lambda: bar(env, "", size or None, _SHOW_PROGRESS_FROM, of_bytes=True)


def failures_of(failures: Iterable[tuple[str, KgroupError]]) -> list[ItemError]:
    """Return an error for each log that was not read to its end."""
    return [not_read(name, failure) for name, failure in failures]


def coverage_text(covered: "Coverage") -> str:
    """Return one line: what was read, and what part of it is complete."""
    name = f"{covered.topic}-{covered.partition}" if covered.partition >= 0 else covered.topic
    if covered.failure is not None:
        upto = f" behind offset {covered.last_offset}" if covered.records else ""
        why = covered.failure.message.removeprefix(f"{name} cannot be read: ")
        return f"{name} · NOT READ{upto}: {why}"
    if covered.records == 0:
        return f"{name} · nothing to read"
    text = (
        f"{name} · offsets {covered.first_offset} to {covered.last_offset}, "
        f"{count_of(covered.records, 'record')}"
    )
    text += "".join(f" · GAP: {gap}" for gap in covered.gaps)
    if covered.from_the_start:
        return f"{text} · complete: nothing compacted, nothing missing"
    if covered.missing:
        share = 100 * covered.missing / (covered.last_offset - covered.first_offset + 1)
        text += (
            f" · {count_of(covered.missing, 'offset')} ({share:.0f} %) gone, compacted or not in this copy"
        )
    when = iso(covered.complete_from_ms)
    return f"{text} · complete only from offset {covered.complete_from} ({when}) on"


def coverage_lines(story: "Story", selection: Selection) -> list[str]:
    """Return the coverage of the relevant partitions; of very many, the sum and the incomplete ones."""
    read = [c for c in story.coverage if c.records or c.bad or c.failure]
    if selection.patterns:
        read = [c for c in read if story.folds[c.partition].groups or c.failure] or read
    state = [coverage_text(covered) for covered in story.state_coverage if covered.records or covered.failure]
    if len(read) <= _COVERAGE_LINES:
        return [*(coverage_text(covered) for covered in read), *state]
    whole = [c for c in read if c.from_the_start]
    records = sum(c.records for c in read)
    text = (
        f"{count_of(len(read), 'partition')} of __consumer_offsets · "
        f"{count_of(records, 'record')} · {len(whole)} of them complete"
    )
    partial = [coverage_text(c) for c in read if not c.from_the_start]
    return [text, *partial[:_COVERAGE_LINES], *(["…"] if len(partial) > _COVERAGE_LINES else []), *state]


def closing_lines(events: Sequence[Event]) -> list[str]:
    """Return the lines below a story: how much of it is only suspicious, and what it cannot show."""
    count = sum(event.suspicious for event in events)
    first, *more = SUSPICIOUS
    suspicious = [f"{count} suspicious: {first}", *(f"  {line}" for line in more)] if count else []
    return [*suspicious, "not in any record:", *(f"  {limit}" for limit in LIMITS[:3])]


def time_notes(story: "Story") -> list[str]:
    """Return a sentence for each partition in which batches before the story's moment are stamped later."""
    notes = []
    for part, cut in sorted(story.cuts.items()):
        if cut.later is not None:
            offset, stamp, count = cut.later
            those = (
                "batch that is stamped later comes" if count == 1 else "batches that are stamped later come"
            )
            notes.append(
                f"{OFFSETS_TOPIC}-{part}: times go back: {count} {those} before this moment in the log, "
                f"the first at offset {offset} ({iso(stamp)}); the log's order decides"
            )
    return notes


def damage(story: "Story") -> tuple[list[ItemError], ExitCode]:
    """Return an error for each damaged range and each log of another topic, and their exit code."""
    strangers = foreign(story)
    read = any(covered.records for covered in story.coverage if covered.partition not in strangers)
    read = read or any(covered.records for covered in story.state_coverage)
    hint = "what comes before and after it was read" if read else None
    errors = [ItemError(bad.source, bad.code, str(bad), hint) for bad in story.bad]
    for covered in story.coverage:
        if covered.partition in strangers:
            text = f"{covered.source}: {count_of(covered.records, 'record')}, not from __consumer_offsets"
            errors.append(ItemError(covered.source, "CORRUPT_MESSAGE", text, "is it another topic's?"))
    every = (*story.coverage, *story.state_coverage)
    unread = [not_read(c.source, c.failure) for c in every if c.failure is not None]
    errors += unread
    if unread:
        return errors, ExitCode.PARTIAL
    if not errors:
        return [], ExitCode.OK
    return errors, ExitCode.PARTIAL if read else ExitCode.FAILED


def not_read(source: str, failure: KgroupError) -> ItemError:
    """Return the error for a log that could not be read to its end."""
    hint = failure.hint or "groups that live in it are missing here"
    said = failure.message
    text = said if said.startswith(source) else f"{source} was not read: {said}"
    return ItemError(source, name_of(failure), text, hint)


def shortcomings(story: "Story", selection: Selection) -> tuple[list[ItemError], ExitCode]:
    """Return all errors that make the events incomplete, and the exit code for them."""
    errors, code = damage(story)
    missing = unseen(story, selection)
    errors += untimed(selection.outside(story.events).untimed, "event")
    if story.deliveries is None:
        errors += map(unread_deliveries, sorted(story.shared))
    if code is ExitCode.OK and missing and len(missing) == len(selection.names or ()):
        code = ExitCode.NOT_FOUND
    elif code is ExitCode.OK and (missing or errors):
        code = ExitCode.PARTIAL
    return [*errors, *missing], code


def untimed(count: int, what: str) -> list[ItemError]:
    """Return an error for records or events that a time range excludes because they have no time."""
    if not count:
        return []
    those = f"{what} without a time is" if count == 1 else f"{what}s without a time are"
    text = f"{count} {those} excluded: without a timestamp there is no place in the time range"
    return [ItemError("", "NOT_SEEN", text, "without --since and --until nothing is excluded")]


def before_the_log(part: int, first_offset: int, first_ms: int) -> ItemError:
    """Return the error for a moment before the first record that is left of a partition."""
    partition = f"{OFFSETS_TOPIC}-{part}"
    text = f"{partition} begins at offset {first_offset} ({iso(first_ms)}): what there was before is unknown"
    return ItemError(partition, "NOT_SEEN", text, "an older backup, or a capture, may have it")


def unknown_then(story: "Story", names: Iterable[str] | None) -> list[ItemError]:
    """Return an error for each partition that begins after the moment of the story.

    None if all the groups, requested by `names`, were found elsewhere.
    """
    if names is not None and set(names) <= {state.group_id for _, state in story.states}:
        return []
    return [
        before_the_log(part, cut.first, cut.first_ms)
        for part, cut in sorted(story.cuts.items())
        if cut.is_unknown
    ]


def foreign(story: "Story") -> set[int]:
    """Return the partitions whose records are not those of `__consumer_offsets` and name no group."""
    unreadable = Counter(e.log_partition for e in story.events if e.kind is Kind.RECORD_UNREADABLE)
    return {
        covered.partition
        for covered in story.coverage
        if 0 < covered.records <= 2 * unreadable[covered.partition]
        and not story.folds[covered.partition].groups
    }


def unseen(story: "Story", selection: Selection) -> list[ItemError]:
    """Return an error for each group requested by name of which the log holds no record."""
    seen = {name for fold in story.folds.values() for name in fold.groups}
    seen |= {event.group for event in story.events}
    hint = "a deleted group is gone from a compacted log; kgroup offsets-topic top shows which are in it"
    if any(covered.failure is not None for covered in (*story.coverage, *story.state_coverage)):
        hint = "not all was read, so it may be there"
    return [
        ItemError(name, "GROUP_ID_NOT_FOUND", f"there is no record of group {name}", hint)
        for name in selection.names or ()
        if name not in seen
    ]
