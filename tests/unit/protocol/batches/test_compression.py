"""Every codec round-trips, stays inside its bound, and answers garbage with DecodeError only."""

import contextlib
import gzip
import random

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgroup.errors import DecodeError
from kgroup.protocol.compression import Compression, compress, decompress

# The same examples on every run, however slow the machine.
steady = settings(deadline=None, derandomize=True)

CODECS = list(Compression)
COMPRESSING = CODECS[1:]
MIXED = random.Random(7).randbytes(100_000) + b"a" * 200_000


@steady
@given(data=st.binary(max_size=2000), codec=st.sampled_from(CODECS))
def test_round_trip(data: bytes, codec: Compression) -> None:
    assert decompress(compress(data, codec), codec) == data


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip_over_many_blocks(codec: Compression) -> None:
    assert decompress(compress(MIXED, codec), codec) == MIXED


@pytest.mark.parametrize("codec", COMPRESSING)
def test_the_bound_is_exact_and_a_bomb_is_refused(codec: Compression) -> None:
    bomb = compress(bytes(3_000_000), codec)
    assert len(decompress(bomb, codec, limit=3_000_000)) == 3_000_000
    with pytest.raises(DecodeError, match="more than 2999999 bytes"):
        decompress(bomb, codec, limit=2_999_999)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_every_cut_is_noticed_or_yields_a_prefix(codec: Compression) -> None:
    data = random.Random(3).randbytes(300) + b"b" * 300
    whole = compress(data, codec)
    for cut in range(1, len(whole)):
        try:
            found = decompress(whole[:cut], codec)
        except DecodeError:
            continue
        # Only a snappy stream has no end mark: cut between blocks, it is a shorter stream.
        assert codec is Compression.SNAPPY
        assert data.startswith(found)


@steady
@given(data=st.binary(max_size=200), codec=st.integers(0, 7))
def test_garbage_raises_only_decode_errors(data: bytes, codec: int) -> None:
    with contextlib.suppress(DecodeError):
        decompress(data, codec, limit=1 << 20)


@steady
@given(data=st.data(), codec=st.sampled_from(COMPRESSING))
def test_flipped_bytes_raise_only_decode_errors(data: st.DataObject, codec: Compression) -> None:
    damaged = bytearray(compress(b"hello, " * 40, codec))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(DecodeError):
        decompress(bytes(damaged), codec, limit=1 << 20)


def test_snappy_as_other_clients_write_it() -> None:
    """Raw blocks (Go clients) and concatenated xerial streams are read too."""
    raw = bytes(cramjam.snappy.compress_raw(b"raw block"))
    assert decompress(raw, Compression.SNAPPY) == b"raw block"
    twice = compress(b"one,", Compression.SNAPPY) + compress(b"two", Compression.SNAPPY)
    assert decompress(twice, Compression.SNAPPY) == b"one,two"


def test_gzip_as_the_standard_library_writes_it() -> None:
    assert decompress(gzip.compress(MIXED), Compression.GZIP) == MIXED
    assert gzip.decompress(compress(MIXED, Compression.GZIP)) == MIXED


def test_lz4_blocks_are_independent() -> None:
    """Kafka's Java reader refuses linked blocks: bit 5 of the frame's flags."""
    assert compress(MIXED, Compression.LZ4)[4] & 0x20


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(DecodeError, match="unknown compression codec 6"):
        decompress(b"x", 6)
