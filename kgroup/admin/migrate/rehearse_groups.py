"""Rehearse the migration of groups, each on a copy of its records, from a cluster's logs or from files."""

import hashlib
from collections.abc import Mapping, Sequence

from kgroup.admin.discovery import Answers
from kgroup.admin.migrate.evidence import gather_all
from kgroup.admin.migrate.rehearsal_shard import copies_of, no_records
from kgroup.admin.migrate.rehearse import Rehearsal, rehearse
from kgroup.admin.models import CLASSIC, CONSUMER, TopicDescription
from kgroup.admin.read.source import Chosen, Groups, Source
from kgroup.admin.refusals import is_gone
from kgroup.admin.topics import topics
from kgroup.coordinator.config import GroupConfig
from kgroup.domain import uuid_bytes
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError
from kgroup.history.replay import replay
from kgroup.history.sources.live import LiveLog
from kgroup.settings import no_such_setting


def check_setting(name: str) -> None:
    """Raise ConfigError for no setting of groups: a misspelt one must not look like one that was tried."""
    if name not in GroupConfig.names():
        raise no_such_setting(name, GroupConfig.names())


def recorded_groups(source: Source, selection: Chosen) -> list[str]:
    """Return the selected groups of a source's records that have a protocol to move from."""
    states = source.replay(selection).states
    return [state.group_id for _, state in states if state.kind in (CLASSIC, CONSUMER)]


def rehearse_groups(source: Source, groups: Sequence[str], changed: Mapping[str, str]) -> Answers[Rehearsal]:
    """Rehearse each group on its copy, from the first log that has it, with `changed` settings."""
    known, counts = (_in_files if source.admin is None else _of_cluster)(source, groups)
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
                done[group_id] = rehearse(
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


def _of_cluster(source: Source, groups: Sequence[str]) -> tuple[Answers[Mapping[str, str]], dict[str, int]]:
    """Return the coordinator's settings for each group, and the number of partitions per topic.

    Without its settings, or with a hidden topic, the copy would be of another group: that is the answer then.
    Brokers before 2.8 have no topic ids: topics get one here.
    """
    assert source.admin is not None
    known: Answers[Mapping[str, str]] = {}
    for group_id, evidence in gather_all(source.admin, groups).items():
        if isinstance(evidence, KgroupError):
            known[group_id] = evidence
        elif evidence.settings is not None:
            known[group_id] = evidence.settings
        else:
            known[group_id] = BrokerRefused(
                ErrorCode.__members__.get(
                    evidence.settings_code or "", ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                ),
                f"no rehearsal without the coordinator's settings: {evidence.settings_error}",
                hint="kgroup needs DESCRIBE_CONFIGS on the cluster",
            )
    counts = {topic.name: len(topic.partitions) for topic in topics(source.admin)}
    # The topics that the groups' records name: subscribed, owned or committed.
    # Separate logs: one that has been read to its end returns nothing more.
    logs = [LiveLog(log.topic, log.partition) for log in source.logs if isinstance(log, LiveLog)]
    named: dict[str, set[str]] = {}
    for _, state in replay(logs, topic_names=source.topic_names, names=list(groups)).states:
        read = named.setdefault(state.group_id, {partition.topic for partition in state.offsets})
        for member in state.view().members.values():
            read |= {partition.topic for partition in member.holds} | set(member.topics)
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


def _in_files(source: Source, groups: Sequence[str]) -> tuple[Answers[Mapping[str, str]], dict[str, int]]:
    """Return no settings, and topic sizes without a broker: as large as the groups' own records show."""
    counts: dict[str, int] = {}
    story = source.replay(Groups(list(groups) or None))
    for _, state in story.states:
        seen = set(state.offsets) | {
            p for m in state.view().members.values() for p in m.holds | (m.target or set())
        }
        for partition in seen:
            counts[partition.topic] = max(counts.get(partition.topic, 0), partition.partition + 1)
    for fold in story.folds.values():
        source.topic_names |= fold.names.names
    unnamed = counts.keys() - set(source.topic_names.values())
    for name in unnamed:
        try:
            source.topic_names[uuid_bytes(name)] = name
        except ValueError:
            source.topic_names[_made_up(name)] = name
    return dict.fromkeys(groups, {}), counts


def _made_up(name: str) -> bytes:
    """Return an id for a topic known only by its name: it only has to differ from others."""
    return hashlib.sha256(name.encode()).digest()[:16]
