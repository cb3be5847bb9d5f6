"""Dialogues at a lock, byte by byte the same on a real Kafka and on ours: answers, silences and ends."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from kgroup.protocol.codec import Message
from kgroup.protocol.headers import decode_response, encode_request
from kgroup.protocol.messages.api_versions import ApiVersionsRequest
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.metadata import MetadataRequest
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.interop.conftest import require
from tests.interop.kafka import USERS
from tests.interop.security.servers import Locked, LockedKafka, LockedKgroup
from tests.unit.broker.authentication.listeners import ScramClient

pytestmark = pytest.mark.interop
ALICE = USERS["alice"]
GOOD, BAD = f"\0alice\0{ALICE}".encode(), b"\0alice\0wrong"
VERSIONS = (ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
STRANGE = (ApiVersionsRequest(client_software_name="a b", client_software_version=""), 3)
METADATA = (MetadataRequest(topics=()), 12)
FIND = (FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), 4)
BEAT = (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
Said = tuple[Message, int] | bytes | Callable[[list[bytes]], "Said"]
SILENT_S = 1.0


def shake(mechanism: str, version: int = 1) -> Said:
    return (SaslHandshakeRequest(mechanism=mechanism), version)


def say(token: bytes, version: int = 2) -> Said:
    return (SaslAuthenticateRequest(auth_bytes=token), version)


def bare(token: bytes) -> bytes:
    return len(token).to_bytes(4, "big") + token


@dataclass
class Dialogue:
    """A connection, what was heard on it, and the tokens of the broker among that."""

    there: socket.socket
    heard: list[object]
    tokens: list[bytes]

    def say(self, said: Said) -> None:
        """Say something and hear the answer, if there is one."""
        if callable(said):
            said = said(self.tokens)
        kind = None
        if not isinstance(said, bytes):
            kind, version = said
            said = encode_request(kind, version, 7, "test")
        with contextlib.suppress(OSError):
            self.there.sendall(said)
        frame = self._frame()
        if frame is None or kind is None or not isinstance(kind, Message):
            self.heard.append("closed" if frame is None else frame)
            return
        if frame == b"silence":
            self.heard.append("silence")
            return
        _, answer = decode_response(frame, kind.API, version)
        self.heard.append(self._told(answer))

    def _told(self, answer: Message) -> object:
        """What counts of an answer: codes and words, tokens by length, and whether a session ends."""
        found: dict[str, object] = {"answer": type(answer).__name__}
        for name in ("error_code", "error_message"):
            if hasattr(answer, name):
                found[name] = getattr(answer, name)
        if hasattr(answer, "mechanisms"):
            found["mechanisms"] = sorted(answer.mechanisms)
        if hasattr(answer, "auth_bytes"):
            self.tokens.append(answer.auth_bytes)
            found["token"] = len(answer.auth_bytes) > 0
            if answer.auth_bytes.startswith(b"{"):
                found["token"] = answer.auth_bytes
            found["session"] = answer.session_lifetime_ms > 0  # type: ignore[attr-defined]
        if hasattr(answer, "coordinators"):
            found["codes"] = [each.error_code for each in answer.coordinators]
        return found

    def _frame(self) -> bytes | None:
        """The next frame, None at the end; b"silence" when nothing comes."""
        try:
            size = self._exactly(4)
            return None if size is None else self._exactly(int.from_bytes(size, "big"))
        except TimeoutError:
            return b"silence"
        except OSError:
            return None

    def _exactly(self, size: int) -> bytes | None:
        found = b""
        while len(found) < size:
            part = self.there.recv(size - len(found))
            if not part:
                return None
            found += part
        return found


def play(server: Locked, listener: str, lines: tuple[Said, ...]) -> list[object]:
    host, port = server.address(listener).split(":")
    with socket.create_connection((host, int(port)), timeout=10) as there:
        there.settimeout(SILENT_S)
        dialogue = Dialogue(there, [], [])
        for line in lines:
            dialogue.say(line)
        return dialogue.heard


def scram(
    mechanism: str = "SCRAM-SHA-256", user: str = "alice", password: str = ALICE, header: str = "n,,"
) -> tuple[Said, ...]:
    made = ScramClient(mechanism, user, password, header)
    return shake(mechanism), say(made.first()), lambda tokens: say(made.final(tokens[-1]))


def bearer(token: str, authzid: str = "") -> bytes:
    return f"n,{authzid},\x01auth=Bearer {token}\x01\x01".encode()


DIALOGUES: dict[str, tuple[Said, ...]] = {
    "metadata first": (METADATA,),
    "metadata behind versions": (VERSIONS, METADATA),
    "a token first": (say(GOOD),),
    "versions twice": (VERSIONS, VERSIONS),
    "versions of strange software": (STRANGE, shake("PLAIN"), say(GOOD)),
    "versions not served": (struct.pack(">ihhihb", 11, 18, 99, 5, 0, 0), VERSIONS, shake("PLAIN"), say(GOOD)),
    "versions not served twice": (struct.pack(">ihhihb", 11, 18, 99, 5, 0, 0),) * 2,
    "versions behind the handshake": (shake("PLAIN"), VERSIONS),
    "a mechanism nobody has": (shake("GSSAPI"), shake("PLAIN")),
    "a mechanism in small letters": (shake("plain"),),
    "no mechanism": (shake(""),),
    "plain": (VERSIONS, shake("PLAIN"), say(GOOD), METADATA),
    "plain v0": (shake("PLAIN"), say(GOOD, 0), METADATA),
    "plain v1": (shake("PLAIN"), say(GOOD, 1), METADATA),
    "plain, wrong": (shake("PLAIN"), say(BAD), METADATA),
    "plain, wrong, v0": (shake("PLAIN"), say(BAD, 0), METADATA),
    "plain, nobody": (shake("PLAIN"), say(b"\0nobody\0x")),
    "plain, for another": (shake("PLAIN"), say(f"bob\0alice\0{ALICE}".encode())),
    "plain, for oneself": (shake("PLAIN"), say(f"alice\0alice\0{ALICE}".encode()), METADATA),
    "plain, no name": (shake("PLAIN"), say(b"\0\0x")),
    "plain, no password": (shake("PLAIN"), say(b"\0alice\0")),
    "plain, one part": (shake("PLAIN"), say(b"alice")),
    "plain, four parts": (shake("PLAIN"), say(b"\0alice\0b\0c")),
    "plain, nine parts": (shake("PLAIN"), say(b"\0a\0b\0c\0\0\0\0\0")),
    "plain, nothing": (shake("PLAIN"), say(b"")),
    "plain, no text": (shake("PLAIN"), say(b"\0al\xff\xfece\0x")),
    "metadata between": (shake("PLAIN"), METADATA),
    "coordinator between": (shake("PLAIN"), FIND),
    "heartbeat between": (shake("PLAIN"), BEAT),
    "handshake twice": (shake("PLAIN"), shake("PLAIN")),
    "bare": (shake("PLAIN", 0), bare(GOOD), METADATA),
    "bare, wrong": (shake("PLAIN", 0), bare(BAD), METADATA),
    "bare, empty": (shake("PLAIN", 0), bare(b"")),
    "a handshake afterwards": (shake("PLAIN"), say(GOOD), shake("PLAIN"), METADATA),
    "a token afterwards": (shake("PLAIN"), say(GOOD), say(GOOD), METADATA),
    "versions afterwards": (shake("PLAIN"), say(GOOD), VERSIONS, VERSIONS),
    "a frame too long": (struct.pack(">i", 524_289),),
    "a frame too long, later": (shake("PLAIN"), struct.pack(">i", 524_289)),
    "a negative frame": (struct.pack(">i", -1),),
    "an empty frame": (struct.pack(">i", 0),),
    "no request": (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",),
    "an API nobody has": (struct.pack(">ihhih", 10, 12345, 0, 5, -1),),
    "a version nobody has": (struct.pack(">ihhih", 12, 17, 9, 5, -1) + b"\0\0",),
    "scram 256": (*scram(), METADATA),
    "scram 512": (*scram("SCRAM-SHA-512"), METADATA),
    "scram, for oneself": (*scram(header="n,a=alice,"), METADATA),
    "scram, for another": scram(header="n,a=bob,")[:2],
    "scram, wrong": scram(password="wrong"),
    "scram, nobody": scram(user="nobody")[:2],
    "scram, channel binding": scram(header="p=tls-unique,,")[:2],
    "scram, y": scram(header="y,,")[:2],
    "scram, nothing": (shake("SCRAM-SHA-256"), say(b"")),
    "scram, another nonce": (*scram()[:2], say(b"c=biws,r=x,p=AAAA")),
    "scram, no proof": (*scram()[:2], lambda t: say(b"c=biws," + t[-1].split(b",")[0])),
    "scram, a short proof": (*scram()[:2], lambda t: say(b"c=biws," + t[-1].split(b",")[0] + b",p=AAAA")),
    "scram, other channel": (
        *scram()[:2],
        lambda t: say(b"c=eSws," + t[-1].split(b",")[0] + b",p=" + b"A" * 43 + b"="),
    ),
    "scram, an extension": (shake("SCRAM-SHA-256"), say(b"n,,n=alice,r=abc,ext=1")),
    "bearer, no token": (shake("OAUTHBEARER"), say(b"n,,\x01\x01")),
    "bearer, nonsense": (shake("OAUTHBEARER"), say(bearer("nonsense")), say(b"\x01")),
    "bearer, three parts": (shake("OAUTHBEARER"), say(bearer("a.b.c")), say(b"\x01")),
    "bearer, nonsense again": (
        shake("OAUTHBEARER"),
        say(bearer("a.b.c")),
        say(bearer("a.b.c")),
        say(b"\x01"),
    ),
    "bearer, nonsense, then nothing": (shake("OAUTHBEARER"), say(bearer("a.b.c")), say(b"")),
    "bearer, unsigned": (
        shake("OAUTHBEARER"),
        say(bearer("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6OTk5OTk5OTk5OSwiaWF0IjoxfQ.")),
        say(b"\x01"),
    ),
    "bearer, basic": (shake("OAUTHBEARER"), say(b"n,,\x01auth=Basic abc\x01\x01")),
    "bearer, \\x01": (shake("OAUTHBEARER"), say(b"\x01")),
}
AGAIN: dict[str, tuple[Said, ...]] = {
    "the same": (shake("PLAIN"), say(GOOD), shake("PLAIN"), say(GOOD), METADATA),
    "the same, at once again": (
        *(shake("PLAIN"), say(GOOD)) * 3,
        METADATA,
    ),
    "another user": (shake("PLAIN"), say(GOOD), shake("PLAIN"), say(f"\0bob\0{USERS['bob']}".encode())),
    "another mechanism": (shake("PLAIN"), say(GOOD), *scram()[:2]),
    "a wrong password": (shake("PLAIN"), say(GOOD), shake("PLAIN"), say(BAD)),
    "a mechanism nobody has": (shake("PLAIN"), say(GOOD), shake("GSSAPI")),
    "metadata between": (shake("PLAIN"), say(GOOD), shake("PLAIN"), METADATA),
    "a token without a handshake": (shake("PLAIN"), say(GOOD), say(GOOD), METADATA),
    "scram": (*scram(), *scram(), METADATA),
    "scram, wrong": (*scram(), *scram(password="wrong")),
    "v0": (shake("PLAIN"), say(GOOD, 0), METADATA),
    "bare": (shake("PLAIN", 0), bare(GOOD), METADATA),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Locked, Locked]]:
    require("java", "mvn")
    with (
        LockedKafka(tmp_path_factory.mktemp("kafka")) as kafka,
        LockedKgroup(tmp_path_factory.mktemp("kgroup")) as ours,
    ):
        yield kafka, ours


@pytest.fixture(scope="module")
def both_renewing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Locked, Locked]]:
    """The same with sessions of a minute."""
    require("java", "mvn")
    sessions = {"connections.max.reauth.ms": "60000"}
    with (
        LockedKafka(tmp_path_factory.mktemp("kafka"), sessions) as kafka,
        LockedKgroup(tmp_path_factory.mktemp("kgroup"), sessions) as ours,
    ):
        yield kafka, ours


@pytest.mark.parametrize("name", DIALOGUES)
def test_the_same_is_heard_at_both(both: tuple[Locked, Locked], name: str) -> None:
    kafka, ours = both
    assert play(ours, "SASL_PLAINTEXT", DIALOGUES[name]) == play(kafka, "SASL_PLAINTEXT", DIALOGUES[name])


@pytest.mark.parametrize("name", AGAIN)
def test_the_same_is_heard_in_a_session(both_renewing: tuple[Locked, Locked], name: str) -> None:
    """KIP-368."""
    kafka, ours = both_renewing
    assert play(ours, "SASL_PLAINTEXT", AGAIN[name]) == play(kafka, "SASL_PLAINTEXT", AGAIN[name])


@pytest.mark.parametrize("lines", [(shake("PLAIN"), say(GOOD), METADATA), (say(GOOD, 0), VERSIONS)])
def test_sasl_where_there_is_none(both: tuple[Locked, Locked], lines: tuple[Said, ...]) -> None:
    kafka, ours = both
    assert play(ours, "PLAINTEXT", lines) == play(kafka, "PLAINTEXT", lines)


def test_tokens_are_judged_alike(both: tuple[Locked, Locked]) -> None:
    """Each server has a key of its own; the tokens say the same."""
    import time

    now = int(time.time())
    claims: list[dict[str, object]] = [
        {},
        {"aud": "others"},
        {"aud": ["others", "brokers"]},
        {"exp": now - 10},
        {"exp": now - 100},
        {"iat": now + 10_000},
        {"nbf": now + 10_000},
        {"nbf": now + 10},
        {"sub": ""},
        {"sub": 7},
        {"scope": "a b"},
        {"scope": ["a", "b"]},
        {"exp": "soon"},
        {"exp": now + 600.5},
        {"iat": "then"},
        {"iat": now + 100, "exp": now + 1000},
        {"iat": now - 100, "exp": now - 10},
        {"nbf": now + 20, "exp": now + 10},
    ]

    def judged(server: Locked) -> dict[str, object]:
        issue = server.tokens.issue
        lines = {str(each): bearer(issue("alice", **each)) for each in claims}  # type: ignore[arg-type]
        lines |= {name: bearer(issue("alice"), f"a={name}") for name in ("alice", "bob")}
        return {
            name: play(server, "SASL_PLAINTEXT", (shake("OAUTHBEARER"), say(each)))[-1]
            for name, each in lines.items()
        }

    kafka, ours = both
    theirs, found = judged(kafka), judged(ours)
    assert {name: (told, theirs[name]) for name, told in found.items() if told != theirs[name]} == {}
    assert theirs["{}"] == {
        "answer": "SaslAuthenticateResponse",
        "error_code": 0,
        "error_message": "",
        "token": False,
        "session": True,
    }
