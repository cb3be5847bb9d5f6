"""Request headers v1 and v2, response headers v0 and v1, and whole requests and responses as frames.

Header 2 and header 1 are the flexible ones; still, a client id is never a compact string, so that a broker
can read it from a request whose version it does not know (KIP-482).
"""

import struct

from kgroup.domain import value
from kgroup.errors import ConfigError, DecodeError
from kgroup.protocol.codec import Message
from kgroup.protocol.primitives import read_uvarint, short
from kgroup.protocol.registry import header_versions, name_of, request_class, response_class_at

MAX_TAGS = 1 << 16

_LENGTH = struct.Struct(">i")
_REQUEST = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")


@value
class RequestHeader:
    """What leads every request; the answer repeats `correlation_id`."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None

    def encode(self) -> bytes:
        """Return the header's bytes, in the version that goes with the API version."""
        name = None if self.client_id is None else self.client_id.encode()
        size = -1 if name is None else len(name)
        out = _REQUEST.pack(self.api_key, self.api_version, self.correlation_id, size) + (name or b"")
        return out + b"\0" if header_versions(self.api_key, self.api_version)[0] == 2 else out

    @classmethod
    def decode(cls, data: bytes) -> tuple["RequestHeader", int]:
        """Return the header at the start of a request, and the position of the body.

        Reads API versions that are not served, as the answer to them needs the correlation id; raises
        only DecodeError, also for an API key without messages.
        """
        try:
            key, version, correlation, size = _REQUEST.unpack_from(data)
            pos = _REQUEST.size
            client_id = None
            if size >= 0:
                if size > len(data) - pos:
                    raise short(pos, size, len(data))
                client_id = data[pos : pos + size].decode()
                pos += size
            elif size != -1:
                raise short(pos, size, len(data))
            if header_versions(key, version)[0] == 2:
                pos = skip_tags(data, pos)
        except (struct.error, IndexError):
            raise DecodeError(f"request header: cut short at {len(data)} bytes") from None
        except UnicodeDecodeError as error:
            raise DecodeError(f"request header: the client id is not UTF-8: {error.reason}") from None
        except DecodeError as error:
            raise DecodeError(f"request header: {error.message}") from None
        return cls(key, version, correlation, client_id), pos


def unsendable(request: Message, error: ValueError) -> ConfigError:
    """Return the error for a request whose values the protocol has no room for, from the codec's."""
    return ConfigError(
        f"{name_of(request.API)} cannot be sent: {error}", "a name has at most 32767 bytes of UTF-8"
    )


def encode_request(request: Message, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return a request as it goes over the wire: length, header, body."""
    out = bytearray(4)
    out += RequestHeader(request.API, version, correlation_id, client_id).encode()
    request.encode_into(out, version)
    _LENGTH.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def decode_request(frame: bytes) -> tuple[RequestHeader, Message]:
    """Return the header and the request in a frame; DecodeError also for a version that is not served."""
    header, pos = RequestHeader.decode(frame)
    return header, decode_body(request_class(header.api_key), frame, pos, header.api_version)


def encode_response(response: Message, version: int, correlation_id: int) -> bytes:
    """Return a response as it goes over the wire: length, header, body."""
    out = bytearray(4)
    out += _CORRELATION.pack(correlation_id)
    if header_versions(response.API, version)[1] == 1:
        out.append(0)
    response.encode_into(out, version)
    _LENGTH.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def correlation_id_of(frame: bytes) -> int:
    """Return the correlation id a response begins with, which identifies its request."""
    if len(frame) < 4:
        raise DecodeError(f"response header: cut short at {len(frame)} bytes")
    correlation: int = _CORRELATION.unpack_from(frame)[0]
    return correlation


def decode_response(frame: bytes, api_key: int, version: int) -> tuple[int, Message]:
    """Return the correlation id and the response in a frame that answers a request of `api_key` in `version`.

    An ApiVersions answer may come in version 0 though a later one was asked for (KIP-511): who sends the
    request looks at its error code, the first two bytes of the body, and asks again with version 0.
    """
    correlation = correlation_id_of(frame)
    pos = 4
    if header_versions(api_key, version)[1] == 1:
        try:
            pos = skip_tags(frame, pos)
        except IndexError:
            raise DecodeError(f"response header: cut short at {len(frame)} bytes") from None
    return correlation, decode_body(response_class_at(api_key, version), frame, pos, version)


def decode_body(cls: type[Message], frame: bytes, pos: int, version: int) -> Message:
    """Return the message that fills a frame from `pos` to its end."""
    body, end = cls.decode_prefix(frame, pos, version)
    if end != len(frame):
        raise DecodeError(f"{cls.__name__} v{version} ends at byte {end} of {len(frame)}")
    return body


def skip_tags(data: bytes, pos: int, most: int = MAX_TAGS) -> int:
    """Return the position behind a tag section none of which is known; raises DecodeError or IndexError."""
    count, pos = read_uvarint(data, pos)
    if count > most:
        raise DecodeError(f"{count} tagged fields before byte {pos}, {most} are allowed")
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        if size > len(data) - pos:
            raise short(pos, size, len(data))
        pos += size
    return pos
