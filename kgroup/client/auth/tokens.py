"""Bearer tokens: where one comes from, how long it lives, and when the next is fetched."""

from __future__ import annotations

import base64
import json
import random
import ssl
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlsplit

from kgroup.client.auth.bounded import until, within
from kgroup.client.auth.credentials import (
    AwsToken,
    Bearer,
    ClientCredentials,
    GivenToken,
    Renewal,
    SignedAssertion,
    TokenCommand,
    TokenEndpoint,
    TokenFile,
    TokenSource,
    UnsecuredToken,
)
from kgroup.client.auth.exchanges import not_authenticated, redacted
from kgroup.client.auth.msk_iam import bearer_token
from kgroup.client.auth.printed import printed_by
from kgroup.client.auth.token import Token, read_token
from kgroup.client.tls.context import client_context
from kgroup.client.tls.values import Tls
from kgroup.errors import ConfigError, KgroupError, Unreachable
from kgroup.extras import require_extra
from kgroup.keystores.loading import reason

if TYPE_CHECKING:
    import httpx


class Tokens:
    """The current token of a source, renewed before it ends as Kafka's refreshing login does."""

    def __init__(
        self,
        bearer: Bearer,
        wall: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._source, self._renewal = bearer.source, bearer.renewal
        self._wall, self._chance = wall, chance
        self._token: Token | None = None
        self._renew_at = float("inf")

    def current(self, within_s: float) -> str:
        """Return a token that has not ended; one that cannot be renewed is used while it lives."""
        now = self._wall()
        if self._token is None or now >= self._renew_at:
            try:
                token = self._fetched(within_s)
            except KgroupError:
                if self._token is None or self._token.ends is None or now >= self._token.ends:
                    raise
            else:
                self._token, self._renew_at = token, renewal_time(token, now, self._renewal, self._chance())
        assert self._token is not None
        return self._token.text

    def _fetched(self, within_s: float) -> Token:
        token = within(
            within_s,
            lambda: fetch(self._source, within_s, self._wall),
            f"the source of the bearer token ({_name(self._source)})",
            "is it up and reachable from here? a longer --timeout may help",
        )
        now = self._wall()
        if token.ends is not None and token.ends <= now:
            raise not_authenticated(
                f"the bearer token ended {now - token.ends:.0f} s ago",
                "get a fresh one; if it is fresh, this machine's clock is wrong (date -u)",
            )
        return token


def renewal_time(token: Token, now: float, renewal: Renewal, chance: float) -> float:
    """Return when to fetch the next one (as Kafka's refreshing login): at once if its end is unknown."""
    if token.ends is None:
        return now
    part = renewal.window + renewal.jitter * chance
    if now + renewal.at_least_s + renewal.buffer_s > token.ends:
        return now + (token.ends - now) * part
    begins = token.begins if token.begins is not None else now
    proposed = min(begins + (token.ends - begins) * part, token.ends - renewal.buffer_s)
    return max(proposed, now + renewal.at_least_s)


def fetch(source: TokenSource, within_s: float, wall: Callable[[], float] = time.time) -> Token:
    """Return a token from its source; a KgroupError says in one sentence why there is none."""
    if isinstance(source, GivenToken):
        return read_token(source.token)
    if isinstance(source, TokenFile):
        return read_token(_read(source))
    if isinstance(source, TokenCommand):
        return read_token(printed_by(source.arguments, source.setting, within_s))
    if isinstance(source, UnsecuredToken):
        return read_token(unsecured_token(source.options, wall()))
    if isinstance(source, AwsToken):
        return read_token(*bearer_token(source.login), now=wall())

    return fetch_token(source, within_s, wall)


def _read(source: TokenFile) -> str:
    try:
        text = Path(source.location).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"the bearer token's file {source.location} cannot be read: {said}") from None
    if not text:
        raise ConfigError(f"the bearer token's file {source.location} is empty")
    return text


def _name(source: TokenSource) -> str:
    if isinstance(source, ClientCredentials):
        return shown_url(source.endpoint.url)
    if isinstance(source, TokenFile):
        return source.location
    return source.setting if isinstance(source, TokenCommand) else "AWS"


_KEY = "sasl.oauthbearer.assertion.private.key.file"


def assertion_of(assertion: str | SignedAssertion, now: float) -> str:
    """Return the assertion, from its file or made at `now`; ConfigError names an unusable file."""
    if isinstance(assertion, str):
        return _text(assertion, "sasl.oauthbearer.assertion.file").strip()
    header: dict[str, object] = {}
    payload: dict[str, object] = dict(assertion.claims)
    if assertion.template_location:
        named = "sasl.oauthbearer.assertion.template.file"
        try:
            template = json.loads(_text(assertion.template_location, named))
            header, more = dict(template.get("header") or {}), dict(template.get("payload") or {})
        except (ValueError, TypeError, AttributeError):
            raise ConfigError(
                f"{named}: {assertion.template_location} is not JSON with a header and a payload"
            ) from None
        payload |= more
    payload |= {
        "iat": int(now),
        "exp": int(now) + assertion.lives_s,
        "nbf": int(now) - assertion.not_before_s,
    }
    if assertion.with_id:
        payload["jti"] = str(uuid.uuid4())
    return _signed(assertion, header, payload)


def _signed(assertion: SignedAssertion, header: dict[str, object], payload: dict[str, object]) -> str:
    require_extra("oauth", "signing an assertion", "jwt")
    import jwt
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text = _text(assertion.key_location, _KEY)
    password = assertion.passphrase.encode() if assertion.passphrase and "ENCRYPTED" in text else None
    try:
        key = load_pem_private_key(text.encode(), password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(
            f"{_KEY}: no private key can be read from {assertion.key_location}",
            "it must be PEM; is it encrypted? then check sasl.oauthbearer.assertion.private.key.passphrase",
        ) from None
    try:
        return jwt.encode(payload, key, assertion.algorithm, header)  # type: ignore[arg-type]
    except (jwt.PyJWTError, TypeError, ValueError):
        raise ConfigError(
            f"{_KEY}: {assertion.key_location} is no key for {assertion.algorithm}",
            "RS256 wants RSA, ES256 a P-256 key",
        ) from None


def _text(location: str, named: str) -> str:
    try:
        return Path(location).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"{named}: {location} cannot be read: {said}") from None


_FINAL = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505})
"""Answers that Kafka does not retry."""
_REFUSALS = frozenset({400, 401, 403})
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def fetch_token(source: ClientCredentials, within_s: float, wall: Callable[[], float] = time.time) -> Token:
    """Return a fresh token; Unreachable when the endpoint cannot be asked, BrokerRefused when it refuses.

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
    """Return the address without what may be a secret: user, password, query."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path}"


def _request(source: ClientCredentials, now: float) -> tuple[dict[str, str], str]:
    """Return headers and body, as Kafka's request formatters write them."""
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
    """Return the endpoint's answer of success; retry, with doubled pauses, while that may help."""
    import httpx

    endpoint = source.endpoint
    secrets = [source.client_secret or "", *headers.get("Authorization", "").split()[-1:], body]
    where, last = shown_url(endpoint.url), min(deadline, time.monotonic() + endpoint.longest_s)
    pause = endpoint.backoff_s
    failure: KgroupError | None = None
    # Trust the stores given, else the system's authorities, as for brokers.
    verify = client_context(endpoint.tls or Tls()) if endpoint.url.lower().startswith("https") else False
    with httpx.Client(verify=verify, follow_redirects=False) as client:
        while True:
            try:
                answer = _post(client, endpoint, headers, body, deadline)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                words = _words(error)
                hint = "is sasl.oauthbearer.token.endpoint.url right, and reachable from here?"
                if words.startswith("TLS failed"):
                    trusted = "ssl.truststore.location in sasl.jaas.config, or https.ca.location"
                    hint = f"trust its authority: {trusted}"
                failure = failure or Unreachable(f"the token endpoint {where} cannot be asked: {words}", hint)
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


def _refused(where: str, answer: httpx.Response, secrets: list[str]) -> KgroupError:
    said = _fields(answer.content)
    error, more = (
        said.get("error", said.get("errorCode")),
        said.get("error_description", said.get("errorSummary")),
    )
    reason = ": ".join(
        redacted(part, secrets)[:200] for part in (error, more) if isinstance(part, str) and part
    )
    message = f"the token endpoint {where} answered {answer.status_code}" + (f": {reason}" if reason else "")
    if answer.status_code in _REFUSALS:
        return not_authenticated(message, "check the client id, its secret and the scope")
    return Unreachable(message, "is sasl.oauthbearer.token.endpoint.url right, and the issuer well?")


def _fields(body: bytes) -> dict[str, object]:
    try:
        fields = json.loads(body)
    except (ValueError, UnicodeDecodeError):
        return {}
    return fields if isinstance(fields, dict) else {}


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


_OPTION = "unsecuredLogin"


def unsecured_token(options: Mapping[str, str], now: float) -> str:
    """Return a JWS of algorithm `none` with the claims that the options name; ConfigError for a bad one."""
    where = "sasl.jaas.config"
    try:
        lives_s = int(options.get(f"{_OPTION}LifetimeSeconds", "3600"))
        claims: dict[str, object] = {"exp": now + lives_s, "iat": now}
        for name, value in options.items():
            for kind, read in (("String", str), ("Number", float), ("List", _items)):
                claim = name.removeprefix(f"{_OPTION}{kind}Claim_")
                if claim not in (name, ""):
                    if claim in ("iat", "exp"):
                        raise ConfigError(f"{where} sets the claim {claim}, which is made here")
                    claims[claim] = read(value)
    except ValueError:
        raise ConfigError(
            f"{where}: a lifetime or a number claim of the unsecured token is no number"
        ) from None
    principal = options.get(f"{_OPTION}PrincipalClaimName", "").strip() or "sub"
    if not claims.get(principal):
        raise ConfigError(
            f"{where}: the unsecured token names no principal", f'add {_OPTION}StringClaim_{principal}="NAME"'
        )
    parts = (json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "none"}, claims))
    return ".".join((*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), ""))


def _items(value: str) -> list[str]:
    """Return a list, whose first character is what its items are separated by."""
    return value[1:].split(value[0]) if len(value) > 1 else []
