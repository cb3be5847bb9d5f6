"""S3, Google Cloud Storage and Azure by obstore, which is the `object_store` library, as delta-rs has it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from kgroup.errors import ConfigError, StorageDenied
from kgroup.extras import require_extra
from kgroup.storage.failures import changed, failure
from kgroup.storage.location import AZURE, GCS, S3, Location
from kgroup.storage.options import StorageOptions, check_url
from kgroup.storage.store import Found
from kgroup.storage.waiting import within

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore, RetryConfig

T = TypeVar("T")
_PAGE = 1000
_FRESH = timedelta(minutes=10)
"""How long expiring credentials are used before they are fetched again."""


class Objects:
    """A bucket or container; see `Store`. ConfigError for contradictory options."""

    def __init__(self, location: Location, options: StorageOptions) -> None:
        self._options = options
        self._store = self._call(location, lambda: _opened(location, options))

    def walk(self, folder: Location) -> Iterator[Found]:
        import obstore

        pages = iter(obstore.list(self._store, prefix=folder.path or None, chunk_size=_PAGE))
        while page := self._call(folder, lambda: next(pages, None)):
            for meta in page:
                yield _found(folder, meta)

    def look(self, location: Location) -> Found:
        import obstore

        return _found(location, self._call(location, lambda: obstore.head(self._store, location.path)))

    def read(self, entry: Found, start: int, end: int) -> bytes:
        end = min(end, entry.size)
        if start >= end:
            return b""
        # Not all stores obey If-Match, so the version received is compared as well.
        meta, data = self._call(entry.location, lambda: self._range(entry, start, end))
        if _version(meta) != entry.version:
            raise changed(entry.location)
        return data

    def _range(self, entry: Found, start: int, end: int) -> tuple[ObjectMeta, bytes]:
        import obstore

        asked: Any = {"range": (start, end)}
        if entry.version.startswith('"'):
            asked["if_match"] = entry.version
        got = obstore.get(self._store, entry.location.path, options=asked)
        return got.meta, bytes(got.bytes())

    def write(self, location: Location, data: bytes) -> Found:
        import obstore

        put = self._call(location, lambda: obstore.put(self._store, location.path, data))
        tag = _tag(put["e_tag"])
        return Found(location, len(data), tag) if tag else self.look(location)

    def create(self, location: Location, data: bytes) -> bool:
        import obstore

        def put() -> bool:
            try:
                obstore.put(self._store, location.path, data, mode="create")
            except obstore.exceptions.AlreadyExistsError:
                return False
            return True

        return self._call(location, put)

    def delete(self, location: Location) -> None:
        import obstore

        try:
            self._call(location, lambda: obstore.delete(self._store, location.path))
        except FileNotFoundError:
            return

    def _call(self, at: Location, call: Callable[[], T]) -> T:
        # The library times out by itself; the wait is for the case that it does not.
        try:
            return within(self._options.timeout_s + 1, call)
        except ConfigError:
            raise
        except Exception as error:
            raise failure(error, at, self._options) from None


def _found(location: Location, meta: ObjectMeta) -> Found:
    at = Location(location.scheme, location.host, meta["path"])
    return Found(at, meta["size"], _version(meta), int(meta["last_modified"].timestamp() * 1000))


def _version(meta: ObjectMeta) -> str:
    """Return its tag, or if there is none its time and size."""
    return _tag(meta["e_tag"]) or f"{meta['last_modified'].timestamp()}/{meta['size']}"


def _tag(tag: str | None) -> str:
    """Return a tag in quotes, as If-Match needs it and Azure's lists omit it; "" for none or a weak one."""
    return f'"{tag.strip(chr(34))}"' if tag and not tag.startswith("W/") else ""


_ENDPOINTS = {
    S3: ("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    GCS: ("base_url", "GOOGLE_BASE_URL"),
    AZURE: ("endpoint", "AZURE_STORAGE_ENDPOINT"),
}
"""Where another endpoint may be set: the option, then the environment."""


def _opened(location: Location, options: StorageOptions) -> ObjectStore:
    from obstore import exceptions, store

    given = options.for_kind(location.kind)
    # An attempt and all those before it end in time together.
    half = timedelta(seconds=options.timeout_s / 2)
    client: Any = {"timeout": half, "connect_timeout": min(half, timedelta(seconds=5))}
    client |= {name: given.pop(name) for name in ("allow_http", "proxy_url") if name in given}
    # An endpoint with http:// is meant so.
    if _endpoint(given, location.kind).startswith("http://") or "use_emulator" in given:
        client["allow_http"] = True
    retry: RetryConfig = {"max_retries": 10, "retry_timeout": half, "backoff": {}}
    how: Any = {"client_options": client, "retry_config": retry}
    try:
        if location.kind == S3:
            provider: Any = _aws(given, location)
            chosen: Any = given
            return store.S3Store(location.container, config=chosen, credential_provider=provider, **how)
        if location.kind == GCS:
            chosen = given
            return store.GCSStore(location.container, config=chosen, **how)
        if location.account:
            given["account_name"] = location.account
        chosen = given
        return store.AzureStore(location.container, config=chosen, **how)
    except exceptions.BaseError as error:
        first = options.hidden(str(error).splitlines()[0])
        raise ConfigError(f"{location} cannot be opened: {first}", "see --storage-option") from None


def _endpoint(given: dict[str, str], kind: str) -> str:
    """Return the endpoint that was chosen, else the one of the environment, else ""."""
    option, *names = _ENDPOINTS[kind]
    if option in given:
        return given[option]
    name = next((name for name in names if os.environ.get(name)), None)
    if name is None:
        return ""
    check_url(os.environ[name], name)
    return os.environ[name]


def _aws(given: dict[str, str], location: Location) -> Callable[[], dict[str, Any]] | None:
    """Return credentials as every AWS tool finds them; None if they are given, or none are needed.

    `given` gets the region that goes with them.
    """
    profile = given.pop("profile", None)
    has_key = given.get("access_key_id") or (os.environ.get("AWS_ACCESS_KEY_ID") and not profile)
    if has_key or given.get("skip_signature", os.environ.get("AWS_SKIP_SIGNATURE")) in (
        "true",
        "1",
        "True",
    ):
        return None
    require_extra("storage", "reading credentials from AWS's own files", "botocore")
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    try:
        session = Session(profile=profile)
        credentials = session.get_credentials()
        region = session.get_config_variable("region")
    except BotoCoreError as error:
        raise StorageDenied(f"no credentials for {location} were found: {error}") from None
    if credentials is None:
        hint = "aws configure, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        raise StorageDenied(f"no credentials for {location} were found", hint)
    if region:
        given.setdefault("region", region)

    def provided() -> dict[str, Any]:
        now = credentials.get_frozen_credentials()
        expires = datetime.now(UTC) + _FRESH if hasattr(credentials, "refresh_needed") else None
        return {
            "access_key_id": now.access_key,
            "secret_access_key": now.secret_key,
            "token": now.token,
            "expires_at": expires,
        }

    return provided
