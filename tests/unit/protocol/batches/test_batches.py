"""Record batches: round trips, Java's bytes, what corrupt data does, and kafka-python as an oracle."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from kgroup.errors import DecodeError
from kgroup.protocol.batches import (
    LogRecord,
    TransactionEnd,
    batches_in,
    encode_batch,
    end_marker_record,
    rebuild_batch,
    records_in,
    with_append_time,
    with_base_offset,
)
from kgroup.protocol.compression import Compression

# The same examples on every run, however slow the machine.
steady = settings(deadline=None, derandomize=True)

DATA = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3).map(tuple)
RECORDS = st.lists(
    st.builds(LogRecord, key=DATA, value=DATA, headers=HEADERS, timestamp_ms=st.integers(0, 1 << 45)),
    min_size=1,
    max_size=8,
)

# Made with kafka-clients 4.3.1 (MemoryRecords.withRecords): the same three records, one per codec.
JAVA_BATCHES = {
    Compression.NONE: (
        "000000000000000700000084ffffffff02d001a3430000000000020000018bcfe568000000018bcfe569f4ffffffffff"
        "ffffffffffffffffff0000000372000000026b6476767676767676767676767676767676767676767676767676767676"
        "76767676767676767676767676767676767676767676000e00e807020101002000cf0f04046b32000402680278026e01"
    ),
    Compression.GZIP: (
        "000000000000000700000069ffffffff0206d3b3fc0001000000020000018bcfe568000000018bcfe569f4ffffffffff"
        "ffffffffffffffffff000000031f8b08000000000000ff2b62606060ca4e29231930f031bc6067626464506038cfcfc2"
        "926dc4c0c294c154c194c70800e06422df53000000"
    ),
    Compression.SNAPPY: (
        "00000000000000070000006dffffffff027c47a2b00002000000020000018bcfe568000000018bcfe569f4ffffffffff"
        "ffffffffffffffffff0000000382534e4150505900000000010000000100000028531c72000000026b6476c201006400"
        "0e00e807020101002000cf0f04046b32000402680278026e01"
    ),
    Compression.LZ4: (
        "000000000000000700000068ffffffff02ce4ed1af0003000000020000018bcfe568000000018bcfe569f4ffffffffff"
        "ffffffffffffffffff0000000304224d18604082280000008f72000000026b647601001ef00b000e00e8070201010020"
        "00cf0f04046b32000402680278026e0100000000"
    ),
    Compression.ZSTD: (
        "000000000000000700000066ffffffff02eec24bc30004000000020000018bcfe568000000018bcfe569f4ffffffffff"
        "ffffffffffffffffff0000000328b52ffd00584c0100240272000000026b6476000e00e807020101002000cf0f04046b"
        "32000402680278026e01010046800b010000"
    ),
}
JAVA_RECORDS = [
    LogRecord(b"k", b"v" * 50, (), 1700000000000, 7),
    LogRecord(None, None, (), 1700000000500, 8),
    LogRecord(b"k2", b"", (("h", b"x"), ("n", None)), 1699999999000, 9),
]
# MemoryRecords.withEndTransactionMarker(9, 1700000000000, 3, 42, 5, COMMIT of coordinator epoch 8)
JAVA_MARKER = (
    "0000000000000009000000420000000302c37bb8eb0030000000000000018bcfe568000000018bcfe56800000000000000002a"
    "0005ffffffff000000012000000008000000010c00000000000800"
)


def numbered(records: list[LogRecord], base: int) -> list[LogRecord]:
    return [record._replace(offset=base + i) for i, record in enumerate(records)]


@steady
@given(records=RECORDS, base=st.integers(0, 1 << 50), codec=st.sampled_from(list(Compression)))
def test_round_trip(records: list[LogRecord], base: int, codec: Compression) -> None:
    raw = encode_batch(records, base_offset=base, compression=codec, leader_epoch=3)
    reader = batches_in(raw)
    batch = next(reader)
    assert batch.records == numbered(records, base)
    assert (batch.base_offset, batch.last_offset, batch.count) == (
        base,
        base + len(records) - 1,
        len(records),
    )
    assert (batch.compression, batch.partition_leader_epoch, batch.raw) == (codec, 3, raw)
    assert batch.max_timestamp == max(record.timestamp_ms for record in records)
    assert list(reader) == []
    assert reader.trailing_bytes == 0


@pytest.mark.parametrize("codec", list(Compression))
def test_java_batches_are_read(codec: Compression) -> None:
    batch = next(batches_in(bytes.fromhex(JAVA_BATCHES[codec])))
    assert batch.compression == codec
    assert batch.records == JAVA_RECORDS
    assert not (batch.transactional or batch.control or batch.log_append_time)


def test_our_uncompressed_bytes_are_javas() -> None:
    raw = encode_batch(JAVA_RECORDS, base_offset=7, leader_epoch=-1)
    assert raw.hex() == JAVA_BATCHES[Compression.NONE]


def test_a_transaction_marker_is_javas() -> None:
    raw = encode_batch(
        [end_marker_record(True, 8)],
        base_offset=9,
        leader_epoch=3,
        timestamp_ms=1700000000000,
        producer_id=42,
        producer_epoch=5,
        transactional=True,
        control=True,
    )
    assert raw.hex() == JAVA_MARKER
    batch = next(batches_in(raw))
    assert batch.control
    assert batch.end_marker == TransactionEnd(committed=True, coordinator_epoch=8)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (42, 5, -1)
    assert list(records_in([batch])) == []


def test_data_batches_carry_no_marker() -> None:
    assert next(batches_in(encode_batch([end_marker_record(False)]))).end_marker is None


def test_records_without_a_time_get_the_batch_time() -> None:
    raw = encode_batch([LogRecord(b"a", b"1"), LogRecord(b"b", b"2", timestamp_ms=900)], timestamp_ms=1000)
    assert [record.timestamp_ms for record in next(batches_in(raw)).records] == [1000, 900]


def test_an_empty_batch_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_batch([])


def test_placing_a_produced_batch_changes_offset_and_epoch_only() -> None:
    raw = encode_batch(JAVA_RECORDS, compression=Compression.LZ4, producer_id=5, base_sequence=0)
    placed = next(batches_in(with_base_offset(raw, 100, 12)))
    assert (placed.base_offset, placed.partition_leader_epoch) == (100, 12)
    assert placed.records == numbered(JAVA_RECORDS, 100)
    assert placed.raw[16:] == raw[16:]


def test_log_append_time_overrides_every_record() -> None:
    batch = next(batches_in(with_append_time(encode_batch(JAVA_RECORDS), 5000)))
    assert batch.log_append_time
    assert [record.timestamp_ms for record in batch.records] == [5000, 5000, 5000]
    assert DefaultRecordBatch(batch.raw).validate_crc()


@steady
@given(records=RECORDS, data=st.data(), codec=st.sampled_from(list(Compression)))
def test_a_rebuilt_batch_keeps_offsets_and_header(
    records: list[LogRecord], data: st.DataObject, codec: Compression
) -> None:
    raw = encode_batch(records, base_offset=50, compression=codec, producer_id=9, producer_epoch=1)
    batch = next(batches_in(raw))
    kept = [record for record in batch.records if data.draw(st.booleans())]
    horizon = data.draw(st.none() | st.integers(0, 1 << 45))
    rebuilt = next(batches_in(rebuild_batch(batch, kept, horizon)))
    assert rebuilt.records == kept
    assert (rebuilt.base_offset, rebuilt.last_offset) == (50, batch.last_offset)
    assert (rebuilt.producer_id, rebuilt.producer_epoch) == (9, 1)
    assert rebuilt.delete_horizon_ms == horizon


def test_a_partial_last_batch_is_told_apart_from_corruption() -> None:
    one, two = encode_batch(JAVA_RECORDS), encode_batch(JAVA_RECORDS, base_offset=3)
    for cut in range(len(two)):
        reader = batches_in(one + two[:cut])
        assert [batch.base_offset for batch in reader] == [0]
        assert (reader.position, reader.trailing_bytes) == (len(one), cut)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (16, 1, "byte 142 has magic 1"),
        (8, 0x80, "byte 142 claims a length of -"),
        (17, 0xAA, "byte 142 fails its checksum"),
        (70, 0xAA, "byte 142 fails its checksum"),
    ],
)
def test_corruption_names_the_position(at: int, value: int, message: str) -> None:
    one = encode_batch([LogRecord(b"k", b"v" * 71, timestamp_ms=0)])
    assert len(one) == 142
    damaged = bytearray(one + encode_batch(JAVA_RECORDS))
    damaged[len(one) + at] = value
    reader = batches_in(bytes(damaged))
    next(reader)
    with pytest.raises(DecodeError, match=message):
        next(reader)


@steady
@given(data=st.binary(max_size=300))
def test_garbage_raises_only_decode_errors(data: bytes) -> None:
    try:
        for batch in batches_in(data):
            assert batch.records is not None
    except DecodeError:
        pass


@steady
@given(body=st.binary(max_size=120), count=st.integers(-1, 20), codec=st.integers(0, 7), marker=st.booleans())
def test_garbage_behind_a_good_checksum_raises_only_decode_errors(
    body: bytes, count: int, codec: int, marker: bool
) -> None:
    """A client may send any bytes under a correct CRC-32C."""
    raw = bytearray(encode_batch([LogRecord(None, None)]))[:61] + body
    raw[8:12] = (len(raw) - 12).to_bytes(4, "big")
    raw[21:23] = (codec | (0x20 if marker else 0)).to_bytes(2, "big")
    raw[23:27] = (20).to_bytes(4, "big")
    raw[57:61] = count.to_bytes(4, "big", signed=True)
    sealed = next(batches_in(with_append_time(bytes(raw), 1)))
    for read in (lambda: sealed.records, lambda: sealed.end_marker):
        with contextlib.suppress(DecodeError):
            read()


ORACLE_CODECS = st.sampled_from([Compression.NONE, Compression.GZIP])


@steady
@given(records=RECORDS, codec=ORACLE_CODECS)
def test_kafka_python_reads_ours(records: list[LogRecord], codec: Compression) -> None:
    raw = encode_batch(records, base_offset=11, compression=codec, producer_id=7, transactional=True)
    theirs = DefaultRecordBatch(raw)
    assert theirs.validate_crc()
    assert theirs.is_transactional
    assert theirs.producer_id == 7
    read = [LogRecord(r.key, r.value, tuple(r.headers), r.timestamp, r.offset) for r in theirs]
    assert read == numbered(records, 11)


@steady
@given(records=RECORDS, codec=ORACLE_CODECS)
def test_we_read_kafka_pythons(records: list[LogRecord], codec: Compression) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for i, record in enumerate(records):
        builder.append(i, record.timestamp_ms, record.key, record.value, list(record.headers))
    raw = bytes(builder.build())
    assert next(batches_in(raw)).records == numbered(records, 0)
    if codec is Compression.NONE:
        # Theirs leaves the leader epoch at another default; it is outside the checksum.
        assert encode_batch(records)[16:] == raw[16:]
