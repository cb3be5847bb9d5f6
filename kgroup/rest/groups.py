"""List, describe and measure groups by REST.

REST omits subscriptions, hosts, epochs, targets, leader epochs, and commits of partitions whose end it cannot
read. It silently omits groups and topics that its principal may not describe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kgroup.admin.models import (
    CONSUMER,
    EMPTY,
    STABLE,
    Description,
    GroupDescription,
    GroupListing,
    ItemError,
    Listing,
    Member,
    Node,
    OffsetRow,
)
from kgroup.admin.read.findings import find
from kgroup.admin.read.lag import behind, total
from kgroup.admin.read.lag_report import LagReport, sampled
from kgroup.admin.read.members import assignment_of, in_order
from kgroup.admin.refusals import item_error, not_found
from kgroup.domain import GROUP_TYPES, MemberStatus, TopicPartition
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, Unreachable
from kgroup.rest.documents import Document

if TYPE_CHECKING:
    from kgroup.rest.api import Api

GROUPS, CONSUMERS, ASSIGNMENTS, LAGS, BROKERS = (
    "consumer-groups",
    "consumers",
    "assignments",
    "lags",
    "brokers",
)
NOT_TOLD = "NOT_TOLD"
UNKNOWN_STATE, UNKNOWN = "Unknown", "unknown"
_TYPES = {name.upper(): name for name in GROUP_TYPES}
_FINDINGS = frozenset({"KG102", "KG105", "KG106", "KG107", "KG301", "KG304"})
"""The findings that need nothing REST omits."""
_NOT_COMMITTED = "committed offset not reported: there is none, or the log end could not be read"
_ASK_BROKERS = "ask the brokers (-b) to be sure"


class Groups:
    """The groups of the cluster that an API serves."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._nodes: dict[str, Node | None] = {}

    def cluster_id(self) -> str:
        """Return the id of the cluster."""
        return self._api.cluster_id()

    def list_groups(self, *, count_members: bool = False) -> Listing:
        """Return the groups that REST lists, by id; an error always reports that there may be more."""
        errors: list[ItemError] = []
        groups = []
        for document in self._api.all(GROUPS):
            listing = self._listed(document)
            if count_members:
                try:
                    count = len(self._api.all(GROUPS, listing.group_id, CONSUMERS))
                    listing = replace(listing, members=count)
                except (BrokerRefused, Unreachable) as error:
                    errors.append(item_error(listing.group_id, error))
            groups.append(listing)
        return Listing(tuple(sorted(groups, key=lambda group: group.group_id)), (*errors, _MORE_GROUPS))

    def describe(self, group_ids: Iterable[str]) -> Description:
        """Return groups in full, in the order given; those that cannot be described are among the errors."""
        groups: list[GroupDescription] = []
        errors: list[ItemError] = []
        for group_id in dict.fromkeys(group_ids):
            try:
                groups.append(self._described(group_id))
            except BrokerRefused as error:
                absent = error.code == ErrorCode.RESOURCE_NOT_FOUND
                errors.append(item_error(group_id, not_found(group_id) if absent else error))
            except Unreachable as error:
                errors.append(item_error(group_id, error))
        return Description(tuple(groups), tuple(errors))

    def lag(self, group_ids: Iterable[str], interval_s: float | None = None) -> LagReport:
        """Return the lag of each group, with `interval_s` at which rate."""
        return sampled(self.describe, group_ids, interval_s)

    def _listed(self, document: Document) -> GroupListing:
        return GroupListing(
            document.text("consumer_group_id"),
            _TYPES.get(document.text_or_none("type") or ""),
            # REST serves groups of consumers; a simple one has never had a member.
            "" if document.truth("is_simple") else CONSUMER,
            # PREPARING_REBALANCE as Kafka writes it elsewhere
            None
            if (state := document.text("state")) == "UNKNOWN"
            else "".join(word.capitalize() for word in state.split("_")),
            None,
            self._node(document.related("coordinator")),
        )

    def _described(self, group_id: str) -> GroupDescription:
        document = self._api.one(GROUPS, group_id)
        listing, errors = self._listed(document), list[ItemError]()
        kind, state = listing.type or UNKNOWN, listing.state or UNKNOWN_STATE
        members: tuple[Member, ...] | None = None
        try:
            documents = self._api.all(GROUPS, group_id, CONSUMERS)
            members = in_order(self._member(group_id, kind, state, member, errors) for member in documents)
        except (BrokerRefused, Unreachable) as error:
            errors.append(item_error("members", error))
        rows = self._rows(group_id, members or (), errors)
        # Every partition that a member reads has a row; former topics do not matter.
        whole = bool(
            rows and members and state != EMPTY and all(member.assignment is not None for member in members)
        )
        if rows is not None and not whole:
            message = (
                f"{group_id}: may be incomplete: REST omits offsets of topics that its principal may not "
                "describe, and does not report whether there are any"
            )
            errors.append(ItemError(group_id, NOT_TOLD, message, _ASK_BROKERS))
        summed = total(rows or (), all_rows=whole)
        group = GroupDescription(
            group_id,
            kind,
            listing.protocol_type,
            state,
            assignor=document.text_or_none("partition_assignor") or None,
            coordinator=listing.coordinator,
            members=members,
            offsets=rows or (),
            total_lag=summed.lag,
            lag_at_least=summed.at_least,
            unknown_partitions=summed.unknown,
            errors=tuple(errors),
        )
        return replace(group, findings=tuple(f for f in find(group, {}) if f.code in _FINDINGS))

    def _member(
        self, group_id: str, kind: str, state: str, document: Document, errors: list[ItemError]
    ) -> Member:
        member_id = document.text("consumer_id")
        owned: list[TopicPartition] | None = None
        # While a classic group rebalances every member is reported as owning nothing.
        if state == STABLE or kind == CONSUMER:
            try:
                assigned = self._api.all(GROUPS, group_id, CONSUMERS, member_id, ASSIGNMENTS)
                owned = [TopicPartition(a.text("topic_name"), a.number("partition_id")) for a in assigned]
            except (BrokerRefused, Unreachable) as error:
                errors.append(item_error(f"assignment of {member_id}", error))
        return Member(
            member_id=member_id,
            instance_id=document.text_or_none("instance_id"),
            client_id=document.text_or_none("client_id"),
            host=None,
            rack_id=None,
            protocol=kind,
            member_epoch=None,
            state=MemberStatus.UNKNOWN,
            subscribed_topics=None,
            subscribed_regex=None,
            assignment=None if owned is None else assignment_of(owned),
            target_assignment=None,
            instance_id_known=document.has("instance_id"),
        )

    def _rows(
        self, group_id: str, members: Sequence[Member], errors: list[ItemError]
    ) -> tuple[OffsetRow, ...] | None:
        """Return a row for each partition with a lag or an owner; None where the lags could not be read."""
        rows: dict[TopicPartition, OffsetRow] = {}
        documents: list[Document] = []
        try:
            documents = self._api.all(GROUPS, group_id, LAGS)
        except (BrokerRefused, Unreachable) as error:
            # For a group without lags REST reports that the group does not exist.
            if not isinstance(error, BrokerRefused) or error.code != ErrorCode.RESOURCE_NOT_FOUND:
                errors.append(item_error("offsets", error))
                return None
        for document in documents:
            committed, end = document.number("current_offset"), document.number("log_end_offset")
            # REST's own `lag` is below zero for an offset beyond the end.
            lag, reason = behind(committed, end)
            row = OffsetRow(
                topic=document.text("topic_name"),
                partition=document.number("partition_id"),
                committed_offset=committed,
                log_end_offset=end,
                lag=lag,
                leader_epoch=None,
                metadata=None,
                member_id=document.text_or_none("consumer_id") or None,
                instance_id=document.text_or_none("instance_id"),
                reason=reason,
            )
            rows[row.place] = row
        for member in members:
            for entry in member.assignment or ():
                for number in entry.partitions:
                    partition = TopicPartition(entry.topic, number)
                    row = rows.get(partition) or OffsetRow(
                        *partition,
                        *(None,) * 7,
                        reason=_NOT_COMMITTED,
                        commit_known=False,
                    )
                    rows[partition] = replace(row, member_id=member.member_id, instance_id=member.instance_id)
        return tuple(rows[partition] for partition in sorted(rows))

    def _node(self, url: str | None) -> Node | None:
        """Return the broker of a relationship; None where REST does not report its address."""
        if url is None:
            return None
        name = url.rstrip("/").rpartition("/")[2]
        if name not in self._nodes:
            try:
                document = self._api.one(BROKERS, name)
                self._nodes[name] = Node(
                    document.number("broker_id"), document.text("host"), document.number("port")
                )
            except KgroupError:
                self._nodes[name] = None
        return self._nodes[name]


_MORE_GROUPS = ItemError(
    "groups",
    NOT_TOLD,
    "REST lists the groups of consumers that its principal may describe; whether these are all is unknown",
    _ASK_BROKERS,
)
