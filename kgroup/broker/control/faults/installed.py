"""The rules in force: their effect on each request, and what each rule did and when."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from kgroup.broker.call import AnyCall
from kgroup.broker.control.faults.failing_log import FailingLog
from kgroup.broker.control.faults.rules import Rule
from kgroup.broker.control.faults.sites import At, Site
from kgroup.broker.control.faults.stale import Snapshot
from kgroup.broker.control.nodes import of_nodes
from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of
from kgroup.errors import ConfigError, ErrorCode
from kgroup.protocol import registry
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.requests import ANATOMY
from kgroup.runtime.cluster import Cluster


class Hit(NamedTuple):
    """One request that a rule acted on, or counted; an append that failed has no sender."""

    at_ms: int
    """The brokers' time."""
    request: str
    version: int | None
    client_id: str | None
    node: int | None
    group: str | None
    topics: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Installed:
    """A rule in force, until its budget is spent."""

    rule: Rule
    api_keys: frozenset[int]
    left: int
    stale: Snapshot | None = None
    hits: list[Hit] = field(default_factory=list)

    def takes(self, call: AnyCall) -> bool:
        """Return whether the rule is about such a request, whatever is in it."""
        rule = self.rule
        return (
            (not self.api_keys or call.body.API in self.api_keys)
            and (not rule.nodes or call.node in rule.nodes)
            and rule.client in ("", call.client_id)
            and not rule.append_fails
            and (self.stale is None or call.body.API in (ApiKey.METADATA, ApiKey.FIND_COORDINATOR))
        )

    def spend(self, hit: Hit) -> None:
        """Take one request of the budget."""
        self.hits.append(hit)
        if self.left > 0:
            self.left -= 1


@dataclass(slots=True, eq=False)
class FaultSet:
    """Rules that were set together, and are removed together."""

    id: int
    rules: tuple[Installed, ...]
    must_fire: bool = False

    @property
    def hits(self) -> list[Hit]:
        """What the rules did, in the order of time."""
        return sorted((hit for installed in self.rules for hit in installed.hits), key=lambda hit: hit.at_ms)

    @property
    def left(self) -> int:
        """How many requests the rules may still act on; -1 where one has no limit."""
        return -1 if any(rule.left < 0 for rule in self.rules) else sum(rule.left for rule in self.rules)

    def shown(self) -> dict[str, object]:
        """Return the set as JSON, by kfake's names; `fired` is what happened, and when."""
        hits = self.hits
        rules = [installed.rule.shown() for installed in self.rules]
        fired = [hit._asdict() for hit in hits]
        return {"id": self.id, "rules": rules, "hits": len(hits), "left": self.left, "fired": fired}


@dataclass(slots=True)
class Verdict:
    """The fate of a request: the errors of its entries, and what is done to all of it."""

    sites: Collection[Site]
    codes: dict[At, ErrorCode] = field(default_factory=dict)
    entries: bool = False
    """Whether a rule chose among the entries, so that errors stand on those."""
    top_level: ErrorCode | None = None
    delay_s: float = 0.0
    drop: bool = False
    cut_after: int | None = None
    stale: Snapshot | None = None


class Faults:
    """The rules of one cluster, in the order in which they were set."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last = 0
        self.sets: dict[int, FaultSet] = {}
        self.active: list[Installed] = []
        """Those with a budget left; empty nearly always."""
        self.loading: set[int] = set()
        """Partitions of __consumer_offsets whose coordinators are still loading."""

    def add(self, rules: Iterable[Rule], *, must_fire: bool = False) -> FaultSet:
        """Set rules together; raise ConfigError for a missing broker or topic, and for no rules at all."""
        made = []
        for rule in rules:
            for node in rule.nodes:
                if node not in self._cluster.nodes:
                    raise ConfigError(*of_nodes(node, self._cluster.nodes))
            if rule.append_fails:
                self._logs_of(rule)
            stale = Snapshot.of(self._cluster) if rule.stale else None
            made.append(Installed(rule, rule.api_keys, rule.count, stale))
        if not made:
            raise ConfigError("no rules given", "give at least one, as error='NOT_COORDINATOR'")
        self._last += 1
        added = self.sets[self._last] = FaultSet(self._last, tuple(made), must_fire)
        for installed in made:
            if installed.rule.append_fails:
                self._fail_appends(installed)
            else:
                self.active.append(installed)
        return added

    def remove(self, number: int) -> bool:
        """Remove a set; return whether there was one."""
        removed = self.sets.pop(number, None)
        if removed is None:
            return False
        for installed in removed.rules:
            installed.left = 0
        self.active = [installed for installed in self.active if installed.left]
        return True

    def judge(self, call: AnyCall, sites: Callable[[AnyCall], list[Site]]) -> Verdict | None:
        """Return the rules' verdict on a request, and count it; None if none of them matches.

        As in kfake, the first rule that matches an entry acts on it, and a request costs a rule one of its
        budget, however many entries match.
        """
        taken = [installed for installed in self.active if installed.takes(call)]
        if not taken and not self.loading:
            return None
        request_sites = sites(call)
        verdict = Verdict(request_sites)
        hit = Hit(
            self._cluster.clock.now_ms(),
            registry.name_of(call.body.API),
            call.version,
            call.client_id,
            call.node,
            next((site.group for site in request_sites if site.group is not None), None),
            tuple(dict.fromkeys(site.topic for site in request_sites if site.topic is not None)),
        )
        charged: set[int] = set()
        first = next(iter(request_sites), Site())
        whole = Site(group=first.group, txn_id=first.txn_id)
        for installed in taken:
            rule, code = installed.rule, installed.rule.code
            # The answer's own code fails if a rule is about that, or if nothing else can be selected.
            about = rule.top_level or ANATOMY[call.body.API].top_level
            if code is not None and about and rule.matches(whole) and carries_code(call, code):
                installed.spend(hit)
                charged.add(id(installed))
                verdict.top_level, verdict.delay_s = code, rule.delay_s
                break
        if verdict.top_level is None:
            for site in request_sites:
                loads = False
                if self.loading and site.group is not None and call.body.API != ApiKey.FIND_COORDINATOR:
                    partition = offsets_partition_of(site.group, len(self._cluster.shards))
                    leads = self._cluster.leader_of(OFFSETS_TOPIC, partition) == call.node
                    loads = leads and partition in self.loading
                if loads:
                    verdict.codes[site.at] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                able = [installed for installed in taken if installed.rule.observe] if loads else taken
                self._judge_site(site, able, verdict, hit, charged)
        if charged:
            self.active = [installed for installed in self.active if installed.left]
        return verdict if charged or verdict.codes else None

    def _judge_site(
        self, site: Site, taken: Iterable[Installed], verdict: Verdict, hit: Hit, charged: set[int]
    ) -> None:
        for installed in taken:
            rule = installed.rule
            if rule.top_level or not rule.matches(site):
                continue
            if id(installed) not in charged:
                if not installed.left:
                    continue
                installed.spend(hit)
                charged.add(id(installed))
            if rule.observe:
                continue
            verdict.delay_s = max(verdict.delay_s, rule.delay_s)
            if rule.code is not None:
                verdict.codes[site.at] = rule.code
                verdict.entries |= bool(rule.topic or rule.topic_id or rule.partitions or rule.resource)
            verdict.drop |= rule.drop
            if rule.cut_after is not None:
                verdict.cut_after = rule.cut_after
            verdict.stale = installed.stale or verdict.stale
            return

    def _fail_appends(self, installed: Installed) -> None:
        for topic, number in self._logs_of(installed.rule):
            hit = partial(
                Hit,
                request="append",
                version=None,
                client_id=None,
                node=self._cluster.leader_of(topic, number),
                group=installed.rule.group or None,
                topics=(topic,),
            )

            def fails(hit: partial[Hit] = hit) -> bool:
                if not installed.left:
                    return False
                installed.spend(hit(self._cluster.clock.now_ms()))
                return True

            self._cluster.wrap_log(topic, number, partial(FailingLog, fails=fails))

    def _logs_of(self, rule: Rule) -> list[tuple[str, int]]:
        if rule.group:
            return [(OFFSETS_TOPIC, offsets_partition_of(rule.group, len(self._cluster.shards)))]
        topic = self._cluster.catalog.topics.get(rule.topic)
        if topic is None:
            names = ", ".join(self._cluster.catalog.topics)
            raise ConfigError(
                f"there is no topic {rule.topic} whose appends could fail", f"there are {names}"
            )
        for number in rule.partitions:
            if number >= topic.partitions:
                why = f"{topic.name} has no partition {number}"
                raise ConfigError(why, f"it has {topic.partitions}, from 0 on")
        return [(topic.name, number) for number in rule.partitions or range(topic.partitions)]


def carries_code(call: AnyCall, code: ErrorCode) -> bool:
    """Return whether the answer to a request has an error code of its own in this version."""
    answer = registry.response_class_at(call.body.API, call.version)
    fields: Mapping[str, object] = answer.__dataclass_fields__
    if "error_code" not in fields:
        return False
    plain, failed = answer(), answer(error_code=code)  # type: ignore[call-arg]
    return plain.encode(call.version) != failed.encode(call.version)
