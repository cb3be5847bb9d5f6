"""Rules for topics: names, counts and settings as Kafka checks them, and their creation."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kgroup.domain import INTERNAL_TOPICS
from kgroup.errors import ErrorCode, Refused
from kgroup.runtime.catalog import CatalogTopic
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.topic_settings import INTERNAL, SETTINGS
from kgroup.runtime.topic_settings import check as check_values
from kgroup.settings import near_misses

MAX_NAME = 249
MAX_PARTITIONS = 10_000
MAX_NEW_PARTITIONS = 10_000
"""As many as one request may create (Kafka's controller: MAX_RECORDS_PER_USER_OP)."""
MAX_ALL_PARTITIONS = 100_000
"""As many as a cluster has here: an answer about all of them keeps others waiting for about a second."""
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def too_many(cluster: Cluster, new: int) -> str | None:
    """Return why one request may not create so many partitions; None if it may."""
    if new > MAX_NEW_PARTITIONS:
        return "Excessively large number of partitions per request."
    # Most requests create none, and each Metadata comes here.
    if new and sum(topic.partitions for topic in cluster.catalog.topics.values()) + new > MAX_ALL_PARTITIONS:
        return f"A cluster has at most {MAX_ALL_PARTITIONS} partitions here."
    return None


def check_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION for a name that Kafka rejects."""
    problem = None
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = "'.' or '..' is not allowed"
    elif len(name) > MAX_NAME:
        problem = f"the length of '{name}' is longer than the max allowed length {MAX_NAME}"
    elif not _LEGAL.fullmatch(name):
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if problem:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def check_new_name(cluster: Cluster, name: str) -> None:
    """Refuse also a topic that exists, or that is too much like one (`Catalog.alike`)."""
    check_name(name)
    if name in cluster.catalog.topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = cluster.catalog.alike(name)
    if other is not None:
        raise Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
        )


def check_config(cluster: Cluster, config: Mapping[str, str]) -> None:
    """Raise INVALID_CONFIG for a setting topics do not have, or a value it cannot take."""
    for name in config:
        if name not in SETTINGS and name not in INTERNAL:
            raise Refused(
                ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name} ({near_misses(name, SETTINGS)})"
            )
    check_values(config, cluster.configs.of_topics(None))


def new_topic(
    cluster: Cluster, name: str, partitions: int, replication_factor: int, config: Mapping[str, str]
) -> CatalogTopic:
    """Return a checked topic that may be created; -1 is the broker's default. Refused gives the reason."""
    check_new_name(cluster, name)
    settings = cluster.settings
    if partitions == -1:
        partitions = settings.num_partitions
    if replication_factor == -1:
        replication_factor = min(settings.default_replication_factor, cluster.brokers)
    if replication_factor < 1:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partitions < 1:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    if partitions > MAX_PARTITIONS:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"A topic has at most {MAX_PARTITIONS} partitions here.")
    if replication_factor > cluster.brokers:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): "
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{cluster.brokers} broker(s) are registered.",
        )
    check_config(cluster, config)
    topic_id = cluster.catalog.new_topic_id()
    return CatalogTopic(name, topic_id, partitions, replication_factor, dict(config))


def may_auto_create(cluster: Cluster, name: str) -> bool:
    """Return whether a topic that is asked for may be created on the spot."""
    return cluster.settings.auto_create_topics and name not in INTERNAL_TOPICS
