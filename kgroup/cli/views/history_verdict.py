"""`kgroup replay-log --verify`: whether each group's replayed state equals the cluster's."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kgroup.admin.models import ItemError
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, name_of
from kgroup.cli.inputs.history import LIMITS, Source, coverage_text
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import only_rights
from kgroup.cli.views.events import coverage_json
from kgroup.domain import Document, TopicPartition, count_of
from kgroup.history.fold.view import SHARE, STREAMS

if TYPE_CHECKING:
    from kgroup.history.deliveries import DeliveryReader
    from kgroup.history.fold.state import GroupState
    from kgroup.history.replay import Reader
    from kgroup.history.verify import Difference

Starts: TypeAlias = Mapping[str, Mapping[TopicPartition, int]] | None
"""Start offsets of share groups; None where they may not all have been read."""
_COLUMNS = (
    Column("group_id", "GROUP"),
    Column("verdict"),
    Column("differences"),
    Column("not_compared", "NOT COMPARED"),
)
_POLL_S = 0.5
_VERIFY_TRIES = 5
_UNKNOWN_GROUP = "GROUP_ID_NOT_FOUND"
"""The only refusal that proves something: the group does not exist. All others leave that unknown."""
NOT_SEEN = "NOT_SEEN"
"""The code of a hidden group where no broker named an error."""


class Verdict(NamedTuple):
    """The differences of a group, and its parts that were not compared; `all_of_it`: nothing was.

    `failed`: the name of the error that hid a requested part, so that another time or principal may show
    more; "" if none did.
    """

    differences: "list[Difference]"
    uncompared: list[str]
    all_of_it: bool = False
    failed: str = ""

    @property
    def word(self) -> str:
        return "differs" if self.differences else "not compared" if self.all_of_it else "same"

    @classmethod
    def unknown(cls, why: str, code: str = NOT_SEEN) -> "Verdict":
        """Return the verdict on a group of which nothing could be compared, for an error of that name."""
        return cls([], [f"all of it: {why}"], all_of_it=True, failed=code)


@dataclass(slots=True)
class Comparison:
    """The verdicts by group, and why there may be groups without one."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    unseen: tuple[ItemError, ...] = ()

    def named(self, word: str) -> list[str]:
        """Return the groups with this verdict."""
        return [name for name, verdict in self.verdicts.items() if verdict.word == word]


def show_verdict(env: Env, source: Source, selection: Selection) -> ExitCode:
    """Show whether each group's replay equals the cluster; exit code 8 if not, 5 or 6 if unknown."""
    from kgroup.history.replay import Reader

    readers = [
        Reader(log, topic_names=source.topic_names, names=selection.names, wanted=selection.wanted)
        for log in source.logs
    ]
    deliveries: list[DeliveryReader] = []
    found = _compare(source, readers, deliveries, selection)
    source.check()
    rows: list[Document] = [
        {
            "group_id": name,
            "verdict": verdict.word,
            "differences": [each.text for each in verdict.differences],
            "not_compared": verdict.uncompared,
        }
        for name, verdict in found.verdicts.items()
    ]
    in_part = any(verdict.uncompared for verdict in found.verdicts.values())
    table = Table(_COLUMNS if in_part else _COLUMNS[:3], rows)
    read: list[Reader | DeliveryReader] = [*readers, *deliveries]
    blocks: list[str | Table] = [
        coverage_text(reader.coverage)
        for reader in read
        if reader.coverage.records or reader.coverage.failure is not None
    ]
    data = {
        "groups": rows,
        "coverage": [coverage_json(reader.coverage) for reader in read],
        "limits": list(LIMITS),
    }
    absent = [name for name in selection.names or () if name not in found.verdicts]
    hint = "kgroup list shows which groups there are"
    result = Result(
        data,
        [*blocks, "", table, "", _summary(found)],
        items="groups",
        names=found.named("differs"),
        errors=[
            *source.failures,
            *found.unseen,
            *(
                ItemError(name, _UNKNOWN_GROUP, f"neither the log nor the cluster has group {name}", hint)
                for name in absent
            ),
        ],
        exit_code=_exit_code(source, found, absent),
        cluster=source.cluster,
        main=table,
    )
    return show(env, result)


def _exit_code(source: Source, found: Comparison, absent: Sequence[str]) -> ExitCode:
    """Return a difference as the verdict despite gaps; else no gap passes for agreement."""
    if found.named("differs"):
        return ExitCode.BAD_VERDICT
    hidden = [
        *(failure.code for failure in source.failures),
        *(error.code for error in found.unseen),
        *(verdict.failed for verdict in found.verdicts.values() if verdict.failed),
    ]
    if hidden:
        return only_rights(hidden)
    if absent:
        return ExitCode.PARTIAL if found.verdicts else ExitCode.NOT_FOUND
    return ExitCode.OK


def _summary(found: Comparison) -> str:
    bad, unknown, count = len(found.named("differs")), len(found.named("not compared")), len(found.verdicts)
    text = (
        f"{bad} of {count_of(count, 'group')} {'differs' if bad == 1 else 'differ'}"
        if bad
        else f"{count_of(count, 'group')}: replay = live state"
    )
    if unknown:
        text = f"{text}, but {unknown} could not be compared"
    elif partly := sum(bool(verdict.uncompared) for verdict in found.verdicts.values()):
        text = f"{text}, of {partly} in part"
    return f"{text}; there may be groups that were not seen" if found.unseen else text


def _compare(
    source: Source,
    readers: "Sequence[Reader]",
    deliveries: "list[DeliveryReader]",
    selection: Selection,
) -> Comparison:
    """Compare each group of the log or the cluster; one that changes meanwhile is compared again.

    `deliveries` are created here, if there are share groups.
    """
    found = Comparison()
    for tries_left in reversed(range(_VERIFY_TRIES)):
        for reader in readers:
            reader.advance()
        deliveries += () if deliveries else source.delivery_readers(readers, selection)
        read: dict[str, dict[TopicPartition, int]] = {}
        for shared in deliveries:
            shared.advance()
            for group, place, stored in shared.states:
                read.setdefault(group, {})[place] = stored.value.start_offset
        # The partition of a group's state is unknown: unread records may belong to any group.
        hidden = source.state_failure is not None or any(log.failure is not None for log in source.state)
        starts = None if hidden else read
        states = {name: s for reader in readers for name, s in reader.fold.states.items()}
        deleted = {name for reader in readers for name in reader.fold.groups} - states.keys()
        asked: Collection[str] = found.named("differs")
        if not asked:
            listed, found.unseen = set(selection.names or ()), ()
            # Groups selected by id are requested by name, so no list has to be complete for them.
            if selection.names is None:
                assert source.admin is not None
                listing, wanted = source.admin.list_groups(), selection.wanted
                listed = {g.group_id for g in listing.groups if wanted is None or wanted(g.group_id)}
                found.unseen = listing.errors
            asked = states.keys() | listed
        kept = {n: v for n, v in found.verdicts.items() if n not in asked}
        found.verdicts = dict(sorted((kept | _compared(source, states, starts, asked, deleted)).items()))
        if not found.named("differs") or not tries_left:
            break
        time.sleep(_POLL_S)
    _excuse_the_restless(found, readers, deliveries)
    return found


def _excuse_the_restless(
    found: Comparison, readers: "Sequence[Reader]", deliveries: "Sequence[DeliveryReader]"
) -> None:
    """Exclude offsets committed while both sides are read: they never stand still."""
    from kgroup.history.verify import About

    restless = {
        name
        for name in found.named("differs")
        if all(each.about is About.OFFSETS for each in found.verdicts[name].differences)
    }
    before = _newest_commits(readers, deliveries, restless)
    if restless:
        for reader in readers:
            reader.advance()
        for shared in deliveries:
            shared.advance()
    after = _newest_commits(readers, deliveries, restless)
    for name in restless:
        if before.get(name) != after.get(name):
            why = "offsets: they are committed faster than they can be compared"
            rest = found.verdicts[name].uncompared
            found.verdicts[name] = Verdict([], [*rest, why], failed="CHANGES")


def _newest_commits(
    readers: "Sequence[Reader]", deliveries: "Sequence[DeliveryReader]", names: Collection[str]
) -> dict[str, set[object]]:
    """Return the log position of each group's newest commit; for a share group its start offsets."""
    states = {name: s for reader in readers for name, s in reader.fold.states.items() if name in names}
    found: dict[str, set[object]] = {
        n: {max((c.log_offset for c in s.offsets.values()), default=-1)} for n, s in states.items()
    }
    for group, place, stored in (state for reader in deliveries for state in reader.states):
        if group in names:
            found.setdefault(group, set()).add((place, stored.value.start_offset))
    return found


def _compared(
    source: Source,
    states: "Mapping[str, GroupState]",
    starts: Starts,
    names: Iterable[str],
    deleted: Collection[str],
) -> dict[str, Verdict]:
    """Return how each of these groups differs, without those that neither the log nor the cluster knows.

    Of `deleted` groups nothing is left at the end of the log.
    """
    from kgroup.history.verify import Difference

    assert source.admin is not None
    described = source.admin.describe(sorted(names))
    said = {group.group_id: asdict(group) for group in described.groups}
    refused = {error.item: error for error in described.errors}
    found: dict[str, Verdict] = {}
    for name in names:
        state = states.get(name)
        if unread := source.unread(name):
            found[name] = Verdict.unknown(unread.message, name_of(unread))
        elif name in said:
            found[name] = _verdict(
                source, state, said[name], None if starts is None else starts.get(name, {})
            )
        elif (refusal := refused.get(name)) is None or refusal.code != _UNKNOWN_GROUP:
            found[name] = (
                Verdict.unknown(refusal.message, refusal.code)
                if refusal
                else Verdict.unknown("the cluster did not answer")
            )
        elif state is not None:
            # A broker that cannot describe groups of this type proves nothing against them.
            found[name] = (
                Verdict.unknown(refusal.message, refusal.code)
                if state.kind in (SHARE, STREAMS)
                else Verdict([Difference(f"in the log, but {refusal.message}")], [])
            )
        elif name in deleted:
            found[name] = Verdict([], [])
    return found


def _verdict(
    source: Source,
    state: "GroupState | None",
    said: Mapping[str, object],
    starts: Mapping[TopicPartition, int] | None,
) -> Verdict:
    from kgroup.history.sources.live import LiveLog
    from kgroup.history.verify import About, differences, hiding_error, uncompared

    hidden = hiding_error(said)
    unlike = list(differences(state, said, starts=starts))
    not_compared = uncompared(state, said, starts_read=starts is not None)
    live = next((log.topic for log in source.logs if isinstance(log, LiveLog)), None)
    if live is not None and any(each.about is About.PARTITIONS for each in unlike):
        # Members may own partitions of topics that are gone.
        live.refresh()
        of_these = list(differences(state, said, live.topic_names, starts)) if live.topic_names else unlike
        if of_these != unlike:
            not_compared.append("partitions of topics that are gone: brokers do not describe their owners")
        unlike = of_these
    all_of_it = state is None and hidden is not None and not unlike
    unread = starts is None and state is not None and state.kind == SHARE
    failed = NOT_SEEN if unread else ""
    return Verdict(unlike, not_compared, all_of_it, failed=failed if hidden is None else str(hidden["code"]))
