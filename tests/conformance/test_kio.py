"""Every API, version and direction against kio, generated from Kafka's own message specs."""

import datetime
import io
import uuid
from dataclasses import fields
from typing import Any

import kio.index
import pytest
from hypothesis import given
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32

from kgroup.protocol.headers import RequestHeader
from kgroup.protocol.registry import KAFKA_APIS, header_versions
from tests.conformance.message_values import IN_KIO, Case, kio_cases, profile, values
from tests.sampled import FULL

RENAMED = {"acceptable_recovery_lag": "acceptable_recovery_lag_legacy"}
"""Kio's name of a field → Kafka's since: another field has the old name there."""


def kio_class(case: Case) -> type[Any]:
    load = (
        kio.index.load_request_schema
        if case.cls.__name__.endswith("Request")
        else kio.index.load_response_schema
    )
    return load(case.cls.API, case.version)


def plain(value: Any) -> Any:
    """A kio value as we would hold it."""
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(
            milliseconds=1
        )
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value


def assert_same(ours: Any, theirs: Any, version: int) -> None:
    """Every field kio's entity has, by name, holds what ours holds."""
    for field in fields(theirs):
        got = getattr(theirs, field.name)
        name = RENAMED.get(field.name) or (field.name if hasattr(ours, field.name) else field.name + "_ms")
        want = getattr(ours, name)
        if got is None and want in (bytes(16), -1):
            continue
        if isinstance(want, tuple) and want and not isinstance(want[0], int | str | bytes):
            assert len(want) == len(got)
            for one, other in zip(want, got, strict=True):
                assert_same(one, other, version)
        elif hasattr(want, "READERS"):
            assert_same(want, got, version)
        else:
            assert plain(got) == want, name


@pytest.mark.parametrize("case", kio_cases(), ids=str)
def test_bytes_and_fields_are_those_of_kio(case: Case) -> None:
    theirs = kio_class(case)
    read, write = entity_reader(theirs), entity_writer(theirs)

    @profile(10 if FULL else 5)
    @given(values(case.cls, case.version, kio=True))
    def check(ours: Any) -> None:
        data = ours.encode(case.version)
        assert case.cls.decode(data, case.version) == ours
        entity, size = read(data, 0)
        assert size == len(data)
        assert_same(ours, entity, case.version)
        out = io.BytesIO()
        write(out, entity)
        assert out.getvalue() == data

    check()


@pytest.mark.parametrize("key", KAFKA_APIS)
def test_request_headers_are_those_of_kio(key: int) -> None:
    for version in IN_KIO.versions(key):
        theirs = kio.index.load_request_schema(key, version).__header_schema__
        assert theirs.__version__ == header_versions(key, version)[0]
        for client_id in (None, "", "kgroup-é"):
            ours = RequestHeader(key, version, -7, client_id)
            out = io.BytesIO()
            entity_writer(theirs)(
                out,
                theirs(
                    request_api_key=i16(key),
                    request_api_version=i16(version),
                    correlation_id=i32(-7),
                    client_id=client_id,
                ),
            )
            assert ours.encode() == out.getvalue()
            assert RequestHeader.decode(out.getvalue()) == (ours, len(out.getvalue()))


@pytest.mark.parametrize("key", KAFKA_APIS)
def test_response_header_versions_are_those_of_kio(key: int) -> None:
    for version in IN_KIO.versions(key):
        theirs = kio.index.load_response_schema(key, version).__header_schema__
        assert theirs.__version__ == header_versions(key, version)[1]
