"""Events posted to a web address: signed, in order, retried, and named where they did not arrive.

One thread posts one event at a time, so that no event overtakes another and a slow receiver delays no poll.
Headers and signature are those of Standard Webhooks, for which most languages have a library
(docs/webhooks.md).
"""

from __future__ import annotations

import hmac
import json
import random
import threading
import time
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

from kgroup.cli.env.invocation import Env
from kgroup.cli.env.secrets import notify_secret
from kgroup.client.retry import Backoff
from kgroup.domain import Document, count_of
from kgroup.errors import ConfigError
from kgroup.extras import require_extra

if TYPE_CHECKING:
    import httpx

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
SECRET_PREFIX = "whsec_"
_WORTH_ANOTHER_TRY = frozenset({408, 425, 429})
_LONGEST_RETRY_AFTER_S = 60.0
CLOSING_S = 10.0
"""How long the remaining events are posted when a command ends."""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """An event that, as far as is known, did not arrive, and why."""

    id: str
    event: Document
    why: str
    where: str

    @property
    def name(self) -> str:
        """The event's group, what happened, when, and the id under which it was posted."""
        return f"{self.event.get('group_id')} {self.event.get('event')} {self.event.get('time')} ({self.id})"

    @property
    def sentence(self) -> str:
        """One sentence for a person."""
        return f"not delivered to {self.where}: {self.name}: {self.why}"


@dataclass(frozen=True, slots=True)
class PostLimits:
    """The timeout of a try, the number and spacing of tries per event, and the length of the queue."""

    timeout_s: float = 5.0
    tries: int = 8
    backoff: Backoff = Backoff(first_s=0.5, longest_s=30.0)
    queue: int = 1000


@dataclass(frozen=True, slots=True)
class _Post:
    id: str
    event: Document
    body: bytes = field(repr=False)


class _Refused(Exception):
    """A try that failed; `again` where another may succeed, after `after_s` where the receiver says when."""

    def __init__(self, why: str, *, again: bool, after_s: float | None = None) -> None:
        super().__init__(why)
        self.again = again
        self.after_s = after_s


class Webhook:
    """A poster of events as JSON, each until accepted or given up; `lost` holds those given up, in order.

    `undelivered` is called with each event given up, and `settled` with the id of each that was accepted or
    refused for good, in order, in the thread that posts.
    """

    def __init__(
        self,
        url: str,
        secret: str | None,
        *,
        limits: PostLimits | None = None,
        undelivered: Callable[[Undelivered], None] = lambda lost: None,
        settled: Callable[[str], None] = lambda id_: None,
    ) -> None:
        self.where = shown(url)
        self.lost: list[Undelivered] = []
        self._url = url
        self._key = None if secret is None else key_of(secret)
        self._limits = limits or PostLimits()
        self._report, self._settled = undelivered, settled
        self._waiting: deque[_Post] = deque()
        self._trying: _Post | None = None
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._until = float("inf")
        self._thread = threading.Thread(target=self._deliver, name="webhook", daemon=True)
        self._thread.start()

    def put(self, event: Document, *, id_: str | None = None, content: object = None) -> None:
        """Queue an event behind all others; where too many wait, the oldest is given up.

        `content` is posted instead of the event. A receiver knows an event that arrives again by its id.
        """
        text = json.dumps(content or event, ensure_ascii=False, separators=(",", ":"))
        post = _Post(id_ or f"msg_{uuid4().hex}", event, text.encode("utf-8", "replace"))
        with self._changed:
            dropped = self._waiting.popleft() if len(self._waiting) >= self._limits.queue else None
            self._waiting.append(post)
            self._changed.notify()
        if dropped is not None:
            self._lose(dropped, f"more than {count_of(self._limits.queue, 'event')} waited")

    def close(self, within_s: float) -> list[Undelivered]:
        """Post the waiting events for so long; return all events lost since the beginning, in order."""
        if self._closing.is_set():
            return list(self.lost)
        with self._changed:
            self._until = time.monotonic() + within_s
            self._closing.set()
            self._changed.notify()
        # A try that has begun ends by its own timeout.
        self._thread.join(within_s + self._limits.timeout_s)
        if self._thread.is_alive():
            with self._changed:
                left = [*([self._trying] if self._trying else ()), *self._waiting]
                self._waiting.clear()
            for post in left:
                self._lose(post, "time was up; whether it arrived is not known")
        return list(self.lost)

    def _deliver(self) -> None:
        import httpx

        with httpx.Client(timeout=self._limits.timeout_s) as client:
            while True:
                with self._changed:
                    self._trying = None
                    self._changed.wait_for(lambda: self._waiting or self._closing.is_set())
                    if not self._waiting:
                        return
                    post = self._trying = self._waiting.popleft()
                try:
                    self._until_taken(client, post)
                    self._settled(post.id)
                except _Refused as error:
                    self._lose(post, str(error))
                    if not error.again:
                        self._settled(post.id)
                except Exception as error:
                    # On any error, the later events are still to be posted or named.
                    self._lose(post, f"{type(error).__name__}: {error}")

    def _until_taken(self, client: httpx.Client, post: _Post) -> None:
        delays, why = self._limits.backoff.delays(random.random), ""
        for number in range(1, self._limits.tries + 1):
            if time.monotonic() >= self._until:
                raise _Refused(why or "time was up before it was posted", again=True)
            try:
                self._try(client, post)
                return
            except _Refused as error:
                why = f"{error} ({number} tries)" if number > 1 else str(error)
                if not error.again or number == self._limits.tries:
                    raise _Refused(why, again=False) from None
                delay = error.after_s if error.after_s is not None else next(delays)
            if self._closing.wait(delay):
                # While closing, wait no longer than there is time.
                time.sleep(max(0.0, min(delay, self._until - time.monotonic())))

    def _try(self, client: httpx.Client, post: _Post) -> None:
        import httpx

        headers = {
            "content-type": "application/json",
            **signed(post.id, int(time.time()), post.body, self._key),
        }
        try:
            with client.stream("POST", self._url, content=post.body, headers=headers) as answer:
                # The status decides. A body would have to be read to its end, and it may have none.
                if answer.headers.get("content-length") == "0":
                    answer.read()
        except httpx.InvalidURL as error:
            raise _Refused(f"the address is not valid: {error}", again=False) from None
        except httpx.HTTPError as error:
            again = not isinstance(error, httpx.UnsupportedProtocol)
            raise _Refused(f"it cannot be reached: {error or type(error).__name__}", again=again) from None
        if answer.is_success:
            return
        again = answer.is_server_error or answer.status_code in _WORTH_ANOTHER_TRY
        asked = answer.headers.get("retry-after", "").strip()
        after_s = min(float(asked), _LONGEST_RETRY_AFTER_S) if asked.isascii() and asked.isdigit() else None
        raise _Refused(f"it answered {answer.status_code}", again=again, after_s=after_s)

    def _lose(self, post: _Post, why: str) -> None:
        lost = Undelivered(post.id, post.event, why, self.where)
        self.lost.append(lost)
        self._report(lost)


def webhook_at(
    env: Env,
    url: str | None,
    secret_file: Path | None,
    *,
    limits: PostLimits | None = None,
    settled: Callable[[str], None] = lambda id_: None,
) -> Webhook | None:
    """Return the webhook of --notify, which notes what it gives up; None without a URL."""
    if url is None:
        if secret_file is not None:
            raise ConfigError("--notify-secret-file signs posts, and there are none", "add --notify URL")
        return None
    require_extra("http", "--notify", "httpx")
    return Webhook(
        url,
        notify_secret(env.settings(), secret_file),
        limits=limits,
        undelivered=lambda lost: env.note("warning: " + lost.sentence),
        settled=settled,
    )


def signed(id_: str, timestamp_s: int, body: bytes, key: bytes | None) -> dict[str, str]:
    """Return one try's headers: the event's id, the time, and with a key the HMAC-SHA256 of all three.

    The signed text is `id.timestamp.body`; the signature is `v1,` and the HMAC in base64.
    """
    headers = {ID: id_, TIMESTAMP: str(timestamp_s)}
    if key is not None:
        digest = hmac.digest(key, f"{id_}.{timestamp_s}.".encode() + body, "sha256")
        headers[SIGNATURE] = "v1," + b64encode(digest).decode()
    return headers


def key_of(secret: str) -> bytes:
    """Return the key in a secret: base64 after `whsec_`, else its bytes; raise ConfigError for neither."""
    text = secret.strip()
    if not text:
        raise ConfigError("the webhook's secret is empty", "openssl rand -hex 32 makes one")
    if not text.startswith(SECRET_PREFIX):
        return text.encode()
    try:
        return b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except NotBase64:
        raise ConfigError(
            f"the webhook's secret begins with {SECRET_PREFIX} and is not base64 behind it"
        ) from None


def shown(url: str) -> str:
    """Return the address as it may be printed: paths and passwords of webhooks are secrets."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        raise ConfigError("--notify is no web address", "as in https://hooks.example.net/kafka") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("--notify is no web address", "as in https://hooks.example.net/kafka")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}"
