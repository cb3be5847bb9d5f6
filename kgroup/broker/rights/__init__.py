"""The rights each request needs, and the answer to a refused one: Kafka's rules around the handlers.

`guarded` puts them there when the cluster has an authorizer; without one, nothing precedes a handler.
`table.py` has a line for every API; longer rules are in the other modules, by subject.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kgroup.broker.call import Answer, AnyCall
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.rights.asker import Askers
from kgroup.runtime.cluster import Cluster


def guarded(cluster: Cluster, apis: Iterable[AnyApi]) -> tuple[AnyApi, ...]:
    """Return the APIs as the sender's rights allow them; unchanged without an authorizer."""
    if cluster.acls is None:
        return tuple(apis)
    askers = Askers(cluster.acls.authorizer)
    return tuple(_guarded(askers, api) for api in apis)


def _guarded(askers: Askers, api: AnyApi) -> AnyApi:
    from kgroup.broker.rights.table import RULES

    rule = RULES[api.key]
    if rule is None:
        return api
    handle = api.handle

    def check(broker: Dispatcher, call: AnyCall) -> Answer:
        asker = askers.of(call)
        if asker.is_super:
            return handle(broker, call)
        return rule(asker, broker, call, api)

    return replace(api, handle=check)
