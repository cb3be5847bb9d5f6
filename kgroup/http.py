"""HTTP answers of limited size, read within a deadline, which no server can exceed.

It imports httpx, which is slow: import it where it is used.
"""

import time
from typing import Any

import httpx

LARGEST = 1 << 20
_OF_THE_TRANSFER = ("content-encoding", "content-length", "transfer-encoding")


class TooLarge(httpx.ReadError):
    """An answer that is larger than allowed."""


def ask(
    client: httpx.Client, method: str, url: str, *, within_s: float, largest: int = LARGEST, **how: Any
) -> httpx.Response:
    """Return an answer with its whole body, decoded; `how` is httpx's own.

    Raise TooLarge beyond `largest` bytes, httpx.ReadTimeout when the body has not ended after `within_s`
    seconds, and what httpx raises.
    """
    deadline = time.monotonic() + within_s
    how.setdefault("timeout", within_s)
    with client.stream(method, url, **how) as answer:
        body = bytearray()
        for part in answer.iter_bytes():
            if body and time.monotonic() > deadline:
                raise httpx.ReadTimeout("its answer does not end", request=answer.request)
            body += part
            if len(body) > largest:
                raise TooLarge(f"its answer is longer than {largest} bytes", request=answer.request)
        headers = {name: value for name, value in answer.headers.items() if name not in _OF_THE_TRANSFER}
        return httpx.Response(
            answer.status_code, headers=headers, content=bytes(body), request=answer.request
        )
