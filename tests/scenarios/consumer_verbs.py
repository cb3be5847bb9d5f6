"""heartbeats: the consumer protocol.

    a heartbeats [ID] epoch=2 [topics=t1,t2] [regex=] [owned=t1:0-3] [instance=] [rack=] [rebalance=]
                 [assignor=] [id=]

The member id is the actor's name, unless the row names another; `id=` asks for one (version 0). At epoch 0
a row says what a client must: what it wants, that it owns nothing, and its rebalance timeout. Later rows
say what they name. `null` and `none` stand for no word about it and for nothing.
An answer names the member only when it is not the actor itself; `assigned=-` is no word about it.
"""

from __future__ import annotations

from typing import Any

from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

from .names import Names, partitions_in, partitions_text
from .verbs import Ask, Verb, error

NOT_GIVEN = -1


def _heartbeat(ask: Ask) -> ConsumerGroupHeartbeatRequest:
    epoch = ask.number("epoch", 0)
    joins = epoch == 0
    return ConsumerGroupHeartbeatRequest(
        group_id=ask.group_id,
        member_id=ask.member_id if ask.arguments or "id" in ask.row.options else ask.row.words[0],
        member_epoch=epoch,
        instance_id=ask.given("instance"),
        rack_id=ask.given("rack"),
        rebalance_timeout_ms=ask.time("rebalance", 20_000 if joins else NOT_GIVEN),
        subscribed_topic_names=_topics(ask, joins),
        subscribed_topic_regex=_regex(ask),
        server_assignor=ask.given("assignor"),
        topic_partitions=_owned(ask, joins),
    )


def _topics(ask: Ask, joins: bool) -> tuple[str, ...] | None:
    given = ask.given("topics")
    if given is None:
        return () if joins and "regex" not in ask.row.options else None
    if given == "null":
        return None
    return tuple(ask.names.topic(name) for name in given.split(",") if name and name != "none")


def _regex(ask: Ask) -> str | None:
    """A pattern for the scenario's topics, whatever their prefix."""
    given = ask.given("regex")
    return ask.names.prefix + given if given else given


def _owned(ask: Ask, joins: bool) -> tuple[TopicPartitions, ...] | None:
    given = ask.given("owned")
    if given is None:
        return () if joins else None
    if given == "null":
        return None
    return tuple(
        TopicPartitions(topic_id=ask.names.topic_id(topic), partitions=tuple(numbers))
        for topic, numbers in partitions_in("" if given == "none" else given)
    )


def _answer(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    names = ask.names
    if response.error_code:
        message = (response.error_message or "").replace(" ", "_").replace(names.prefix, "")
        return error(response.error_code), {"message": message}
    member = names.member(response.member_id)
    return "" if member == ask.row.words[0] else member, {
        "epoch": str(response.member_epoch),
        "interval": str(response.heartbeat_interval_ms * ask.scale),
        "assigned": _assigned(response, names),
    }


def _assigned(response: ConsumerGroupHeartbeatResponse, names: Names) -> str:
    """`-` for no word about it, `none` for an empty assignment."""
    if response.assignment is None:
        return "-"
    held = ((names.topic_of_id(t.topic_id), t.partitions) for t in response.assignment.topic_partitions)
    return partitions_text(held) or "none"


def _learn(response: Any, names: Names) -> None:
    names.member(response.member_id or "")


VERBS = {"heartbeats": Verb(ConsumerGroupHeartbeatRequest, _heartbeat, _answer, _learn)}
