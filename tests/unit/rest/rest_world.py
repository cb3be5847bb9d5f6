"""A REST API v3 by respx: documents with the fields that its OpenAPI document requires, and faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import respx

BASE = "https://rest.example.net:8082/v3"
CLUSTER = "cluster-1"


@dataclass
class Group:
    """Members with what they own, and what is committed and where the log ends, by topic:partition."""

    members: dict[str, list[str]] = field(default_factory=dict)
    offsets: dict[str, tuple[int, int]] = field(default_factory=dict)
    state: str = "STABLE"
    type: str | None = "CLASSIC"
    simple: bool = False


@dataclass
class RestWorld:
    """Clusters with groups; `faults` answer in the place of a path's document, one after the other."""

    groups: dict[str, Group] = field(default_factory=dict)
    clusters: tuple[str, ...] = (CLUSTER,)
    brokers: dict[str, tuple[str, int]] = field(default_factory=lambda: {"1": ("b1", 9092)})
    faults: dict[str, list[httpx.Response | Exception]] = field(default_factory=dict)
    page: int = 1000
    known_as: str = BASE
    asked: list[httpx.Request] = field(default_factory=list)

    def route(self, router: respx.Router) -> None:
        router.route(host="rest.example.net").mock(side_effect=self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        parts = urlsplit(str(request.url))
        words = [unquote(word) for word in parts.path.removeprefix("/v3/").split("/")]
        faults = self.faults.get("/".join(words)) or self.faults.get("*")
        if faults:
            fault = faults.pop(0)
            if isinstance(fault, Exception):
                raise fault
            return fault
        found = self._document(words)
        if found is None:
            return httpx.Response(404, json={"error_code": 404, "message": "HTTP 404 Not Found"})
        if isinstance(found, list):
            start = int(dict(request.url.params).get("page_token", 0))
            following = start + self.page
            path = f"{self.known_as}/{'/'.join(words)}?page_token={following}"
            metadata = {"self": str(request.url), "next": path if following < len(found) else None}
            body: Any = {"kind": "List", "metadata": metadata, "data": found[start:following]}
        else:
            body = found
        return httpx.Response(200, json=body)

    def _document(self, words: list[str]) -> Any:
        match words:
            case ["clusters"]:
                return [self._resource(cluster_id=name) for name in self.clusters]
            case ["clusters", _, "consumer-groups"]:
                return [self._group(name) for name in self.groups]
            case ["clusters", _, "brokers", name] if name in self.brokers:
                host, port = self.brokers[name]
                return self._resource(broker_id=int(name), host=host, port=port)
            case ["clusters", _, "consumer-groups", name, *rest] if name in self.groups:
                return self._below(name, rest)
        return None

    def _below(self, name: str, rest: list[str]) -> Any:
        group = self.groups[name]
        match rest:
            case []:
                return self._group(name)
            case ["consumers"]:
                return [self._consumer(name, member) for member in group.members]
            case ["consumers", member, "assignments"] if member in group.members:
                return [
                    self._resource(
                        consumer_group_id=name,
                        consumer_id=member,
                        topic_name=place.rpartition(":")[0],
                        partition_id=int(place.rpartition(":")[2]),
                        partition={"related": "…"},
                        lag={"related": "…"},
                    )
                    for place in group.members[member]
                ]
            case ["lags"] if group.offsets:
                return [self._lag(name, place) for place in group.offsets]
        return None

    def _group(self, name: str) -> Mapping[str, Any]:
        group = self.groups[name]
        document = self._resource(
            consumer_group_id=name,
            is_simple=group.simple,
            partition_assignor="range" if group.members else "",
            state=group.state,
            coordinator={"related": f"{self.known_as}/clusters/{CLUSTER}/brokers/1"},
            consumers={"related": "…"},
            lag_summary={"related": "…"},
        )
        # Older servers tell neither.
        return (
            document
            if group.type is None
            else {**document, "type": group.type, "is_mixed_consumer_group": False}
        )

    def _consumer(self, group: str, name: str) -> Mapping[str, Any]:
        instance = name if name.startswith("i-") else None
        return self._resource(
            consumer_group_id=group,
            consumer_id=name,
            instance_id=instance,
            client_id=f"client-{name}",
            assignments={"related": "…"},
        )

    def _lag(self, name: str, place: str) -> Mapping[str, Any]:
        group = self.groups[name]
        committed, end = group.offsets[place]
        owner = next((member for member, owned in group.members.items() if place in owned), "")
        topic, _, number = place.rpartition(":")
        return self._resource(
            consumer_group_id=name,
            topic_name=topic,
            partition_id=int(number),
            current_offset=committed,
            log_end_offset=end,
            lag=end - committed,
            consumer_id=owner,
            instance_id=owner if owner.startswith("i-") else None,
            client_id=f"client-{owner}" if owner else "",
        )

    def _resource(self, **fields: Any) -> dict[str, Any]:
        metadata = {"self": "…", "resource_name": None}
        return {"kind": "Kafka", "metadata": metadata, "cluster_id": CLUSTER, **fields}
