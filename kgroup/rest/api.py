"""A client of one REST API v3: GET only, page by page, with the given time, retries and login."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit

from kgroup.client.retry import OutcomeUnknown, Retry
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError, Unreachable
from kgroup.extras import require_extra
from kgroup.rest.documents import Document, error_of, page_of

if TYPE_CHECKING:
    import ssl

    import httpx

PAGES = 10_000
"""More pages than any list has: limits a proxy that always names a next one."""
LARGEST_PAGE = 64 << 20
"""Bytes: a collection that is not paged may list 100,000 partitions."""
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_HINT_LOGIN = (
    "set rest.token or rest.username and rest.password (KGROUP_REST_TOKEN, or a context's properties)"
)
_HINT_PATH = "is it a REST API v3? try the address with /kafka in front of /v3"
_REFUSALS = {
    401: (ErrorCode.SASL_AUTHENTICATION_FAILED, _HINT_LOGIN),
    403: (
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "ask for a role that may describe the group and its topics",
    ),
    404: (ErrorCode.RESOURCE_NOT_FOUND, None),
}


@dataclass(frozen=True, slots=True)
class Login:
    """The authentication of requests: by a bearer token, by name and password, or none."""

    token: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    def headers(self) -> dict[str, str]:
        """Return the header that carries it."""
        if self.token is not None:
            return {"authorization": f"Bearer {self.token}"}
        if self.username is None:
            return {}
        import httpx

        request = httpx.Request("GET", "http://unused")
        signed = next(httpx.BasicAuth(self.username, self.password or "").auth_flow(request))
        return {"authorization": signed.headers["authorization"]}


@dataclass(frozen=True, slots=True)
class Place:
    """The address of an API and of its cluster, None for the only one."""

    base: str
    cluster_id: str | None = None


def place_of(url: str) -> Place:
    """Return the API and cluster of a URL: `…`, `…/v3` or `…/v3/clusters/ID`; ConfigError for others."""
    hint = "as in https://rest.example.net:8082, or …/v3/clusters/ID for one of several clusters"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("--rest is no web address", hint) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ConfigError("--rest is no web address", hint)
    if parts.username is not None or parts.password is not None:
        raise ConfigError("--rest holds a login: every process may read a command line", _HINT_LOGIN)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    before, _, behind = parts.path.rstrip("/").partition("/v3")
    words = [word for word in behind.split("/") if word]
    if behind and (not behind.startswith("/") or len(words) != 2 or words[0] != "clusters"):
        raise ConfigError(f"--rest names {parts.path}, which is not part of the REST API v3", hint)
    base = f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{before}/v3/"
    return Place(base, words[1] if words else None)


class Api:
    """The documents below one cluster's URL; every answer is checked against the API's definition.

    Raises Unreachable when no server answers in time, BrokerRefused for an error answer (401 and 403 as
    authentication and authorisation failures, 404 as RESOURCE_NOT_FOUND).
    """

    def __init__(self, place: Place, client: httpx.Client, retry: Retry) -> None:
        self._place = place
        self._client = client
        self._retry = retry
        self._cluster_id: str | None = place.cluster_id

    @property
    def where(self) -> str:
        """The address of the API."""
        return self._place.base.rstrip("/")

    def cluster_id(self) -> str:
        """Return the cluster's id; raise ConfigError where there are several and none was chosen."""
        if self._cluster_id is None:
            ids = [document.text("cluster_id") for document in self._pages("clusters")]
            if len(ids) != 1:
                known = ", ".join(ids) or "none"
                raise ConfigError(
                    f"{self.where} serves {len(ids)} clusters",
                    f"choose one: --rest {self.where}/clusters/ID ({known})",
                )
            self._cluster_id = ids[0]
        return self._cluster_id

    def one(self, *path: str) -> Document:
        """Return the document at a path below the cluster."""
        url = self._join(self._below(path))
        return Document(self._get(url), url)

    def all(self, *path: str) -> list[Document]:
        """Return all documents of a collection, page after page."""
        return list(self._pages(*self._below(path)))

    def _below(self, path: tuple[str, ...]) -> tuple[str, ...]:
        return ("clusters", self.cluster_id(), *path)

    def _join(self, path: tuple[str, ...]) -> str:
        return self._place.base + "/".join(quote(word, safe="") for word in path)

    def _pages(self, *path: str) -> Iterator[Document]:
        url = self._join(path)
        seen: set[str] = set()
        while True:
            if url in seen or len(seen) >= PAGES:
                raise KgroupError(f"{url} names itself as its next page", "the REST API is at fault")
            seen.add(url)
            documents, following = page_of(self._get(url), url)
            yield from documents
            if following is None:
                return
            # A proxy may name itself by another address.
            ours = urlsplit(self._place.base)
            url = urlsplit(urljoin(url, following))._replace(scheme=ours.scheme, netloc=ours.netloc).geturl()

    def _get(self, url: str) -> object:
        return self._retry.call(lambda left_s: self._ask(url, left_s), idempotent=True)

    def _ask(self, url: str, left_s: float) -> object:
        import httpx

        from kgroup.http import TooLarge, ask

        try:
            answer = ask(self._client, "GET", url, within_s=left_s, largest=LARGEST_PAGE)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            raise Unreachable(
                f"{self.where} cannot be reached: {error or type(error).__name__}",
                "is the address right, and is rest.ssl.ca.location set where it needs its own authority?",
            ) from None
        except TooLarge as error:
            raise KgroupError(f"{url}: {error}", "the REST API is at fault") from None
        except httpx.HTTPError as error:
            raise OutcomeUnknown(f"{self.where} did not answer: {error or type(error).__name__}") from None
        if answer.status_code in _AGAIN:
            # Wait as long as the answer asks, where it does; never past the time that is left.
            text = answer.headers.get("retry-after", "")
            if text.isascii() and text.isdigit():
                self._retry.sleep(min(float(text), left_s))
            raise OutcomeUnknown(f"{self.where} answered {_said(answer)}")
        if not answer.is_success:
            said = f"{url} answered {_said(answer)}"
            if answer.status_code not in _REFUSALS:
                raise KgroupError(said, _HINT_PATH)
            code, hint = _REFUSALS[answer.status_code]
            raise BrokerRefused(code, said, hint=hint)
        try:
            return answer.json()
        except ValueError:
            raise KgroupError(f"{url} did not answer with JSON", _HINT_PATH) from None


def client(login: Login, context: ssl.SSLContext | None) -> httpx.Client:
    """Return a client that sends the login to the requested addresses and follows no redirection."""
    require_extra("http", "--rest", "httpx")
    import httpx

    headers = {"accept": "application/json", **login.headers()}
    # An unencrypted connection needs no authorities, and loading them all takes time.
    verify = context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.Client(headers=headers, verify=verify, follow_redirects=False)


def _said(answer: httpx.Response) -> str:
    """Return the status, and the API's own code and message where it has them."""
    try:
        document: object = answer.json()
    except ValueError:
        document = None
    code, message = error_of(document)
    own = f" ({code})" if code is not None and code != answer.status_code else ""
    return f"{answer.status_code}{own}" + (f": {message}" if message else "")
