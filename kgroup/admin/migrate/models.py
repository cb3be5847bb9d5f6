"""The inputs and results of a migration between the classic and the consumer protocol.

Field names are the JSON names of `upgrade plan`, `upgrade execute` and `upgrade watch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from kgroup.admin.migrate.client_kinds import CONSUMERS, Kind
from kgroup.admin.models import (
    CLASSIC,
    CONSUMER,
    COOPERATIVE_STICKY,
    RANGE,
    Finding,
    GroupDescription,
    ItemError,
    Member,
)
from kgroup.admin.settings import number_of
from kgroup.domain import TopicPartition
from kgroup.errors import BrokerRefused
from kgroup.protocol.subscription import Subscription

UPGRADE, DOWNGRADE, STATIC = "upgrade", "downgrade", "static"
OK, WARN, BLOCK, INFO, UNKNOWN = "ok", "warn", "block", "info", "unknown"
READY, BLOCKED, ALREADY = "ready", "blocked", "already"
SESSION_TIMEOUT = "consumer.session.timeout.ms"
BROKER_SESSION_TIMEOUT = "group.consumer.session.timeout.ms"
ASSIGNORS = "group.consumer.assignors"
KNOWN_ASSIGNORS = frozenset({RANGE, "roundrobin", "sticky", COOPERATIVE_STICKY})
SHOWN = 5
POLICY = "group.consumer.migration.policy"
POLICIES = {UPGRADE: ("bidirectional", "upgrade"), DOWNGRADE: ("bidirectional", "downgrade")}


def target_of(direction: str) -> str:
    """Return the group type that a migration in this direction ends with."""
    return CONSUMER if direction == UPGRADE else CLASSIC


def words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


@dataclass(frozen=True, slots=True)
class Check:
    """A check that decides a migration, or that will change with it.

    `status` is ok, warn, block, info, or unknown for a deciding value that is not reported: then `reason` is
    the code of the failure, if there was one. A value that is unknown and decides nothing is info and says
    so. `evidence` holds the values that were read, null where they are unknown.
    """

    code: str
    status: Annotated[str, ("ok", "warn", "block", "info", "unknown")]
    message: str
    hint: str | None = None
    evidence: Annotated[Mapping[str, object], "null values are not known"] = field(default_factory=dict)
    reason: Annotated[str | None, "what kept it from being seen"] = None


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The verdict on a roll now: ready, blocked, already or unknown; it holds until the next rebalance."""

    group_id: str
    direction: str
    type: str
    state: str
    verdict: str
    checks: tuple[Check, ...]

    @property
    def blockers(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == BLOCK)

    @property
    def unknowns(self) -> tuple[Check, ...]:
        """The deciding checks that are unknown."""
        return tuple(check for check in self.checks if check.status == UNKNOWN)


@dataclass(frozen=True, slots=True)
class MemberEvidence:
    """One member of a classic group, down to the bytes the broker will check.

    `subscription` and its version are None where the broker does not show it (rebalancing) or where it does
    not parse; `faults` says what does not. Without `instance_id_known` the static members are unknown.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    subscription: Subscription | None
    subscription_version: int | None
    assignment_version: int | None
    assigned: frozenset[TopicPartition]
    user_data_bytes: int
    faults: tuple[str, ...] = ()
    instance_id_known: bool = True

    @property
    def name(self) -> str:
        """The instance id, or the member id of a dynamic member."""
        return self.instance_id or self.member_id


@dataclass(frozen=True, slots=True)
class Logged:
    """The facts only in a group's records: generation, leader, the members' session timeouts in ms by id."""

    generation: int
    leader: str | None
    session_timeouts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Serving:
    """The report of one broker about itself and the groups it coordinates (`own`: their settings).

    `settings` None: they may not be read, for the `refusal`.
    """

    broker: int
    settings: Mapping[str, str] | None
    refusal: BrokerRefused | None
    own: Mapping[str, Mapping[str, str] | BrokerRefused]
    serves_heartbeat: bool
    group_version: int | None
    member_types: bool
    preview: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that was read before a verdict.

    `settings` are the coordinator's (None: may not be read, `settings_error` says why, `settings_code` in one
    name), `own_settings` those of the group (None: for the reason in `own_error`). `group_version` is the
    finalized level of the feature, None where the broker reports no features. `logged` is None unless the
    records were read. `member_types`: whether the broker reports which protocol each member of a consumer
    group speaks (4.0 and later). `preview`: it serves the protocol as Kafka 3.7 to 3.9 do. `kind` is who uses
    a classic group. `findings` are those of a live group, and `findings_error` is why there may be more.
    `unstored` says why the coordinator can store nothing and what to do about it, or why that is not known.
    """

    group: GroupDescription
    members: tuple[MemberEvidence, ...]
    broker: int
    serves_heartbeat: bool
    group_version: int | None
    settings: Mapping[str, str] | None
    settings_error: str | None
    own_settings: Mapping[str, str] | None
    topic_names: frozenset[str] | None = None
    logged: Logged | None = None
    member_types: bool = True
    kind: Kind = Kind(CONSUMERS, "")
    settings_code: str | None = None
    own_error: str | None = None
    preview: bool = False
    findings: tuple[Finding, ...] = ()
    findings_error: ItemError | None = None
    unstored: tuple[str, str] | ItemError | None = None

    @property
    def remaining(self) -> tuple[MemberEvidence | Member, ...]:
        """The members that still speak the classic protocol: of a classic group all, by their own bytes."""
        return self.members or tuple(m for m in self.group.known_members if m.protocol == CLASSIC)

    def number(self, name: str) -> int | None:
        """Return a numeric setting of the coordinator; None when unknown."""
        return number_of((self.settings or {}).get(name))
