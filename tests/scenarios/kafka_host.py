"""A real Apache Kafka: the judge. Time is real, so a scenario that waits runs `scale` times as fast."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Mapping
from typing import Any

from kgroup.domain import uuid_text
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.interop.kafka import SHARED, RealKafka
from tests.interop.verifying import verified_groups

from .hosts import CONFIG, JUDGE, KAFKA, group_config_request, topic_requests
from .wire import Wire

SCALE = 5
PATIENCE_S = 20.0
GROUP, TRANSACTION, SHARE = 0, 1, 2
DEFAULTS = {
    **CONFIG,
    **SHARED,
    "group.min.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "45000",
    "group.consumer.min.heartbeat.interval.ms": "5000",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.session.timeout.ms": "45000",
    "group.consumer.max.heartbeat.interval.ms": "15000",
    "group.consumer.assignment.interval.ms": "1000",
    "group.share.min.session.timeout.ms": "45000",
    "group.share.session.timeout.ms": "45000",
    "group.share.min.heartbeat.interval.ms": "5000",
    "group.share.heartbeat.interval.ms": "5000",
    "group.share.max.heartbeat.interval.ms": "15000",
    "num.io.threads": "1",
    "num.network.threads": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
_numbers = itertools.count(1)


class KafkaBroker:
    """One running broker with certain settings; started again when a scenario needs others.

    Before a broker ends, its log has to tell of every group what the broker says.
    """

    def __init__(self) -> None:
        self._running: RealKafka | None = None
        self._settings: dict[str, str] = {}

    def with_settings(self, settings: dict[str, str]) -> RealKafka:
        """The broker with these settings, freshly started if it had others."""
        if self._running is None or settings != self._settings:
            self.stop()
            self._settings = settings
            made = RealKafka(settings)
            made.kafka = KAFKA
            self._running = made.__enter__()
        return self._running

    def stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            try:
                verified_groups(running)
            finally:
                running.__exit__(None, None, None)


class KafkaHost:
    """A scenario's corner of a Kafka: names of its own, a raw connection for every open request."""

    def __init__(self, broker: KafkaBroker, config: Mapping[str, str], *, waits: bool) -> None:
        self.scale = SCALE if waits else 1
        self.prefix = f"s{next(_numbers)}-"
        settings = {**DEFAULTS, **config}
        running = broker.with_settings({name: _scaled(name, v, self.scale) for name, v in settings.items()})
        self._wire = Wire("127.0.0.1", running.port, greets=True)
        self._topics: dict[str, int] = {}
        self._early: list[tuple[int, Message]] = []
        self._await_coordinator()

    def send(self, ticket: int, client_id: str, message: Message, version: int) -> None:
        self._wire.send(ticket, client_id, message, version)

    def collect(self, expected: int) -> list[tuple[int, Message]]:
        early, self._early = self._early, []
        found = early + self._wire.collect(expected - len(early), PATIENCE_S)
        self._catch_up()
        early, self._early = self._early, []
        return found + early

    def wait(self, ms: int) -> None:
        until = time.monotonic() + ms / 1000 / self.scale
        while (left := until - time.monotonic()) > 0:
            self._early += self._wire.receive(left)

    def set_topic(self, name: str, partitions: int) -> bytes:
        for request in topic_requests(name, partitions, exists=name in self._topics):
            self._call(request)
        self._topics[name] = partitions
        topic_id = self._await_topic(name, partitions)
        if partitions:
            self._await_coordinator_sees(name, partitions)
        return topic_id

    def set_group_config(self, group_id: str, settings: Mapping[str, str]) -> None:
        scaled = {name: _scaled(name, value, self.scale) for name, value in settings.items()}
        self._call(group_config_request(group_id, scaled))

    def restart(self) -> None:
        raise NotImplementedError("a coordinator that is loaded again takes too long here")

    def fail_next_append(self) -> None:
        raise NotImplementedError("only the bare machine's log can be made to fail")

    def epochs(self, group_id: str) -> dict[str, str]:
        return {}

    def check(self) -> None:
        """Kafka looks after itself."""

    def close(self) -> None:
        self._wire.close()

    def _call(self, request: Message) -> Any:
        self._wire.send(0, "control", request, JUDGE.versions(request.API)[-1])
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            for ticket, response in self._wire.receive(1):
                if ticket == 0:
                    return response
                self._early.append((ticket, response))
        raise AssertionError(f"no answer to {request}")

    def _catch_up(self) -> None:
        """Until Kafka has worked off what was sent before; with one thread each it goes in order."""
        self._call(DescribeGroupsRequest(groups=(self.prefix,)))

    def _await_coordinator(self) -> None:
        """The first requests make Kafka create its internal topics, and nobody is served before."""
        partition = f"{self.prefix}:{uuid_text(bytes(15) + b'1')}:0"
        keys = {GROUP: self.prefix, TRANSACTION: self.prefix, SHARE: partition}
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if all(self._found(kind, key) for kind, key in keys.items()):
                init = InitProducerIdRequest(transactional_id=self.prefix, transaction_timeout_ms=60_000)
                (group,) = self._call(DescribeGroupsRequest(groups=(self.prefix,))).groups
                if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND and not self._call(init).error_code:
                    return
            time.sleep(0.1)
        raise AssertionError("the coordinators do not come up")

    def _found(self, key_type: int, key: str) -> bool:
        asked = FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
        return not self._call(asked).coordinators[0].error_code

    def _await_topic(self, name: str, partitions: int) -> bytes:
        """Wait until every partition has a leader, since only then commits and assignors see it."""
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=False)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            (topic,) = self._call(asked).topics
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not partitions:
                return bytes(16)
            if len(topic.partitions) == partitions and all(p.leader_id >= 0 for p in topic.partitions):
                found: bytes = topic.topic_id
                return found
            time.sleep(0.02)
        raise AssertionError(f"{name} does not come to {partitions} partitions")

    def _await_coordinator_sees(self, name: str, partitions: int) -> None:
        """The coordinator learns of topics on its own; a member of a group made for it shows when it has."""
        until = time.monotonic() + PATIENCE_S
        for attempt in itertools.count():
            join = ConsumerGroupHeartbeatRequest(
                group_id=f"probe-{name}-{partitions}-{attempt}",
                member_id="probe",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=(name,),
                topic_partitions=(),
            )
            held = self._call(join).assignment
            self._call(dataclasses.replace(join, member_epoch=-1))
            if held and sum(len(t.partitions) for t in held.topic_partitions) == partitions:
                return
            assert time.monotonic() < until, f"the coordinator does not see {partitions} partitions of {name}"


def _scaled(name: str, value: str, scale: int) -> str:
    return str(int(value) // scale) if name.endswith(".ms") else value
