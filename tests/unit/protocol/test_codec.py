"""The codec engine on small messages of its own: presence, nulls, tags, limits."""

from typing import Annotated

import pytest

from kgroup.errors import DecodeError
from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import (
    Absent,
    Bool,
    Bytes,
    Int8,
    Int32,
    NullableSince,
    Since,
    String,
    Tagged,
    Until,
)


class Part(Struct):
    number: Int32 = 0
    extra: Annotated[Int8, Since(1), Tagged(0)] = -1


class Sample(Message, versions=range(3), flexible=1):
    name: Annotated[String | None, NullableSince(1)] = ""
    old: Annotated[Bool, Until(0)] = False
    part: Annotated[Part | None, Since(2)] = None
    parts: tuple[Part, ...] = ()
    blob: Annotated[Bytes | None, Since(1), Tagged(3)] = None
    other: Annotated[Part | None, Since(1), Tagged(1), Absent(Part())] = None


class Empty(Message, versions=range(2), flexible=1):
    pass


def test_a_message_without_fields() -> None:
    assert (Empty().encode(0), Empty().encode(1)) == (b"", b"\0")
    assert Empty.decode(b"", 0) == Empty.decode(b"\1\5\1x", 1) == Empty()


def test_what_is_only_written_has_no_reader_made() -> None:
    class Sent(Message, versions=range(1)):
        number: Int32 = 0

    assert Sent(number=1).encode(0) == b"\0\0\0\1"
    assert (list(Sent.WRITERS), list(Sent.READERS)) == ([0], [])
    assert Sent.decode(b"\0\0\0\2", 0).number == 2
    assert (list(Sent.WRITERS), list(Sent.READERS)) == ([0], [0])


def test_a_null_before_its_version_is_written_as_empty_and_refused_when_read() -> None:
    assert Sample(name=None).encode(0)[:2] == b"\0\0"
    with pytest.raises(DecodeError, match="Sample v0: negative length -1"):
        Sample.decode(b"\xff\xff\0\0\0\0\0", 0)
    assert Sample.decode(Sample(name=None).encode(1), 1).name is None


def test_nullable_structs() -> None:
    for part in (None, Part(number=7, extra=3)):
        assert Sample.decode(Sample(part=part).encode(2), 2).part == part
    assert Sample(part=None).encode(2)[1:2] == b"\xff"
    assert Sample.decode(b"\1\x80\1\0", 2).part is None  # any negative lead means null


def test_tags_are_written_in_order_and_only_when_they_differ_from_what_absence_means() -> None:
    assert Sample(other=Part()).encode(1) == b"\1\1\0"
    assert Sample(other=None, blob=b"ab").encode(1) == b"\1\1" + b"\2" + b"\1\1\0" + b"\3\3\3ab"
    assert Sample.decode(b"\1\1\0", 1).other == Part()


def test_unknown_tags_are_skipped_and_damaged_ones_refused() -> None:
    assert Sample.decode(b"\1\1" + b"\1\x09\2xy", 1) == Sample(other=Part())
    with pytest.raises(DecodeError, match="9 bytes wanted"):
        Sample.decode(b"\1\1" + b"\1\x09\x09xy", 1)
    with pytest.raises(DecodeError, match="wrong size"):
        Sample.decode(b"\1\1" + b"\1\3\4\3abc", 1)


def test_lengths_of_127_and_more_take_two_bytes() -> None:
    for size in (125, 126, 127, 128, 16382, 16383, 32767):
        data = Sample(name="x" * size).encode(1)
        assert Sample.decode(data, 1).name == "x" * size


def test_strings_end_at_32767_bytes_in_every_version() -> None:
    for version in (0, 1):
        with pytest.raises(ValueError, match="string|format"):
            Sample(name="x" * 32768).encode(version)
    with pytest.raises(DecodeError, match="32768 bytes"):
        Sample.decode(b"\x81\x80\2" + b"x" * 32768 + b"\1\0", 1)


def test_numbers_that_do_not_fit_are_a_value_error() -> None:
    with pytest.raises(ValueError, match="Sample v0"):
        Sample(parts=(Part(number=1 << 31),)).encode(0)


def test_versions_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="no version 3"):
        Sample().encode(3)
    with pytest.raises(DecodeError, match="no version -1"):
        Sample.decode(b"", -1)


def test_huge_counts_are_refused_before_memory_is_taken() -> None:
    with pytest.raises(DecodeError, match="wanted at byte"):
        Sample.decode(b"\0\0\0\x7f\xff\xff\xff", 0)


def test_a_part_of_a_longer_buffer() -> None:
    data = b"head" + Sample(name="n").encode(1) + b"tail"
    found, end = Sample.decode_prefix(data, 4, 1)
    assert (found.name, data[end:]) == ("n", b"tail")


class Row(Struct):
    number: Int32 = 0
    note: String | None = ""
    later: Annotated[Int8, Since(2)] = 7


class Rows(Message, versions=range(3), flexible=1):
    rows: tuple[Row, ...] = ()
    after: Int8 = 0


@pytest.mark.parametrize("odd", [None, 0, 3, 8])
@pytest.mark.parametrize("note", ["", "m", None])
@pytest.mark.parametrize("version", Rows.VERSIONS)
def test_rows_of_an_array_are_read_alike_or_not(version: int, note: str | None, odd: int | None):
    rows = tuple(Row(number=n - 4, note=note if n == odd else "", later=7) for n in range(9))
    message = Rows(rows=rows, after=5)
    data = message.encode(version)
    assert Rows.decode(data, version) == message
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            Rows.decode(data[:size], version)


def test_a_row_with_an_unknown_tag_is_read_among_others_without():
    first, second = (Rows(rows=(Row(number=n),) * 2).encode(1)[1:-2] for n in (1, 2))
    # A tag 9 of one byte behind the first row of the second pair.
    tagged = second[:5] + b"\x01\x09\x01\xff" + second[6:]
    rows = Rows.decode(b"\x05" + first + tagged + b"\x00\x00", 1).rows
    assert [row.number for row in rows] == [1, 1, 2, 2]
