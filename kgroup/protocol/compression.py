"""The compression codecs a record batch may name, in the framings Kafka's Java clients use.

gzip, LZ4 frames with independent blocks (Java refuses linked ones), zstd frames, and snappy in the
xerial stream format of snappy-java; raw snappy blocks are read too, as some clients write them.
"""

from enum import IntEnum
from struct import Struct
from types import ModuleType
from typing import Any

from kgroup.errors import DecodeError

MAX_DECOMPRESSED_BYTES = 128 << 20
_FIRST_GUESS_BYTES = 64 << 10

_XERIAL_HEADER = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2
_XERIAL_MAGIC = _XERIAL_HEADER[:8]
_XERIAL_BLOCK_BYTES = 32 << 10
_BLOCK_LENGTH = Struct(">i")
_ZSTD_LEVEL = 3


class Compression(IntEnum):
    """Bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(data: bytes, codec: Compression) -> bytes:
    """Return `data` as a stream that any Kafka client reads under this codec."""
    if codec is Compression.NONE:
        return data
    import cramjam

    if codec is Compression.GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec is Compression.SNAPPY:
        parts = [_XERIAL_HEADER]
        for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
            parts += (_BLOCK_LENGTH.pack(len(block)), block)
        return b"".join(parts)
    if codec is Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))
    stream = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
    stream.compress(data)
    return bytes(stream.finish())


def decompress(data: bytes, codec: int, limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """Return what `data` holds under this codec, never more than `limit` bytes.

    Raises DecodeError for an unknown codec, for corrupt or cut data, and past the limit.
    """
    if codec == Compression.NONE:
        return data
    import cramjam

    try:
        if codec == Compression.GZIP:
            return _inflate(cramjam.gzip, data, limit)
        if codec == Compression.SNAPPY:
            return _decompress_snappy(data, limit)
        if codec == Compression.LZ4:
            return _inflate(cramjam.lz4, data, limit)
        if codec == Compression.ZSTD:
            return _inflate(cramjam.zstd, data, limit)
    except cramjam.DecompressionError as error:
        raise DecodeError(f"{Compression(codec).name.lower()} data does not decompress: {error}") from None
    raise DecodeError(f"unknown compression codec {codec}")


def _inflate(codec: ModuleType, data: bytes, limit: int) -> bytes:
    """Decompress into a buffer that grows up to the limit: the frame's own size claim is not trusted."""
    import cramjam

    size = min(limit, max(_FIRST_GUESS_BYTES, 4 * len(data)))
    while True:
        out = bytearray(size)
        try:
            written = codec.decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise
            if size >= limit:
                raise _too_large(limit) from None
            size = min(limit, size * 4)
        else:
            return bytes(memoryview(out)[:written])


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, limit, limit)
    parts: list[bytes] = []
    position, end, left = 0, len(data), limit
    while position < end:
        # Streams may be concatenated; snappy-java accepts a header between blocks.
        if data.startswith(_XERIAL_MAGIC, position):
            position += len(_XERIAL_HEADER)
            if position > end:
                raise DecodeError("snappy stream ends inside its header")
            continue
        if end - position < 4:
            raise DecodeError("snappy stream ends inside a block length")
        (size,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += 4
        if not 0 < size <= end - position:
            raise DecodeError(f"snappy block of {size} bytes at byte {position}, {end - position} left")
        parts.append(_snappy_block(data[position : position + size], left, limit))
        left -= len(parts[-1])
        position += size
    return b"".join(parts)


def _snappy_block(data: bytes, left: int, limit: int) -> bytes:
    import cramjam

    snappy: Any = cramjam.snappy
    if snappy.decompress_raw_len(data) > left:
        raise _too_large(limit)
    return bytes(snappy.decompress_raw(data))


def _too_large(limit: int) -> DecodeError:
    return DecodeError(
        f"the data decompresses to more than {limit} bytes",
        hint="a batch this large is corrupt, or was made to exhaust memory",
    )
