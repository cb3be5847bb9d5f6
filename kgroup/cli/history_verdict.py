"""`kgroup replay-log --verify`: whether the replayed state of each group is what the cluster says."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.history import LIMITS, Source, coverage_json, coverage_text
from kgroup.cli.history_selection import Selection
from kgroup.cli.output import Result, show
from kgroup.cli.tables import Column, Table

if TYPE_CHECKING:
    from kgroup.history.state import GroupState

_POLL_S = 0.5
_VERIFY_TRIES = 5


class Verdict(NamedTuple):
    """How a group differs, and what of it could not be compared; `all_of_it`: nothing could."""

    differences: list[str]
    uncompared: list[str]
    all_of_it: bool = False

    @property
    def word(self) -> str:
        return "differs" if self.differences else "not compared" if self.all_of_it else "same"


def show_verdict(env: Env, source: Source, selection: Selection) -> ExitCode:
    """Whether the replayed state of each group is what the cluster says; exit code 8 if not, 5 if unknown."""
    from kgroup.history.replay import Reader

    assert source.admin is not None
    readers = [
        Reader(log, topic_names=source.topic_names, names=selection.names, wanted=selection.wanted)
        for log in source.logs
    ]
    found = dict(sorted(_compare(source, readers, selection).items()))
    source.check()
    rows: list[dict[str, Any]] = [
        {
            "group_id": name,
            "verdict": verdict.word,
            "differences": verdict.differences,
            "not_compared": verdict.uncompared,
        }
        for name, verdict in found.items()
    ]
    bad = [name for name, verdict in found.items() if verdict.differences]
    columns = (
        Column("group_id", "GROUP"),
        Column("verdict"),
        Column("differences"),
        Column("not_compared", "NOT COMPARED"),
    )
    table = Table(columns if any(v.uncompared for v in found.values()) else columns[:3], rows)
    blocks: list[str | Table] = [
        coverage_text(reader.coverage)
        for reader in readers
        if reader.coverage.records or reader.coverage.failure is not None
    ]
    data = {
        "groups": rows,
        "coverage": [coverage_json(reader.coverage) for reader in readers],
        "limits": list(LIMITS),
    }
    code = ExitCode.BAD_VERDICT if bad else ExitCode.OK
    if not bad and (source.failures or any(verdict.all_of_it for verdict in found.values())):
        code = ExitCode.PARTIAL
    result = Result(
        data,
        [*blocks, "", table, "", _summary(found)],
        items="groups",
        names=bad,
        errors=source.failures,
        exit_code=code,
        cluster=source.cluster,
        main=table,
    )
    return show(env, result)


def _summary(found: Mapping[str, Verdict]) -> str:
    words = [verdict.word for verdict in found.values()]
    bad, unknown = words.count("differs"), words.count("not compared")
    told = f"{bad} of {len(found)} groups differ" if bad else f"{len(found)} groups: replay = live state"
    if unknown:
        told = f"{told}, but {unknown} could not be compared"
    elif partly := sum(bool(verdict.uncompared) for verdict in found.values()):
        told = f"{told}, of {partly} in part"
    return told


def _compare(source: Source, readers: Sequence[Any], selection: Selection) -> dict[str, Verdict]:
    """How each group of the log or the cluster differs; one that changes meanwhile is compared again."""
    found: dict[str, Verdict] = {}
    for tries_left in reversed(range(_VERIFY_TRIES)):
        for reader in readers:
            reader.advance()
        states = {name: s for reader in readers for name, s in reader.fold.states.items()}
        wrong = {name for name, verdict in found.items() if verdict.differences}
        asked = wrong or states.keys() | _listed(source, selection)
        found = {n: v for n, v in found.items() if n not in asked} | _compared(source, states, asked)
        if not any(verdict.differences for verdict in found.values()) or not tries_left:
            break
        time.sleep(_POLL_S)
    return found


def _listed(source: Source, selection: Selection) -> set[str]:
    """The selected groups that the cluster lists, of the types whose state is in the log."""
    from kgroup.history.state import SHARE

    chosen = selection.wanted or (lambda group: selection.names is None or group in selection.names)
    groups = source.admin.list_groups().groups  # type: ignore[union-attr]
    return {g.group_id for g in groups if g.type != SHARE and chosen(g.group_id)}


def _compared(source: Source, states: "Mapping[str, GroupState]", names: Iterable[str]) -> dict[str, Verdict]:
    """Of each of these groups how it differs; without those that neither the log nor the cluster has."""
    from dataclasses import asdict

    from kgroup.history.state import UNDECODED
    from kgroup.history.verify import differences, uncompared

    described = source.admin.describe(sorted(names))  # type: ignore[union-attr]
    said = {group.group_id: asdict(group) for group in described.groups}
    refused = {error.item: error for error in described.errors}
    found: dict[str, Verdict] = {}
    for name in names:
        state = states.get(name)
        if unread := source.unread(name):
            found[name] = Verdict([], [f"all of it: {unread.message}"], True)
        elif name in said:
            found[name] = Verdict(list(differences(state, said[name])), uncompared(state, said[name]))
        elif state is not None:
            why = refused[name].message if name in refused else "the cluster does not know it"
            # A broker that does not describe groups of this type says nothing against them.
            silent = name in refused and state.kind in UNDECODED
            wrong = Verdict([f"in the log, but {why}"], [])
            found[name] = Verdict([], [f"all of it: {why}"], True) if silent else wrong
    return found
