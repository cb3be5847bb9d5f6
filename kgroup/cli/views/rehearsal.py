"""`upgrade rehearse` as text and JSON: each act, the records it led to, and the epochs."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from glob import escape
from typing import TYPE_CHECKING, Any

from kgroup.admin.migrate.evidence import gather_all
from kgroup.admin.migrate.fleet import plan_fleet
from kgroup.admin.migrate.rehearse import Rehearsed, rehearse_copy
from kgroup.admin.migrate.stage import copies_of, no_records
from kgroup.admin.models import CLASSIC, CONSUMER, ItemError, TopicDescription
from kgroup.admin.refusals import is_gone, item_error
from kgroup.admin.topics import topics
from kgroup.cli.env.invocation import Env, pair
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.inputs.group_names import every, expand, is_glob
from kgroup.cli.inputs.history import Source, opened
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table, wrapped
from kgroup.cli.output.wording import only_rights
from kgroup.coordinator.config import GroupConfig
from kgroup.domain import count_of, uuid_bytes
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError
from kgroup.settings import no_such_setting

if TYPE_CHECKING:
    from kgroup.admin.discovery import Answers
    from kgroup.admin.migrate.fleet import LeftOut
    from kgroup.admin.migrate.rehearse import Rehearsal

READABLE = 100
"""Records hold hundreds of characters: as text they are broken into lines of this length."""
_STEPS = (
    Column("step", right=True),
    Column("phase"),
    Column("action"),
    Column("type"),
    Column("state"),
    Column("epoch", right=True),
    Column("records", right=True),
    Column("error_code", "ERROR"),
)
_GROUPS = (
    Column("group_id", "GROUP"),
    Column("verdict", "PLAN"),
    Column("upgrade"),
    Column("downgrade"),
    Column("offsets_kept", "OFFSETS KEPT"),
    Column("copied", "RECORDS", right=True),
    Column("error_code", "ERROR"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The groups to rehearse: ids and globs, or every group."""

    names: Sequence[str]
    all_groups: bool = False

    @property
    def one(self) -> str | None:
        """The group when a single id is given."""
        alone = len(self.names) == 1 and not self.all_groups and not is_glob(self.names[0])
        return self.names[0] if alone else None


def rehearse(
    env: Env,
    wanted: Wanted,
    files: Sequence[str],
    settings: Sequence[str],
    options: Sequence[str] | None = None,
) -> ExitCode:
    """Copy the groups' records, run the migration there, print it; REFUSED when a copy refuses."""
    if bool(wanted.names) == wanted.all_groups:
        raise ConfigError("name the groups to rehearse, or --all-groups", "kgroup list shows the groups")
    changed = {}
    for text in settings:
        name, value = pair(text, f"--set {text!r}", "as in group.consumer.migration.policy=disabled")
        if name not in GroupConfig.names():  # a misspelt name must not look like a setting tried
            raise no_such_setting(name, GroupConfig.names())
        changed[name] = value
    with opened(env, files, Selection(patterns=tuple(wanted.names)), options) as source:
        plans = _planned(source, wanted)
        groups = [wanted.one] if wanted.one is not None else plans.groups
        if source.admin is not None:
            known, counts = _of_cluster(source, groups)
        else:
            known, counts = dict.fromkeys(groups, {}), _counts_in(source, groups)
        done = _each(source, groups, known, changed, counts)
    # Damaged ranges: what they held is missing from the copy. Logs are read more than once.
    bad = {str(each): each.source for log in source.logs for each in log.bad}
    hint = "the copy lacks what was there: another replica, or a backup of this one, may be whole"
    unread = [ItemError(at, "CORRUPT_MESSAGE", text, hint) for text, at in bad.items()]
    if wanted.one is not None:
        found = done[wanted.one]
        if isinstance(found, KgroupError):
            raise found
        refused = "refused" in (found.upgrade, found.downgrade)
        code = ExitCode.PARTIAL if unread else ExitCode.OK
        steps = enumerate(found.steps, 1)
        rows = [{"step": n, **asdict(step), "records": len(step.records)} for n, step in steps]
        result = Result(
            asdict(found),
            list(_lines(found, env.verbose)),
            items="steps",
            names=[step.action for step in found.steps],
            errors=unread,
            exit_code=ExitCode.REFUSED if refused else code,
            cluster=source.cluster,
            main=Table(_STEPS, rows),
        )
        return show(env, result)
    return show(env, _of_many(done, plans, unread, source.cluster))


def _of_many(
    done: "Mapping[str, Rehearsal | KgroupError]",
    plans: "_Plans",
    unread: Sequence[ItemError],
    where: Mapping[str, object] | None,
) -> Result:
    rows, failed = [], []
    for name, each in done.items():
        if isinstance(each, KgroupError):
            failed.append(item_error(name, each))
            continue
        refusal = next((step for step in each.steps if step.error_code is not None), None)
        rows.append(
            Rehearsed(
                group_id=each.group_id,
                verdict=plans.verdicts.get(name),
                upgrade=each.upgrade,
                downgrade=each.downgrade,
                offsets_kept=each.offsets_kept,
                copied=each.copied,
                error_code=None if refusal is None else refusal.error_code,
                message=None if refusal is None else refusal.message,
            )
        )
    unseen = [*plans.errors, *failed, *unread]
    refused = [row for row in rows if "refused" in (row.upgrade, row.downgrade)]
    code = only_rights([error.code for error in unseen]) if unseen else ExitCode.OK
    counts = Counter(row.upgrade for row in rows)
    endings = ", ".join(f"{count} {ending}" for ending, count in sorted(counts.items())) or "none rehearsed"
    return Result(
        {"groups": [asdict(row) for row in rows], "left_out": [asdict(out) for out in plans.left_out]},
        [
            f"{count_of(len(rows), 'group')} upgraded on copies: {endings} · nothing is changed there",
            *(f"  left out: {out.group_id}: {out.reason}" for out in plans.left_out),
            Table(_GROUPS, [asdict(row) for row in rows]),
        ],
        items="groups",
        names=[row.group_id for row in rows],
        errors=[
            *unseen,
            *(
                ItemError(
                    row.group_id,
                    row.error_code or "REFUSED",
                    f"{row.group_id}: the copy refuses: {row.message}",
                )
                for row in refused
            ),
        ],
        exit_code=ExitCode.REFUSED if refused else code,
        cluster=where,
    )


@dataclass(frozen=True, slots=True)
class _Plans:
    """The groups to rehearse, with the plan's verdicts, and those without a plan."""

    groups: Sequence[str]
    verdicts: Mapping[str, str]
    left_out: "Sequence[LeftOut]" = ()
    errors: Sequence[ItemError] = ()


def _planned(source: Source, wanted: Wanted) -> _Plans:
    """Return the selected groups: of a cluster those with a plan, of files those with records."""
    if wanted.one is not None:
        return _Plans((wanted.one,), {})
    if source.admin is None:
        story = source.replay(Selection(patterns=tuple(wanted.names)))
        return _Plans([state.group_id for _, state in story.states if state.kind in (CLASSIC, CONSUMER)], {})
    named = every(source.admin) if wanted.all_groups else expand(source.admin, wanted.names)
    fleet = plan_fleet(source.admin, named.groups)
    verdicts = {row.group_id: row.verdict for row in fleet.rows}
    return _Plans(list(verdicts), verdicts, fleet.left_out, (*fleet.errors, *named.unseen))


def _each(
    source: Source,
    groups: Sequence[str],
    known: "Answers[Mapping[str, str]]",
    changed: Mapping[str, str],
    counts: Mapping[str, int],
) -> "Answers[Rehearsal]":
    """Rehearse each group on its copy, from the first log that has it; each log is read once."""
    done: Answers[Rehearsal] = {}
    for group_id in groups:
        error = known[group_id]
        if isinstance(error, KgroupError):
            done[group_id] = error
    for log in source.logs:
        left = [group_id for group_id in groups if group_id not in done]
        try:
            copies = copies_of(log, left) if left else {}
        except KgroupError as error:
            # It may hold any group that no other log has.
            if error is not log.failure:
                raise
            continue
        for group_id, copy in copies.items():
            settings = known[group_id]
            assert not isinstance(settings, KgroupError)
            try:
                done[group_id] = rehearse_copy(
                    copy,
                    group_id,
                    settings={**settings, **changed},
                    topic_names=source.topic_names,
                    partition_counts=counts,
                )
            except KgroupError as error:
                done[group_id] = error
    # A log that could not be read may hold the others.
    failure = next((log.failure for log in source.logs if log.failure is not None), None)
    where = source.logs[0].source if len(source.logs) == 1 else "__consumer_offsets"
    for group_id in groups:
        if group_id not in done:
            unknown = ConfigError(f"there is no record of group {group_id} in these files")
            done[group_id] = failure or (unknown if source.admin is None else no_records(where, group_id))
    return {group_id: done[group_id] for group_id in groups}


def _of_cluster(source: Source, groups: Sequence[str]) -> "tuple[Answers[Mapping[str, str]], dict[str, int]]":
    """Return the coordinator's settings for each group, and the number of partitions per topic.

    Without its settings, or with a hidden topic, the copy would be of another group: that is the answer then.
    Brokers before 2.8 have no topic ids: topics get one here.
    """
    assert source.admin is not None
    known: Answers[Mapping[str, str]] = {}
    for group_id, found in gather_all(source.admin, groups).items():
        if isinstance(found, KgroupError):
            known[group_id] = found
        elif found.settings is not None:
            known[group_id] = found.settings
        else:
            known[group_id] = BrokerRefused(
                ErrorCode.__members__.get(found.settings_code or "", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
                f"no rehearsal without the coordinator's settings: {found.settings_error}",
                hint="kgroup needs DESCRIBE_CONFIGS on the cluster",
            )
    counts = {topic.name: len(topic.partitions) for topic in topics(source.admin)}
    # The topics that the groups' records name: subscribed, owned or committed.
    from kgroup.history.replay import replay
    from kgroup.history.sources.live import LiveLog

    # Separate logs: one that has been read to its end returns nothing more.
    logs = [LiveLog(log.topic, log.partition) for log in source.logs if isinstance(log, LiveLog)]
    named: dict[str, set[str]] = {}
    for _, state in replay(logs, topic_names=source.topic_names, names=list(groups)).states:
        read = named.setdefault(state.group_id, {place.topic for place in state.offsets})
        for member in state.view().members.values():
            read |= {place.topic for place in member.holds} | set(member.topics)
    unseen = set().union(*named.values()) - counts.keys()
    for name, topic in source.admin.topics(unseen).items():
        if isinstance(topic, TopicDescription):
            counts[name] = len(topic.partitions)
        elif not is_gone(topic):
            hidden = BrokerRefused(
                topic.code if isinstance(topic, BrokerRefused) else ErrorCode.UNKNOWN_SERVER_ERROR,
                f"no rehearsal without the partitions of {name}, which the group reads: {topic.message}",
                hint=topic.hint,
            )
            known |= {group_id: hidden for group_id, read in named.items() if name in read}
    for name in counts.keys() - set(source.topic_names.values()):
        source.topic_names[_made_up(name)] = name
    return known, counts


def _counts_in(source: Source, groups: Sequence[str]) -> dict[str, int]:
    """Return topic sizes without a broker: as large as the groups' own records show."""
    counts: dict[str, int] = {}
    story = source.replay(Selection(patterns=tuple(map(escape, groups))))
    for _, state in story.states:
        seen = set(state.offsets) | {
            p for m in state.view().members.values() for p in m.holds | (m.target or set())
        }
        for place in seen:
            counts[place.topic] = max(counts.get(place.topic, 0), place.partition + 1)
    for fold in story.folds.values():
        source.topic_names |= fold.names.names
    unnamed = counts.keys() - set(source.topic_names.values())
    for name in unnamed:
        try:
            source.topic_names[uuid_bytes(name)] = name
        except ValueError:
            source.topic_names[_made_up(name)] = name
    return counts


def _made_up(name: str) -> bytes:
    """Return an id for a topic known only by its name: it only has to differ from others."""
    return hashlib.sha256(name.encode()).digest()[:16]


def _lines(done: "Rehearsal", records: bool) -> Iterator[str]:
    kept = "the same" if done.offsets_kept else "NOT the same"
    yield f"upgrade {done.upgrade} · downgrade {done.downgrade} · committed offsets {kept}"
    yield (
        f"{done.group_id} · {count_of(done.copied, 'record')} copied from {done.source} · "
        f"nothing is changed there"
    )
    for number, step in enumerate(done.steps, 1):
        if records or number == 1:
            yield ""
        state = f"classic {step.state}, generation {step.epoch}"
        if step.type == "consumer":
            state = f"consumer {step.state}, epoch {step.epoch} (assignment {step.assignment_epoch})"
        yield f"{number:>3}  {step.phase:<9} {step.action}   → {state}"
        if step.error_code:
            refusal = f"     REFUSED {step.error_code}: {step.message or 'no message'}"
            yield from wrapped(refusal, READABLE, 13)
        shown: Sequence[Mapping[str, Any]] = step.records if records else ()
        for record in shown:
            key = {name: of for name, of in record["key"].items() if name not in ("group", "group_id")}
            about = f" {json.dumps(key, ensure_ascii=False)}" if key else ""
            value = json.dumps(record["value"], ensure_ascii=False)
            value = "tombstone" if record["value"] is None else value
            line = f"     {record['offset']:>6}  {record['type_name']}{about}  {value}"
            yield from wrapped(line, READABLE, 13)
    if not records:
        yield f"{count_of(sum(len(step.records) for step in done.steps), 'record')}; --verbose shows them"
