"""Plays a scenario on a host, row by row, and compares what is told with what the row says."""

from __future__ import annotations

import dataclasses
from typing import Any

from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.join_group import JoinGroupRequest
from tests.scenarios.hosts import JUDGE

from . import (
    admin_verbs,
    classic_verbs,
    consumer_verbs,
    offset_verbs,
    share_verbs,
    streams_verbs,
    transaction_verbs,
)
from .hosts import Host
from .language import Row, Scenario, Told
from .names import Names
from .verbs import Ask, Verb

_MODULES = (
    classic_verbs,
    offset_verbs,
    admin_verbs,
    consumer_verbs,
    share_verbs,
    streams_verbs,
    transaction_verbs,
)
VERBS: dict[str, Verb] = {name: verb for module in _MODULES for name, verb in module.VERBS.items()}
assert len(VERBS) == sum(len(module.VERBS) for module in _MODULES), "two verbs have one name"
OPERATOR = "operator"


class Failed(AssertionError):
    """A row that was not answered as it says."""


def play(scenario: Scenario, host: Host) -> None:
    """Run all rows; raises Failed for the first that goes wrong."""
    player = Player(scenario, host)
    for row in scenario.rows:
        player.play(row)


class Player:
    """One scenario under way: who waits for what, and which names stand for which ids."""

    def __init__(self, scenario: Scenario, host: Host) -> None:
        self.scenario = scenario
        self.host = host
        self.names = Names(host.prefix)
        self._last_ticket = 0
        self._asked: dict[int, tuple[str, Verb, Ask]] = {}
        self._early: list[tuple[int, Message]] = []

    def play(self, row: Row) -> None:
        """Do what the row says, and compare every reply it released."""
        try:
            told = self._do(row)
            _compare(row.expected, told)
            self.host.check()
        except AssertionError as error:
            where = f"{self.scenario.source}:{row.number}: {row.text}"
            raise Failed(f"{where}\n{error}") from None

    def _do(self, row: Row) -> list[Told]:
        match row.words[0]:
            case "wait":
                self.host.wait(int(row.words[1]))
            case "topics":
                for name, partitions in row.options.items():
                    self.names.topic_ids[name] = self.host.set_topic(self.names.topic(name), int(partitions))
            case "group-config":
                name = self.names.group_id(row.words[1] if len(row.words) > 1 else "g")
                self.host.set_group_config(name, row.options)
            case "restart":
                self.host.restart()
            case "fail":
                self.host.fail_next_append()
            case "state":
                return [self._state(row)]
            case actor:
                self._ask(actor, VERBS[row.words[1]], row)
        return self._told(self.host.collect(len(row.expected) - len(self._early)))

    def _ask(self, actor: str, verb: Verb, row: Row) -> None:
        version = int(row.options.get("version", JUDGE.versions(verb.request.API)[-1]))
        ask = Ask(row, self.names, version, self.host.scale)
        message = verb.build(ask)
        if _may_be_handed_an_id(message, row):
            message = self._with_member_id(actor, verb, ask, message)
            if message is None:
                return
        self._send(actor, verb, ask, message)

    def _with_member_id(self, actor: str, verb: Verb, ask: Ask, message: Any) -> Any:
        """Ask for an id as clients do, and put it in; None if the first answer was another."""
        if ask.version < classic_verbs.MEMBER_ID_REQUIRED_SINCE:
            return message
        ticket = self._send(actor, verb, ask, message)
        replies = self.host.collect(1)
        own = next((response for number, response in replies if number == ticket), None)
        if getattr(own, "error_code", None) != ErrorCode.MEMBER_ID_REQUIRED:
            self._early = replies
            return None
        del self._asked[ticket]
        self._early = [reply for reply in replies if reply[0] != ticket]
        self.names.member(own.member_id)  # type: ignore[union-attr]
        return dataclasses.replace(message, member_id=own.member_id)  # type: ignore[union-attr]

    def _send(self, actor: str, verb: Verb, ask: Ask, message: Message) -> int:
        self._last_ticket += 1
        self._asked[self._last_ticket] = actor, verb, ask
        self.host.send(self._last_ticket, actor, message, ask.version)
        return self._last_ticket

    def _told(self, replies: list[tuple[int, Message]]) -> list[Told]:
        """The replies in words. Receivers learn their own names first, by actor, then by age."""
        replies, self._early = [*self._early, *replies], []
        replies.sort(key=lambda reply: (self._asked[reply[0]][0], reply[0]))
        for ticket, response in replies:
            self._asked[ticket][1].learn(response, self.names)
        told = []
        for ticket, response in replies:
            actor, verb, ask = self._asked.pop(ticket)
            told.append(verb.tell(actor, response, ask))
        return told

    def _state(self, row: Row) -> Told:
        """The group as the describe call of its kind shows it, and what only the host can know."""
        described = self._operator("describes", row)
        if described.head.startswith(ErrorCode.GROUP_ID_NOT_FOUND.name):
            for verb in ("inspects", "examines", "surveys"):
                found = self._operator(verb, row)
                if found.head != ErrorCode.GROUP_ID_NOT_FOUND.name:
                    return dataclasses.replace(found, actor="")
            return Told("", "Dead", {})
        group_id = self.names.group_id(row.options.get("group", "g"))
        known = self.host.epochs(group_id)
        if not known:  # the host cannot tell, so the row is not held to it
            for expected in row.expected:
                expected.fields.pop("generation", None)
        return Told("", described.head, {**described.fields, **known})

    def _operator(self, verb: str, row: Row) -> Told:
        asked = Row((OPERATOR, verb), {k: v for k, v in row.options.items() if k == "group"}, [], row.number)
        self._ask(OPERATOR, VERBS[verb], asked)
        told = self._told(self.host.collect(1))
        own = [reply for reply in told if reply.actor == OPERATOR]
        assert len(own) == 1 == len(told), f"unexpected: {_listed(told)}"
        return own[0]


def _may_be_handed_an_id(message: Message, row: Row) -> bool:
    return (
        isinstance(message, JoinGroupRequest)
        and not message.member_id
        and message.group_instance_id is None
        and "id" not in row.options
    )


def _compare(expected: list[Told], told: list[Told]) -> None:
    """Pair every expectation with a reply of the same actor, in any order between actors."""
    left = list(told)
    missing = []
    for wanted in expected:
        found = next((reply for reply in left if wanted.allows(reply)), None)
        if found is None:
            missing.append(wanted)
        else:
            left.remove(found)
    assert not missing and not left, f"expected: {_listed(expected)}\n     got: {_listed(told)}"


def _listed(told: list[Told]) -> str:
    return "; ".join(map(str, told)) or "-"
