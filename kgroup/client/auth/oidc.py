"""Tokens from a token endpoint (OAuth 2, RFC 6749), asked and asked again as Kafka's HttpJwtRetriever does.

Nothing an endpoint says is shown but its `error` and `error_description`: an answer may hold a token.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlsplit

from kgroup.client.auth.assertions import assertion_of
from kgroup.client.auth.bounded import until
from kgroup.client.auth.credentials import ClientCredentials, TokenEndpoint
from kgroup.client.auth.exchanges import not_authenticated, redacted
from kgroup.client.auth.token import Token, read_token
from kgroup.client.tls.context import client_context
from kgroup.client.tls.values import Tls
from kgroup.errors import KgroupError, Unreachable, require_extra
from kgroup.keystores.loading import reason

if TYPE_CHECKING:
    import httpx

_FINAL = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505})
"""Answers that Kafka does not ask again after."""
_REFUSALS = frozenset({400, 401, 403})
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def fetch_token(source: ClientCredentials, within_s: float, wall: Callable[[], float] = time.time) -> Token:
    """A fresh token; Unreachable when the endpoint cannot be asked, BrokerRefused when it refuses.

    ConfigError without the extra `oauth`.
    """
    require_extra("oauth", "a token endpoint", "httpx")
    headers, body = _request(source, wall())
    answer = _asked(source, headers, body, time.monotonic() + within_s)
    said = _fields(answer.content)
    text = next(
        (value.strip() for key in ("access_token", "id_token") if isinstance(value := said.get(key), str)), ""
    )
    if not text:
        raise not_authenticated(
            f"{shown_url(source.endpoint.url)} answered without an access_token",
            "is this the token endpoint, as the issuer's /.well-known/openid-configuration names it?",
        )
    lives = said.get("expires_in")
    return read_token(text, float(lives) if isinstance(lives, int | float) else None, wall())


def shown_url(url: str) -> str:
    """The address without what may be a secret: user, password, query."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path}"


def _request(source: ClientCredentials, now: float) -> tuple[dict[str, str], str]:
    """Headers and body, as Kafka's request formatters write them."""
    headers = {
        "Accept": "application/json",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    form = {"grant_type": _JWT_BEARER if source.bearer else "client_credentials"}
    scope = (source.scope or "").strip()
    if source.assertion is not None:
        made = assertion_of(source.assertion, now)
        if source.bearer:
            form["assertion"] = made
        else:
            form |= {"client_assertion_type": _CLIENT_ASSERTION, "client_assertion": made}
            form |= {"client_id": source.client_id} if source.client_id else {}
    else:
        pair = ((source.client_id or "").strip(), (source.client_secret or "").strip())
        both = ":".join(quote_plus(part) if source.url_encode else part for part in pair)
        headers["Authorization"] = "Basic " + base64.b64encode(both.encode()).decode()
    # With a secret Kafka sends the scope as it is, so some have written it encoded already.
    as_it_is = source.assertion is None and not source.url_encode
    body = "&".join(f"{name}={quote_plus(value)}" for name, value in form.items())
    if scope:
        body += "&scope=" + (scope.replace(" ", "+") if as_it_is else quote_plus(scope))
    return headers, body


def _asked(source: ClientCredentials, headers: dict[str, str], body: str, deadline: float) -> httpx.Response:
    """The endpoint's answer of success; asks again, with doubled pauses, while that may help."""
    import httpx

    endpoint = source.endpoint
    secrets = [source.client_secret or "", *headers.get("Authorization", "").split()[-1:], body]
    where, last = shown_url(endpoint.url), min(deadline, time.monotonic() + endpoint.longest_s)
    pause = endpoint.backoff_s
    failure: KgroupError | None = None
    with httpx.Client(verify=_context(endpoint), follow_redirects=False) as client:
        while True:
            try:
                answer = _post(client, endpoint, headers, body, deadline)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                failure = failure or Unreachable(
                    f"the token endpoint {where} cannot be asked: {_words(error)}", _hint(error)
                )
            else:
                if answer.status_code in (200, 201) and answer.content:
                    return answer
                refusal = _refused(where, answer, secrets)
                if answer.status_code in _FINAL:
                    raise refusal
                failure = failure or refusal
            left = last - time.monotonic()
            if left <= 0:
                raise failure
            time.sleep(min(pause, left))
            pause *= 2


def _post(
    client: httpx.Client, endpoint: TokenEndpoint, headers: dict[str, str], body: str, deadline: float
) -> httpx.Response:
    import httpx

    from kgroup.http import ask

    left = until(deadline)
    timeout = httpx.Timeout(
        left,
        connect=min(left, endpoint.connect_timeout_s or left),
        read=min(left, endpoint.read_timeout_s or left),
    )
    return ask(client, "POST", endpoint.url, within_s=left, headers=headers, content=body, timeout=timeout)


def _context(endpoint: TokenEndpoint):  # type: ignore[no-untyped-def]
    """Whom to trust: the stores given, else the system's authorities, as for brokers."""
    if not endpoint.url.lower().startswith("https"):
        return False

    return client_context(endpoint.tls or Tls())


def _refused(where: str, answer: httpx.Response, secrets: list[str]) -> KgroupError:
    said = _fields(answer.content)
    error, more = (
        said.get("error", said.get("errorCode")),
        said.get("error_description", said.get("errorSummary")),
    )
    told = ": ".join(
        redacted(part, secrets)[:200] for part in (error, more) if isinstance(part, str) and part
    )
    message = f"the token endpoint {where} answered {answer.status_code}" + (f": {told}" if told else "")
    if answer.status_code in _REFUSALS:
        return not_authenticated(message, "check the client id, its secret and the scope")
    return Unreachable(message, "is sasl.oauthbearer.token.endpoint.url right, and the issuer well?")


def _fields(body: bytes) -> dict[str, object]:
    try:
        found = json.loads(body)
    except (ValueError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _words(error: Exception) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return "it did not answer in time"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed: {reason(cause)}"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
        cause = cause.__cause__ or cause.__context__
    return (
        type(error).__name__ if isinstance(error, httpx.InvalidURL) else "the connection was refused or lost"
    )


def _hint(error: Exception) -> str:
    if _words(error).startswith("TLS failed"):
        return "trust its authority: ssl.truststore.location in sasl.jaas.config, or https.ca.location"
    return "is sasl.oauthbearer.token.endpoint.url right, and reachable from here?"
