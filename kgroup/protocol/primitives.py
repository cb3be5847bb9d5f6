"""The few byte-level pieces the generated codecs call."""

from kgroup.errors import DecodeError

MAX_STRING = 0x7FFF  # Kafka keeps to it also where the length travels as a varint


def append_uvarint(out: bytearray, value: int) -> None:
    """Append an unsigned varint (protobuf form), as compact lengths and tags use it."""
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def read_uvarint(buf: bytes, pos: int) -> tuple[int, int]:
    """Return the unsigned varint at `pos` and the position behind it; DecodeError past 5 bytes."""
    value = shift = 0
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 28:
            raise DecodeError(f"a varint at byte {pos} is longer than 5 bytes")
    if value > 0xFFFFFFFF:
        raise DecodeError(f"a varint before byte {pos} does not fit 32 bits")
    return value, pos


def append_varint(out: bytearray, value: int) -> None:
    """Append a signed (zigzag) varint, as records inside a batch use it."""
    append_uvarint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def read_varint(buf: bytes, pos: int) -> tuple[int, int]:
    """Return the signed (zigzag) varint at `pos`, up to 64 bits, and the position behind it."""
    value = shift = 0
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise DecodeError(f"a varint at byte {pos} is longer than 10 bytes")
    return (value >> 1) ^ -(value & 1), pos


def short(pos: int, size: int, end: int) -> DecodeError:
    """Return the error for a length that points past the end of the data, or is negative."""
    if size < 0:
        return DecodeError(f"negative length {size} before byte {pos}")
    return DecodeError(f"{size} bytes wanted at byte {pos}, {end - pos} left")


def long(pos: int, size: int) -> DecodeError:
    """Return the error for a string above the length Kafka allows."""
    return DecodeError(f"a string of {size} bytes at byte {pos}, {MAX_STRING} are allowed")


def many(pos: int, most: int) -> DecodeError:
    """Return the error for more items than one message may have."""
    return DecodeError(f"more than {most} items before byte {pos}")
