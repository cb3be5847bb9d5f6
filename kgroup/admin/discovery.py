"""Discover the cluster: brokers, coordinators of groups, leaders of partitions.

Coordinators are cached until a broker denies the role or stops answering.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from kgroup.admin.models import GroupLocation, Node, Partition, TopicDescription
from kgroup.admin.parallel import together
from kgroup.admin.refusals import check, refused
from kgroup.client.retry import NOT_PROCESSED, OutcomeUnknown, Retry
from kgroup.domain import OFFSETS_TOPIC, id_text, offsets_partition_of
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kgroup.protocol.transport import Transport
from kgroup.security.rights import DESCRIBE, on_group, on_topic

if TYPE_CHECKING:
    from kgroup.admin.journal import Change, Journal

K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R", bound=Message)
Answers = dict[str, T | KgroupError]
FIND_COORDINATOR = 10
NO_NODE = -1
BATCH_VERSION = 4
GROUP_KEY = 0
OMITTED = "the broker omitted it"
_GAPS = "the broker lists some of its partitions, and not all"
BATCH = 5_000
"""Groups in one request: brokers bound what a request may hold."""


def machine_ms() -> int:
    """Return the time of this machine, in ms since 1970, UTC."""
    return time.time_ns() // 1_000_000


class Ask(Protocol):
    """A function that sends one broker a request and returns its answer, of the class named."""

    def __call__(self, message: Message, response: type[R], /) -> R: ...


class ClusterView:
    """One cluster behind a transport, for one thread at a time, with what is cached about it.

    Every function of `kgroup.admin` takes one; `retry` bounds each in time. `now_ms` is the cluster's
    time where that is known: ages are measured against it, and records written have it; without it this
    machine's is used, whose clock may be wrong. Changes are recorded in `journal`, by default the user's.
    """

    def __init__(
        self,
        transport: Transport,
        retry: Retry | None = None,
        now_ms: Callable[[], int] | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.transport = transport
        self.now_ms = now_ms or machine_ms
        self.has_clock = now_ms is not None
        self.retry = retry or Retry()
        self.listed_as: dict[str, str] = {}
        """The type each group was last listed with: a hint which request describes it."""
        self._coordinators: dict[str, Node] = {}
        self._cluster_id: str | None = None
        self._journal = journal

    @property
    def journal(self) -> Journal:
        """Where changes of this cluster are recorded."""
        if self._journal is None:
            from kgroup.admin.journal import Journal

            self._journal = Journal.default()
        return self._journal

    def change(
        self,
        command: str,
        plan: Mapping[str, object],
        before: Mapping[str, object],
        items: Sequence[Mapping[str, object]] = ({},),
    ) -> AbstractContextManager[Change]:
        """Record a change around its requests, and who makes it (`Journal.change`)."""
        from kgroup.admin.journal import actor

        return self.journal.change(command, self.cluster_id(), {"actor": actor(), **plan}, before, items)

    def cluster_id(self, *, ask: bool = True) -> str | None:
        """Return the id from the metadata, requested (if at all) only until an answer has reported it."""
        if self._cluster_id is None and ask:
            self.metadata(())
        return self._cluster_id

    def ask(
        self,
        node: int | None,
        message: Message,
        response: type[R],
        *,
        versions: tuple[int, int | None] = (0, None),
        timeout_s: float | None = None,
    ) -> R:
        """Return the answer of broker `node` (None: of any), in a version of `versions`, both included."""
        lowest, highest = versions
        answer = self.transport.request(
            node, message, min_version=lowest, max_version=highest, timeout_s=timeout_s
        )
        assert isinstance(answer, response)
        return answer

    def ask_again(
        self,
        node: int | None,
        message: Message,
        response: type[R],
        *,
        versions: tuple[int, int | None] = (0, None),
    ) -> R:
        """Return the same of an idempotent request, retried within the retry's time where that may help."""
        return self.retry.call(
            lambda left_s: self.ask(node, message, response, versions=versions, timeout_s=left_s),
            idempotent=True,
        )

    def ask_controller(self, message: Message, response: type[R], *, idempotent: bool = True) -> R:
        """Return the same from the controller, looked up for each try; while unknown from any broker."""

        def ask(left_s: float) -> R:
            controller = self.metadata(()).controller_id
            node = None if controller == NO_NODE else controller
            return self.ask(node, message, response, timeout_s=left_s)

        return self.retry.call(ask, idempotent=idempotent)

    def at_once(
        self, works: Mapping[K, Callable[[], T]], *, idempotent: bool = True
    ) -> dict[K, T | KgroupError]:
        """Return what each work returned, or its KgroupError; concurrently where the transport allows.

        Each asks about a part of the cluster; unless `idempotent`, its outcome is worth all the time left.
        """
        limit = self.retry.limit
        with limit.narrowed(limit.left() / 2 if idempotent else limit.left()):
            return together(works, concurrent=self.transport.concurrent)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Limit all requests within the block to this time, retries included."""
        before = self.retry
        self.retry = replace(before, timeout_s=min(before.timeout_s, seconds))
        try:
            with before.limit.narrowed(seconds):
                yield
        finally:
            self.retry = before

    def brokers(self) -> tuple[Node, ...]:
        """Return the brokers alive now, by id."""
        alive = self.transport.nodes()
        return tuple(Node(node, *alive[node]) for node in sorted(alive))

    def metadata(self, topics: Iterable[str] | None) -> MetadataResponse:
        """Return metadata of the topics named, or of all topics for None; creates no topic."""
        asked = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in sorted(topics))

        def ask(left_s: float) -> MetadataResponse:
            request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
            # Below 4 a broker may create the topics asked about; below 1 there is no "no topics".
            answer = self.ask(None, request, MetadataResponse, versions=(4, None), timeout_s=left_s)
            check(answer.error_code, "Metadata")
            self._cluster_id = answer.cluster_id
            return answer

        return self.retry.call(ask, idempotent=True)

    def topics(self, names: Iterable[str] | None) -> Answers[TopicDescription]:
        """Return each topic with its partitions, or why it cannot be described; all topics for None."""
        requested = None if names is None else set(names)
        if requested is not None and not requested:
            return {}
        answers: Answers[TopicDescription] = {}
        for topic in self.metadata(requested).topics:
            name = topic.name or ""
            if topic.error_code:
                answers[name] = refused(topic.error_code, f"topic {name}", needs=[on_topic(DESCRIBE, name)])
                continue
            partitions = tuple(
                Partition(p.partition_index, p.leader_id, p.leader_epoch, p.replica_nodes, p.isr_nodes)
                for p in sorted(topic.partitions, key=lambda p: p.partition_index)
            )
            if [p.partition for p in partitions] != list(range(len(partitions))):
                answers[name] = refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"topic {name}", _GAPS)
                continue
            answers[name] = TopicDescription(name, id_text(topic.topic_id), topic.is_internal, partitions)
        for name in (requested or set()) - answers.keys():
            answers[name] = self.left_out(name)
        return answers

    def left_out(self, topic: str) -> KgroupError:
        """Return why there is no answer about a topic that was asked for by its name."""
        return refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"topic {topic}", OMITTED)

    def coordinators(self, group_ids: Iterable[str], left_s: float | None = None) -> Answers[Node]:
        """Return the broker that coordinates each group, or why none is known; cached between calls.

        `left_s` is the time left to request those not known, by default the retry's.
        """
        requested = list(dict.fromkeys(group_ids))
        unknown = [group for group in requested if group not in self._coordinators]
        failed: Answers[Node] = self._find(unknown, left_s or self.retry.timeout_s) if unknown else {}
        return {group: self._coordinators.get(group) or failed[group] for group in requested}

    def learn(self, coordinators: Mapping[str, Node]) -> None:
        """Cache the brokers that listed groups as their coordinators."""
        self._coordinators.update(coordinators)

    def forget(self, group_ids: Iterable[str]) -> None:
        """Look the groups' coordinators up again when next needed."""
        for group in group_ids:
            self._coordinators.pop(group, None)

    def _find(self, group_ids: Sequence[str], left_s: float) -> Answers[Node]:
        from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

        served = self.transport.versions(None, FIND_COORDINATOR)
        batches = served is None or served[-1] >= BATCH_VERSION
        failed: Answers[Node] = {}
        size = BATCH if batches else 1
        for keys in (tuple(group_ids[at : at + size]) for at in range(0, len(group_ids), size)):
            request = FindCoordinatorRequest(
                key="" if batches else keys[0], key_type=GROUP_KEY, coordinator_keys=keys if batches else ()
            )
            answer = self.ask(None, request, FindCoordinatorResponse, timeout_s=left_s)
            for coordinator in answer.coordinators if batches else (answer,):
                group = coordinator.key if batches else keys[0]  # type: ignore[union-attr]
                if coordinator.error_code:
                    what = f"coordinator of group {group}"
                    failed[group] = refused(
                        coordinator.error_code,
                        what,
                        coordinator.error_message or None,
                        [on_group(DESCRIBE, group)],
                    )
                else:
                    self._coordinators[group] = Node(coordinator.node_id, coordinator.host, coordinator.port)
        missing = [group for group in group_ids if group not in failed and group not in self._coordinators]
        for group in missing:
            failed[group] = refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"coordinator of group {group}")
        return failed

    def ask_coordinators(
        self,
        group_ids: Iterable[str],
        ask: Callable[[int, Sequence[str], float], Mapping[str, T | KgroupError]],
        *,
        idempotent: bool,
    ) -> Answers[T]:
        """Return each group's answer from its coordinator, in order, requested in one batch per broker.

        `ask(node, groups, seconds left)` answers per group; KgroupError values are failures of one group.
        Groups whose coordinator moved, is loading or cannot be reached are retried until the retry's time is
        up; after a request without a reply only when `idempotent`. Raise Unreachable only when no broker at
        all can be reached.
        """
        clock, sleep = self.retry.clock, self.retry.sleep
        deadline = self.retry.part_ends() if idempotent else self.retry.ends()
        answers: Answers[T] = {}
        requested = list(dict.fromkeys(group_ids))
        pending, delays = requested, self.retry.backoff.delays(self.retry.chance)
        while True:
            for group, answer in self._ask_once(pending, ask, deadline, idempotent).items():
                answers[group] = answer
            pending = [group for group in pending if _moved(answers[group], idempotent)]
            if not pending or clock() + (delay := next(delays)) >= deadline:
                return {group: answers[group] for group in requested}
            self.forget(pending)
            sleep(delay)

    def _ask_once(
        self,
        group_ids: Sequence[str],
        ask: Callable[[int, Sequence[str], float], Mapping[str, T | KgroupError]],
        deadline: float,
        idempotent: bool,
    ) -> Answers[T]:
        answers: Answers[T] = {}
        by_node: dict[int, list[str]] = {}
        left = max(deadline - self.retry.clock(), 0.001)
        for group, coordinator in self.coordinators(group_ids, left).items():
            if isinstance(coordinator, Node):
                by_node.setdefault(coordinator.id, []).append(group)
            else:
                answers[group] = coordinator

        def ask_for(node: int) -> Mapping[str, T | KgroupError]:
            answered: dict[str, T | KgroupError] = {}
            for at in range(0, len(by_node[node]), BATCH):
                groups = by_node[node][at : at + BATCH]
                try:
                    answered.update(ask(node, groups, max(deadline - self.retry.clock(), 0.001)))
                except (Unreachable, BrokerRefused) as error:
                    answered.update(dict.fromkeys(groups, error))
            return answered

        works = {node: partial(ask_for, node) for node in by_node}
        for node, answer in self.at_once(works, idempotent=idempotent).items():
            if isinstance(answer, KgroupError):
                raise answer
            for group in by_node[node]:
                if group in answer:
                    answers[group] = answer[group]
                else:
                    answers[group] = refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"group {group}", OMITTED)
        return answers


def or_error(names: Iterable[str], ask: Callable[[], Answers[T]]) -> Answers[T]:
    """Return the answers, or the one reason for all of these names why there are none."""
    try:
        return ask()
    except KgroupError as error:
        return dict.fromkeys(names, error)


def locate(cluster: ClusterView, group_ids: Iterable[str]) -> tuple[GroupLocation, ...]:
    """Return coordinator and `__consumer_offsets` partition of each group, which need not exist.

    Wait for a coordinator that is not available yet; raise the first failure.
    """
    answers = cluster.ask_coordinators(
        group_ids, lambda node, groups, _: dict.fromkeys(groups, node), idempotent=True
    )
    topic = cluster.topics([OFFSETS_TOPIC])[OFFSETS_TOPIC]
    partitions = len(topic.partitions) if isinstance(topic, TopicDescription) else None
    nodes = cluster.coordinators(answers)
    located = []
    for group_id, answer in answers.items():
        node = nodes[group_id]
        if isinstance(answer, KgroupError):
            raise answer
        if isinstance(node, KgroupError):
            raise node
        number = offsets_partition_of(group_id, partitions) if partitions else None
        located.append(GroupLocation(group_id, node, number))
    return tuple(located)


def _moved(answer: object, idempotent: bool) -> bool:
    """Return whether a retry, perhaps elsewhere, is safe and may help."""
    if isinstance(answer, OutcomeUnknown):
        return idempotent and not answer.futile
    if isinstance(answer, BrokerRefused):
        return answer.code in NOT_PROCESSED
    return isinstance(answer, Unreachable)
