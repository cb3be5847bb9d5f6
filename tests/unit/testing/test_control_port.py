"""The control port: what its OpenAPI document says is what it serves, and bad input gets a reason."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
from confluent_kafka import Consumer

from kgroup.broker.control.dispatcher import ControlledDispatcher
from kgroup.broker.control.port import endpoint
from kgroup.broker.control.port.endpoint import ControlPort
from kgroup.errors import KgroupError
from kgroup.testing import Cluster
from tests.unit.testing.clients import PATIENCE_S

TOKEN = "of-the-test"


class Port:
    """A client of the port, which holds every answer to the document."""

    def __init__(self, url: str) -> None:
        self.address = urlsplit(url).netloc
        self.document: dict[str, Any] = {}

    def ask(
        self, method: str, path: str, body: object = None, *, token: str = TOKEN, raw: bytes | None = None
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
            connection.request(method, path, content, {"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def done(self, method: str, path: str, template: str, body: object = None) -> Any:
        """Ask, and hold the request and its answer to the document."""
        operation = self.document["paths"][template][method.lower()]
        if body is not None:
            self.check(operation["requestBody"]["content"], body)
        status, answer = self.ask(method, path, body)
        self.check(operation["responses"][str(status)]["content"], answer)
        assert status == 200, answer
        return answer

    def check(self, content: dict[str, Any], value: object) -> None:
        schema = {**content["application/json"]["schema"], "components": self.document["components"]}
        jsonschema.validate(value, schema, jsonschema.Draft202012Validator)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster({"orders": 2}, brokers=2, timeout_s=PATIENCE_S) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def port(kafka: Cluster) -> Iterator[Port]:
    serving = kafka._running()
    assert isinstance(serving.server.dispatcher, ControlledDispatcher)
    opened = serving.do(partial(ControlPort, TOKEN, 0, serving.server))
    port = Port(opened.url)
    port.document = port.ask("GET", "/openapi.json")[1]
    try:
        yield port
    finally:
        serving.call(opened.stop())


def test_every_operation_does_what_the_document_says(kafka: Cluster, port: Port) -> None:
    done, asked = port.done, set()

    def call(method: str, template: str, body: object = None, **parts: object) -> Any:
        asked.add((method, template))
        return done(method, template.format(**parts), template, body)

    consumer = Consumer(
        {**kafka.client(), "group.id": "pay", "client.id": "pay-0", "heartbeat.interval.ms": 100}
    )
    consumer.subscribe(["orders"])
    try:
        kafka.until(lambda: consumer.poll(0.01) or consumer.assignment(), timeout_s=PATIENCE_S)
        settled = call("POST", "/groups/wait", {"group": "pay", "members": 1, "state": "stable"})
        assert settled == call("GET", "/groups/{group}", group="pay")
        assert settled == {"group": "pay", "state": "Stable", "members": 1}
        member = call("POST", "/members/freeze", {"member": "pay-0"})
        assert call("POST", "/members/thaw", {"member": "pay-0", "group": "pay"}) == member
        before = call("GET", "/now")["now_ms"]
        assert call("POST", "/advance", {"by": "5s"})["now_ms"] >= before + 5_000
        assert call("POST", "/groups/{group}/move", {"node": 1}, group="pay") == {"node": 1}
        call("POST", "/members/expire", {"member": member["member"]})
        kafka.until(lambda: consumer.poll(0.01) or consumer.assignment(), timeout_s=PATIENCE_S)
    finally:
        consumer.close()

    rule = {"keys": ["Produce"], "topic": "orders", "error": "NOT_COORDINATOR", "count": 3}
    fault = call("POST", "/faults", {"rules": [rule]})
    assert (fault["id"], fault["rules"], fault["hits"], fault["left"]) == (1, [rule], 0, 3)
    heard = call("POST", "/faults", {"rules": [{"keys": ["Metadata"], "observe": True, "count": -1}]})
    Consumer({**kafka.client(), "group.id": "other"}).list_topics(timeout=PATIENCE_S)
    assert call("POST", "/faults/{id}/wait", {"hits": 1}, id=heard["id"])["hits"] >= 1
    seen = call("GET", "/faults/{id}", id=heard["id"])
    assert seen["left"] == -1 and seen["fired"][0]["request"] == "Metadata"
    assert [each["id"] for each in call("GET", "/faults")["faults"]] == [1, 2]
    assert call("DELETE", "/faults/{id}", id=1) == {"removed": 1}
    assert call("DELETE", "/faults") == {"removed": 1}
    for verb in ("stop", "start", "freeze", "thaw"):
        assert call("POST", f"/brokers/{{node}}/{verb}", node=1) == {"node": 1}
    moved = call("POST", "/topics/{topic}/{partition}/move", {"node": 1}, topic="orders", partition=0)
    assert moved == {"node": 1}
    known = {(m.upper(), path) for path, methods in port.document["paths"].items() for m in methods}
    assert asked == known


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "/advance", {"by": "-5s"}, 400, "not a duration"),
        ("POST", "/advance", {"by": 5}, 400, "by is 5"),
        ("POST", "/advance", {}, 400, "by is missing"),
        ("POST", "/advance", {"by": "5s", "others": "dead"}, 400, "'dead'"),
        ("POST", "/advance", {"until": "5s"}, 400, "no field 'until'"),
        ("POST", "/advance", ["5s"], 400, "not an object"),
        ("POST", "/members/freeze", {"member": "nobody"}, 400, "no member is called"),
        ("POST", "/faults", {"rules": [{"keys": ["Prodce"]}]}, 400, "rule 1: 'Prodce'"),
        ("POST", "/faults", {"rules": ["Produce"]}, 400, "rule 1 is 'Produce'"),
        ("POST", "/faults", {"rules": []}, 400, "no rules given"),
        ("POST", "/faults", {"rules": [{"nodes": [9], "drop": True}]}, 400, "no broker 9"),
        ("POST", "/faults/7/wait", {}, 404, "no fault 7"),
        ("DELETE", "/faults/x", None, 400, "id is 'x'"),
        ("POST", "/brokers/9/stop", None, 404, "no broker 9"),
        ("POST", "/groups/wait", {"group": "absent"}, 400, "nothing is waited for"),
        ("POST", "/groups/wait", {"group": "absent", "members": 1, "timeout": "10ms"}, 408, "it is absent"),
        ("POST", "/groups/wait", {"group": "absent", "members": True}, 400, "members is true"),
        ("GET", "/groups/absent", None, 404, "no group absent"),
        ("GET", "/nowhere", None, 404, "/advance"),
        ("PUT", "/now", None, 404, "it has GET"),
    ],
)
def test_bad_input_is_refused_with_what_would_be_right(
    port: Port, method: str, path: str, body: object, status: int, said: str
) -> None:
    found, answer = port.ask(method, path, body)
    assert found == status and said in json.dumps(answer), answer
    port.check(port.document["paths"]["/now"]["get"]["responses"][str(status)]["content"], answer)


def test_strangers_are_kept_out_and_what_is_not_json_is_refused(port: Port) -> None:
    for path in ("/now", "/openapi.json", "/nowhere"):
        assert port.ask("GET", path, token="of-another")[0] == 401
    status, answer = port.ask("POST", "/advance", raw=b"{by")
    assert status == 400 and "not JSON" in answer["error"]
    connection = http.client.HTTPConnection(port.address, timeout=PATIENCE_S)
    headers = {"Content-Length": str(1 << 30), "Authorization": f"Bearer {TOKEN}"}
    connection.request("POST", "/advance", b"", headers)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_port_that_is_taken(kafka: Cluster, port: Port) -> None:
    serving = kafka._running()
    number = int(re.findall(r"\d+", port.address)[-1])
    with pytest.raises(KgroupError, match="cannot be used") as told:
        serving.do(partial(ControlPort, TOKEN, number, serving.server))
    assert "--control" in (told.value.hint or "")


def sent(port: Port, text: str, body: bytes = b"") -> tuple[int, Any]:
    """The answer to a request as it is written, and that the connection ends with it."""
    host, number = port.address.split(":")
    with socket.create_connection((host, int(number)), timeout=PATIENCE_S) as there:
        there.sendall(text.encode() + b"\r\n\r\n" + body)
        with there.makefile("rb") as answers:
            head, _, answer = answers.read().partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(answer)


WITH_TOKEN = f"POST /advance HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n"


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: " + "9" * 5_000,
        "Content-Length: ١٢",
        "Content-Length: -1",
        "Content-Length: 1e3",
        f"Content-Length: {1 << 21}",
        "Transfer-Encoding: chunked",
    ],
    ids=["5,000 digits", "Arabic digits", "negative", "a float", "2 MiB", "chunked"],
)
def test_a_length_that_is_none_is_refused(port: Port, header: str) -> None:
    status, answer = sent(port, WITH_TOKEN + header)
    assert status == 413 and answer["hint"] and len(answer["error"]) < 100


def test_no_body_is_kept_of_a_stranger(port: Port) -> None:
    """Its answer comes before the whole body has, so that nobody had to keep it."""
    half = "POST /advance HTTP/1.1\r\nAuthorization: Bearer x\r\nContent-Length: 1000000"
    host, number = port.address.split(":")
    with socket.create_connection((host, int(number)), timeout=PATIENCE_S) as there:
        there.sendall(half.encode() + b"\r\n\r\n" + b"x" * 500_000)
        there.shutdown(socket.SHUT_WR)
        with there.makefile("rb") as answers:
            assert answers.read().startswith(b"HTTP/1.1 401")
    assert sent(port, half.replace("1000000", "9" * 5_000))[0] == 401


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/faults/" + "9" * 5_000, b"", 400),
        ("/advance", b"[" * 200_000, 400),
        ("/advance", b'{"by": ' + b"9" * 5_000 + b"}", 400),
        ("/advance", b'{"by": "3650d"}', 400),
        ("/advance", b'{"by": "1e300d"}', 400),
        ("/advance", b'{"by": "45"}', 400),
    ],
    ids=["id", "depth", "digits", "ten years", "more than a float's", "no unit"],
)
def test_numbers_and_depths_that_are_too_much_are_refused(
    port: Port, path: str, body: bytes, status: int
) -> None:
    method = "GET" if path.startswith("/faults") else "POST"
    found, answer = port.ask(method, path, raw=body)
    assert found == status and answer["hint"]
    assert port.ask("GET", "/now")[0] == 200


def test_connections_are_bounded(kafka: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MOST_CONNECTIONS", 4)
    serving = kafka._running()
    opened = serving.do(partial(ControlPort, TOKEN, 0, serving.server))
    other = Port(opened.url)
    host, number = other.address.split(":")
    threads = threading.active_count()
    try:
        with ExitStack() as held:
            for _ in range(4):
                held.enter_context(socket.create_connection((host, int(number)), timeout=PATIENCE_S))
            with socket.create_connection((host, int(number)), timeout=PATIENCE_S) as late:
                assert late.recv(1) == b"", "closed at once"
            assert threading.active_count() == threads + 4
        kafka.until(lambda: answers(other))
    finally:
        serving.call(opened.stop())


def answers(port: Port) -> bool:
    try:
        return port.ask("GET", "/now")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_who_says_nothing_is_closed_and_who_has_the_token_may_pause(kafka: Cluster) -> None:
    serving = kafka._running()
    server: Any = serving.do(partial(ControlPort, TOKEN, 0, serving.server))
    server._http.RequestHandlerClass.timeout = 0.05
    host, number = urlsplit(server.url).netloc.split(":")
    try:
        known = http.client.HTTPConnection(host, int(number), timeout=PATIENCE_S)
        known.connect()
        known.request("GET", "/now", headers={"Authorization": f"Bearer {TOKEN}"})
        assert known.getresponse().read()
        with socket.create_connection((host, int(number)), timeout=PATIENCE_S) as silent:
            assert silent.recv(1) == b""
        known.request("GET", "/now", headers={"Authorization": f"Bearer {TOKEN}"})
        assert known.getresponse().status == 200
        known.close()
    finally:
        serving.call(server.stop())


def test_a_wait_ends_with_the_port(kafka: Cluster) -> None:
    serving = kafka._running()
    opened = serving.do(partial(ControlPort, TOKEN, 0, serving.server))
    other = Port(opened.url)
    found: list[tuple[int, Any]] = []

    def wait() -> None:
        found.append(other.ask("POST", "/groups/wait", {"group": "absent", "members": 1, "timeout": "1h"}))

    waiting = threading.Thread(target=wait)
    waiting.start()
    kafka.until(lambda: opened._under_way)
    serving.call(opened.stop())
    waiting.join()
    assert found[0][0] == 503 and "stops" in found[0][1]["error"]
