"""One connection to a broker without its socket: bytes in, messages out, and the other way round.

It numbers requests, matches answers, and knows which versions the broker serves (KIP-511, KIP-482).
"""

from collections import deque
from collections.abc import Iterator

from kgroup.errors import BrokerRefused, DecodeError, ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.frame import FrameBuffer
from kgroup.protocol.headers import (
    correlation_id_of,
    decode_body,
    decode_response,
    encode_request,
    unsendable,
)
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.registry import name_of
from kgroup.protocol.releases import first_release
from kgroup.version import __version__

API_VERSIONS = ApiVersionsRequest.API
FIND_COORDINATOR, FETCH_SNAPSHOT = 10, 59
# Version 4 only adds features kgroup does not read, and costs a round trip with brokers before 4.0.
HELLO_VERSION = 3


class Connection:
    """The client's side of one connection; `peer` is the broker's name in errors."""

    def __init__(self, client_id: str, peer: str) -> None:
        self.peer = peer
        self.served: dict[int, range] = {}
        self._client_id = client_id
        self._frames = FrameBuffer()
        self._pending: deque[tuple[int, int, int]] = deque()
        self._next_correlation = 0
        self._heard = b""

    def hello(self, version: int = HELLO_VERSION) -> bytes:
        """Return the first bytes: ask what the broker serves."""
        request = ApiVersionsRequest(client_software_name="kgroup", client_software_version=__version__)
        return self.send(request, version)

    def greeted(self, answer: Message) -> bytes | None:
        """Read the answer to `hello`; return the bytes to send if an older version must be asked for.

        BrokerRefused when the broker answers with any other error.
        """
        assert isinstance(answer, ApiVersionsResponse)
        # A range that begins below 0 or ends before it begins is not served.
        listed = {
            a.api_key: range(a.min_version, a.max_version + 1)
            for a in answer.api_keys
            if 0 <= a.min_version <= a.max_version
        }
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and not self.served:
            known = listed.get(API_VERSIONS, range(1))
            self.served = {API_VERSIONS: known}
            return self.hello(min(known[-1], HELLO_VERSION - 1))
        if answer.error_code:
            raise BrokerRefused(
                answer.error_code, f"{self.peer} refuses ApiVersions: {ErrorCode.name_of(answer.error_code)}"
            )
        self.served = listed
        return None

    def assume_oldest(self) -> None:
        """Assume that the broker serves what all of Kafka 0.8.2 to 3.9 do, and ask it for no more."""
        self.served = dict(_SERVED_BY_ALL)

    def pick_version(self, request: Message, lowest: int = 0, highest: int | None = None) -> int:
        """Return the highest version of the request that both sides have within the limits.

        BrokerRefused with UNSUPPORTED_VERSION says what the broker serves and what was needed.
        """
        ours = type(request).VERSIONS
        low = max(ours[0], lowest)
        high = ours[-1] if highest is None else min(ours[-1], highest)
        theirs = self.served.get(request.API)
        if theirs is not None and max(low, theirs[0]) <= min(high, theirs[-1]):
            return min(high, theirs[-1])
        name = name_of(request.API)
        has = "does not serve " + name if theirs is None else f"serves {name} {theirs[0]}-{theirs[-1]}"

        too_old = theirs is None or theirs[-1] < low
        release = first_release(request.API, low) if too_old else None
        hint = "the broker is too old or too new for this; see kgroup docs protocol-coverage"
        if release:
            hint = f"Kafka {release} and later serve it"
        if self.is_controller:
            has, hint = f"is a controller's port: it {has}", "name the port of a broker"
        raise BrokerRefused(
            ErrorCode.UNSUPPORTED_VERSION, f"{self.peer} {has}, kgroup needs {low}-{high}", hint=hint
        )

    @property
    def is_controller(self) -> bool:
        """Whether the peer serves a KRaft quorum's own API, and no records."""
        return FETCH_SNAPSHOT in self.served and FIND_COORDINATOR not in self.served

    def send(self, request: Message, version: int) -> bytes:
        """Return the bytes of a request; `receive` returns its answer behind those before it."""
        correlation = self._next_correlation
        try:
            data = encode_request(request, version, correlation, self._client_id)
        except ValueError as error:
            raise unsendable(request, error) from None
        self._next_correlation = (correlation + 1) & 0x7FFFFFFF
        self._pending.append((correlation, request.API, version))
        return data

    def receive(self, data: bytes) -> Iterator[Message]:
        """Yield the answers that these bytes complete, in order.

        DecodeError, naming the peer, for bytes that are not the answer awaited; nothing read from the
        connection after that can be trusted.
        """
        if len(self._heard) < 4:
            self._heard += data[:4]
        try:
            for frame in self._frames.feed(data):
                yield self._answer(frame)
        except DecodeError as error:
            other = _HTTP if self._heard == b"HTTP" else ""
            guess = _TLS if self._heard[:2] == b"\x15\x03" else other
            raise DecodeError(f"{self.peer}: {guess or error.message}", _HINTS.get(guess)) from None

    def _answer(self, frame: bytes) -> Message:
        if not self._pending:
            raise DecodeError("an answer to no request")
        correlation, api_key, version = self._pending.popleft()
        got = correlation_id_of(frame)
        if got != correlation:
            raise DecodeError(f"correlation id {got} where {correlation} was expected")
        if api_key == API_VERSIONS and frame[4:6] == _UNSUPPORTED:
            return decode_body(ApiVersionsResponse, frame, 4, 0)
        return decode_response(frame, api_key, version)[1]


# ListOffsets, Metadata, OffsetFetch (1: committed offsets kept in Kafka), FindCoordinator.
_SERVED_BY_ALL = {2: range(1), 3: range(1), 9: range(1, 2), 10: range(1)}
_UNSUPPORTED = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
_TLS = "the answer is TLS, not plain Kafka"
_HTTP = "the answer is HTTP, not Kafka"
_HINTS = {
    _TLS: "set security.protocol to SSL or SASL_SSL",
    _HTTP: "this is a web server; check the port",
}
