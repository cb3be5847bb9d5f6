"""Answers are read to a limit of bytes and time, whatever their server sends."""

from collections.abc import Iterator

import httpx
import pytest

from kgroup.http import TooLarge, ask


class Counted(httpx.SyncByteStream):
    """A body that does not end, and how much of it was read."""

    def __init__(self) -> None:
        self.sent = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.sent += 1 << 16
            yield bytes(1 << 16)


def client(stream: httpx.SyncByteStream, **headers: str) -> httpx.Client:
    return httpx.Client(
        transport=httpx.MockTransport(lambda _: httpx.Response(200, headers=headers, stream=stream))
    )


def test_an_answer_without_end_is_left_at_the_limit() -> None:
    body = Counted()
    with pytest.raises(TooLarge, match="longer than 100000 bytes"):
        ask(client(body), "GET", "http://h/", within_s=60, largest=100_000)
    assert body.sent == 2 << 16


def test_an_answer_that_takes_too_long_is_left() -> None:
    with pytest.raises(httpx.ReadTimeout):
        ask(client(Counted()), "GET", "http://h/", within_s=0, timeout=5)


def test_a_packed_answer_is_limited_by_what_it_unpacks_to() -> None:
    import gzip

    packed = gzip.compress(bytes(1 << 20))
    answer = httpx.Response(200, headers={"content-encoding": "gzip"}, content=packed)
    with (
        httpx.Client(transport=httpx.MockTransport(lambda _: answer)) as asking,
        pytest.raises(TooLarge),
    ):
        ask(asking, "GET", "http://h/", within_s=60, largest=1 << 19)


def test_what_fits_is_handed_on_unpacked() -> None:
    import gzip

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(201, headers={"content-encoding": "gzip"}, content=gzip.compress(b'{"a":1}'))

    with httpx.Client(transport=httpx.MockTransport(answer)) as asking:
        told = ask(asking, "POST", "http://h/", within_s=60, content=b"x")
    assert (told.status_code, told.json(), told.is_success) == (201, {"a": 1}, True)
