"""The keys of a token issuer: a JWKS in a file, or behind a URL and fetched again now and then.

Kafka's JwksFileVerificationKeyResolver and RefreshingHttpsJwks are the model: a token whose key is missing
is refused, and the keys are fetched sooner.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from kgroup.broker.authentication.settings import is_loopback
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from jwt import PyJWK

log = logging.getLogger(__name__)

FETCH_S = 10.0
SOONER_S = 10.0  # between two fetches for keys that were missing
LONGEST = 1 << 20  # bytes of a JWKS
ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512", "ES256K"),
    "OKP": ("EdDSA",),
    "oct": ("HS256", "HS384", "HS512"),
}


class Jwks(Protocol):
    """Keys that signatures are checked with."""

    def fitting(self, key_id: str | None, algorithm: str) -> Iterator[PyJWK]:
        """Return the keys that may have signed a token with this header."""
        ...

    async def keep_fresh(self) -> None:
        """Fetch the keys again when it is time, until cancelled."""
        ...


class Keys:
    """A JWKS that was read; ValueError for one without any key that can be used."""

    def __init__(self, data: bytes) -> None:
        import jwt

        document = json.loads(data)
        if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
            raise ValueError('it is not a JWKS: {"keys": […]}')
        self._keys: list[dict[str, PyJWK]] = []
        """By key, then algorithm: what checks a signature."""
        for key in document["keys"]:
            if not isinstance(key, dict) or key.get("use", "sig") != "sig":
                continue
            known = ALGORITHMS.get(str(key.get("kty")), ())
            usable: dict[str, PyJWK] = {}
            for algorithm in known if "alg" not in key else {str(key["alg"])} & {*known}:
                with suppress(jwt.PyJWTError, ValueError, TypeError, KeyError):
                    usable[algorithm] = jwt.PyJWK(key, algorithm)
            if usable:
                self._keys.append(usable)
            else:
                log.warning("a key of the JWKS cannot be used and is passed over")
        if not self._keys:
            raise ValueError("there is no key in it that can be used")

    def fitting(self, key_id: str | None, algorithm: str) -> Iterator[PyJWK]:
        for usable in self._keys:
            key = usable.get(algorithm)
            if key is not None and key_id in (None, key.key_id):
                yield key


class FileJwks:
    """A JWKS in a file, read again when the file changes; what it held stays while it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._stat()
        self._keys = Keys(path.read_bytes())

    def fitting(self, key_id: str | None, algorithm: str) -> Iterator[PyJWK]:
        try:
            stamp = self._stat()
            if stamp != self._stamp:
                self._stamp = stamp
                self._keys = Keys(self._path.read_bytes())
        except (OSError, ValueError) as error:
            log.warning("the JWKS in %s cannot be read again, its last keys stay: %s", self._path, error)
        return self._keys.fitting(key_id, algorithm)

    async def keep_fresh(self) -> None:
        """Do nothing: each use checks whether the file changed."""

    def _stat(self) -> tuple[int, int, int]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino


class UrlJwks:
    """A JWKS behind a URL; the last one fetched stays while it cannot be fetched."""

    def __init__(self, url: str, refresh_ms: int) -> None:
        self._url = url
        self._refresh_s = max(refresh_ms / 1000, 1.0)
        self._keys = self._fetch()
        self._fetched = time.monotonic()
        self._sooner: asyncio.Event | None = None

    def fitting(self, key_id: str | None, algorithm: str) -> Iterator[PyJWK]:
        keys = list(self._keys.fitting(key_id, algorithm))
        if not keys and self._sooner is not None and time.monotonic() - self._fetched > SOONER_S:
            self._sooner.set()
        return iter(keys)

    async def keep_fresh(self) -> None:
        self._sooner = asyncio.Event()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._sooner.wait(), self._refresh_s)
            try:
                self._keys = await asyncio.to_thread(self._fetch)
            except (OSError, ValueError) as error:
                log.warning(
                    "the JWKS at %s cannot be fetched again, its last keys stay: %s", self._url, error
                )
            self._fetched = time.monotonic()
            self._sooner.clear()

    def _fetch(self) -> Keys:
        """Raise OSError if it cannot be fetched, ValueError if it is no JWKS."""
        import httpx

        from kgroup.http import ask

        try:
            with httpx.Client() as client:
                answer = ask(client, "GET", self._url, within_s=FETCH_S, largest=LONGEST)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise OSError(str(error) or type(error).__name__) from None
        return Keys(answer.content)


def open_jwks(url: str, refresh_ms: int) -> FileJwks | UrlJwks:
    """Return the keys at a URL, fetched for the first time; ConfigError if that fails."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            return FileJwks(Path(unquote(parts.path)))
        if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            return UrlJwks(url, refresh_ms)
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url={url} cannot be read: {why}") from None
    except ValueError as error:
        raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url={url}: {error}") from None
    raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url={url}: only file:// and https:// can be read")
