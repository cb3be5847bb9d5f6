"""`upgrade rehearse` as text and JSON: each act, the records it led to, and the epochs."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kgroup.admin.models import ItemError, TopicDescription
from kgroup.admin.refusals import is_gone
from kgroup.cli.env.invocation import Env, pair
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.inputs.history import Source, opened
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table, wrapped
from kgroup.coordinator.config import GroupConfig
from kgroup.domain import uuid_bytes
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode

if TYPE_CHECKING:
    from kgroup.admin.migrate.rehearse import Rehearsal, RehearsalStep
    from kgroup.history.sources.logs import OffsetsLog

READABLE = 100
"""Records hold hundreds of characters: as text they are broken to lines of this length."""
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


def rehearse(
    env: Env, group: str, files: Sequence[str], settings: Sequence[str], options: Sequence[str] | None = None
) -> ExitCode:
    """Copy the group's records, run the migration there, print it; REFUSED when the copy refuses."""
    from kgroup.admin.migrate.rehearse import rehearse as perform

    with opened(env, files, Selection(patterns=(group,)), options) as source:
        if source.admin is not None:
            known, counts = _of_cluster(source, group)
        else:
            known, counts = {}, _counts_in(source, group)
        known |= dict(_setting(text) for text in settings)
        log = _log_with(source, group)
        done = perform(log, group, settings=known, topic_names=source.topic_names, partition_counts=counts)
    # Damaged ranges: what they held is missing from the copy. Logs are read more than once.
    bad = {str(each): each.source for log in source.logs for each in log.bad}
    hint = "the copy lacks what was there: another replica, or a backup of this one, may be whole"
    unread = [ItemError(at, "CORRUPT_MESSAGE", text, hint) for text, at in bad.items()]
    refused = "refused" in (done.upgrade, done.downgrade)
    code = ExitCode.PARTIAL if unread else ExitCode.OK
    rows = [{"step": n, **asdict(step), "records": len(step.records)} for n, step in enumerate(done.steps, 1)]
    return show(
        env,
        Result(
            asdict(done),
            list(_lines(done, env.verbose)),
            items="steps",
            names=[step.action for step in done.steps],
            errors=unread,
            exit_code=ExitCode.REFUSED if refused else code,
            cluster=source.cluster,
            main=Table(_STEPS, rows),
        ),
    )


def _setting(text: str) -> tuple[str, str]:
    name, value = pair(text, f"--set {text!r}", "as in group.consumer.migration.policy=disabled")
    GroupConfig.attribute(name)  # a misspelt name must not look like a setting tried
    return name, value


def _of_cluster(source: Source, group: str) -> tuple[dict[str, str], dict[str, int]]:
    """Return the coordinator's settings, and how many partitions each topic has.

    Raises for a topic of the group that may not be seen, and for settings that may not be read: a rehearsal
    without them would be of another group. Brokers before 2.8 have no topic ids: topics get one here.
    """
    assert source.admin is not None
    found = source.admin.evidence(group)
    if found.settings is None:
        raise BrokerRefused(
            ErrorCode.__members__.get(found.settings_code or "", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            f"no rehearsal without the coordinator's settings: {found.settings_error}",
            hint="kgroup needs DESCRIBE_CONFIGS on the cluster",
        )
    counts = {told.name: len(told.partitions) for told in source.admin.topics()}
    # The topics that the group's records name: subscribed, owned or committed.
    from kgroup.history.replay import replay
    from kgroup.history.sources.live import LiveLog

    # Logs of their own: one that has been read to its end gives nothing more.
    logs = [LiveLog(log.topic, log.partition) for log in source.logs if isinstance(log, LiveLog)]
    named: set[str] = set()
    for _, state in replay(logs, topic_names=source.topic_names, names=[group]).states:
        named |= {place.topic for place in state.offsets}
        for member in state.view().members.values():
            named |= {place.topic for place in member.holds} | set(member.topics)
    unseen = named - counts.keys()
    for name, told in source.admin.find_topics(unseen).items():
        if isinstance(told, TopicDescription):
            counts[name] = len(told.partitions)
        elif not is_gone(told):
            raise BrokerRefused(
                told.code if isinstance(told, BrokerRefused) else ErrorCode.UNKNOWN_SERVER_ERROR,
                f"no rehearsal without the partitions of {name}, which the group reads: {told.message}",
                hint=told.hint,
            )
    for name in counts.keys() - set(source.topic_names.values()):
        source.topic_names[_made_up(name)] = name
    return dict(found.settings), counts


def _counts_in(source: Source, group: str) -> dict[str, int]:
    """Without a broker, topics are as large as the group's own records show."""
    counts: dict[str, int] = {}
    story = source.replay(Selection(patterns=(group,)))
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
    """Return an id for a topic of which only the name is known: it has to differ from others, no more."""
    return hashlib.sha256(name.encode()).digest()[:16]


def _log_with(source: Source, group: str) -> "OffsetsLog":
    """Return the one log that may hold the group: the live one, or of files the first that has it."""
    from kgroup.history.raw import raw_rows

    for log in source.logs:
        if len(source.logs) == 1 or next(iter(raw_rows(log, names=[group])), None) is not None:
            return log
    raise ConfigError(f"there is no record of group {group} in these files")


def _lines(done: "Rehearsal", records: bool) -> Iterator[str]:
    kept = "the same" if done.offsets_kept else "NOT the same"
    yield f"upgrade {done.upgrade} · downgrade {done.downgrade} · committed offsets {kept}"
    yield f"{done.group_id} · {done.copied} records copied from {done.source} · nothing is changed there"
    for number, step in enumerate(done.steps, 1):
        if records or number == 1:
            yield ""
        yield f"{number:>3}  {step.phase:<9} {step.action}   → {_state(step)}"
        if step.error_code:
            refusal = f"     REFUSED {step.error_code}: {step.message or 'no message'}"
            yield from wrapped(refusal, READABLE, 13)
        for record in step.records if records else ():
            yield from wrapped(f"     {_record(record)}", READABLE, 13)
    if not records:
        yield f"{sum(len(step.records) for step in done.steps)} records; --verbose shows them"


def _state(step: "RehearsalStep") -> str:
    if step.type == "consumer":
        return f"consumer {step.state}, epoch {step.epoch} (assignment {step.assignment_epoch})"
    return f"classic {step.state}, generation {step.epoch}"


def _record(record: Mapping[str, Any]) -> str:
    key = {name: value for name, value in record["key"].items() if name not in ("group", "group_id")}
    about = f" {json.dumps(key, ensure_ascii=False)}" if key else ""
    value = "tombstone" if record["value"] is None else json.dumps(record["value"], ensure_ascii=False)
    return f"{record['offset']:>6}  {record['type_name']}{about}  {value}"
