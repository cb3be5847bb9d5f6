"""The rights each request needs, and the answer to a refused one: Kafka's rules around the handlers.

`guarded` puts them there when the cluster has an authorizer; without one, nothing precedes a handler.
The rights of every API stand in its row of `kgroup.protocol.requests`; what a row cannot say is a function
of a module here, by subject.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib import import_module

from kgroup.broker.call import Answer, AnyCall
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.rights.asker import Askers
from kgroup.broker.rights.rule import Rule, per_entry, shown, whole
from kgroup.protocol.anatomy import By, Each, Shown, Whole
from kgroup.protocol.requests import ANATOMY
from kgroup.runtime.cluster import Cluster


def guarded(cluster: Cluster, apis: Iterable[AnyApi]) -> tuple[AnyApi, ...]:
    """Return the APIs as the sender's rights allow them; unchanged without an authorizer."""
    if cluster.acls is None:
        return tuple(apis)
    askers = Askers(cluster.acls.authorizer)
    return tuple(_guarded(askers, api) for api in apis)


@cache
def rule_of(key: int) -> Rule | None:
    """Return the rule of an API; None for one that needs no right."""
    row = ANATOMY[key]
    match row.rights:
        case By(function):
            module, name = function.split(".")
            rule: Rule = getattr(import_module(f"{__name__}.{module}"), name)
            return rule
        case Each():
            assert row.entries is not None
            return per_entry(row.entries, row.rights)
        case Shown():
            return shown(row.rights)
        case Whole(needs):
            return whole(*needs) if needs else None


def _guarded(askers: Askers, api: AnyApi) -> AnyApi:
    rule = rule_of(api.key)
    if rule is None:
        return api
    handle = api.handle

    def check(broker: Dispatcher, call: AnyCall) -> Answer:
        asker = askers.of(call)
        if asker.is_super:
            return handle(broker, call)
        return rule(asker, broker, call, api)

    return replace(api, handle=check)
