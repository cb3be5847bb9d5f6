"""What a broker does for each API: one file a concern, each with its table of APIs."""

from typing import Any

from kgroup.broker.dispatch import Api
from kgroup.broker.handlers import (
    acls,
    alter_configs,
    api_versions,
    configs,
    coordinators,
    delete_records,
    features,
    fetch,
    groups,
    log_dirs,
    metadata,
    offsets_of_logs,
    produce,
    producer_ids,
    reassignments,
    sasl,
    scram_users,
    topics,
    transactions,
    txn_markers,
)

ALL: tuple[Api[Any], ...] = (
    *produce.APIS,
    *fetch.APIS,
    *offsets_of_logs.APIS,
    *delete_records.APIS,
    *metadata.APIS,
    *groups.APIS,
    *coordinators.APIS,
    *api_versions.APIS,
    *topics.APIS,
    *reassignments.APIS,
    *producer_ids.APIS,
    *transactions.APIS,
    *txn_markers.APIS,
    *configs.APIS,
    *alter_configs.APIS,
    *features.APIS,
    *log_dirs.APIS,
    *acls.APIS,
    *sasl.APIS,
    *scram_users.APIS,
)
