"""The properties of OAUTHBEARER: where a token comes from, in Kafka's names and in librdkafka's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

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
from kgroup.client.properties.aws import aws_login
from kgroup.client.properties.given import Given
from kgroup.client.properties.tls import https_of
from kgroup.errors import ConfigError

_O = "sasl.oauthbearer."
URL, TOKEN = _O + "token.endpoint.url", _O + "token"
_ID = (_O + "client.credentials.client.id", _O + "client.id")
_SECRET = (_O + "client.credentials.client.secret", _O + "client.secret")
_CLAIMS = {name: f"{_O}assertion.claim.{name}" for name in ("aud", "iss", "sub")}
_CALLBACK = "sasl.login.callback.handler.class"
MSK_TOKENS = "IAMOAuthBearerLoginCallbackHandler"
_RETRIEVER = _O + "jwt.retriever.class"
_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_KEY = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7E \t\r\n]+")


def bearer_of(given: Given, options: Mapping[str, str]) -> Bearer:
    """Where the token comes from, from the properties and the login module's options."""
    return Bearer(
        source=_source(given, options),
        extensions=_extensions(given, options),
        renewal=Renewal(
            window=given.number("sasl.login.refresh.window.factor", default=0.8),
            jitter=given.number("sasl.login.refresh.window.jitter", default=0.05),
            at_least_s=given.number("sasl.login.refresh.min.period.seconds", default=60),
            buffer_s=given.number("sasl.login.refresh.buffer.seconds", default=300),
        ),
    )


def _source(given: Given, options: Mapping[str, str]) -> TokenSource:
    if (token := given.get(TOKEN)) is not None:
        return GivenToken(token.strip())
    if (command := given.get(TOKEN + "-command")) is not None:
        return TokenCommand(tuple(shlex.split(command)), given.named(TOKEN + "-command"))
    if (given.get(_CALLBACK) or "").endswith(MSK_TOKENS):
        return AwsToken(aws_login(options))
    if (url := given.get(URL)) is not None:
        return _from_url(given, options, url.strip())
    if any(name.startswith("unsecuredLogin") for name in options):
        return UnsecuredToken(dict(options))
    if given.flag("enable.sasl.oauthbearer.unsecure.jwt", default=False):
        return UnsecuredToken(_unsecured(given.get(_O + "config") or ""))
    raise ConfigError(
        "OAUTHBEARER needs to know where its token comes from",
        f"set {URL} (https://… with a client id and secret, or file:///…), or {TOKEN}-command",
    )


def _from_url(given: Given, options: Mapping[str, str], url: str) -> TokenSource:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme.lower() == "file":
        return TokenFile(unquote(parts.path))
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or not _has_port(url):
        raise ConfigError(
            f"{given.named(URL)} is not the address of a token endpoint", "https://HOST/PATH, or file:///PATH"
        )
    grant = given.get(_O + "grant.type") or ""
    bearer = grant == _BEARER_GRANT or (given.get(_RETRIEVER) or "").endswith("JwtBearerJwtRetriever")
    made = ClientCredentials(
        endpoint=_endpoint(given, options, url),
        client_id=given.get(*_ID) or options.get("clientId"),
        client_secret=given.get(*_SECRET) or options.get("clientSecret"),
        scope=given.get(_O + "scope") or options.get("scope"),
        url_encode=given.flag(_O + "header.urlencode", default=False),
        assertion=_assertion(given),
        bearer=bearer,
    )
    if made.assertion is None and (bearer or not made.client_id or not made.client_secret):
        missing = (
            (_O + "assertion.private.key.file") if bearer else (_ID[0] if not made.client_id else _SECRET[0])
        )
        raise ConfigError(
            f"the token endpoint has to be told who asks: {missing} is not set", f"set {missing}"
        )
    return made


def _has_port(url: str) -> bool:
    """Whether the port is a number, or left out."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def _endpoint(given: Given, options: Mapping[str, str], url: str) -> TokenEndpoint:
    def seconds(name: str) -> float | None:
        return given.number(name, default=0) / 1000 or None

    return TokenEndpoint(
        url,
        https_of(given, options),
        backoff_s=given.number("sasl.login.retry.backoff.ms", default=100) / 1000,
        longest_s=given.number("sasl.login.retry.backoff.max.ms", default=10_000) / 1000,
        connect_timeout_s=seconds("sasl.login.connect.timeout.ms"),
        read_timeout_s=seconds("sasl.login.read.timeout.ms"),
    )


def _assertion(given: Given) -> str | SignedAssertion | None:
    if (file := given.get(_O + "assertion.file")) is not None:
        return file
    key = given.get(_O + "assertion.private.key.file")
    if key is None:
        return None
    algorithm = (given.get(_O + "assertion.algorithm") or "RS256").upper()
    if algorithm not in ("RS256", "ES256"):
        raise ConfigError(f"{given.named(_O + 'assertion.algorithm')} is not RS256 or ES256")
    return SignedAssertion(
        key_location=key,
        algorithm=algorithm,
        passphrase=given.get(_O + "assertion.private.key.passphrase"),
        claims={claim: value for claim, name in _CLAIMS.items() if (value := given.get(name)) is not None},
        template_location=given.get(_O + "assertion.template.file", _O + "assertion.jwt.template.file"),
        lives_s=int(given.number(_O + "assertion.claim.exp.seconds", default=300, least=1)),
        not_before_s=int(given.number(_O + "assertion.claim.nbf.seconds", default=60)),
        with_id=given.flag(_O + "assertion.claim.jti.include", default=False),
    )


def _extensions(given: Given, options: Mapping[str, str]) -> dict[str, str]:
    """SASL extensions: Java's `extension_NAME` options and librdkafka's list; ConfigError if forbidden."""
    found: dict[str, str] = {}
    for prefix in ("extension_", "unsecuredLoginExtension_"):
        found |= {
            name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)
        }
    for pair in filter(None, (part.strip() for part in (given.get(_O + "extensions") or "").split(","))):
        name, _, value = pair.partition("=")
        found[name] = value
    for name, value in found.items():
        if name == "auth" or not _KEY.fullmatch(name) or not _VALUE.fullmatch(value):
            shown = name if _KEY.fullmatch(name) else "an extension"
            raise ConfigError(
                f"OAUTHBEARER cannot send {shown} as an extension", "letters=printable text, and not `auth`"
            )
    return found


def _unsecured(config: str) -> dict[str, str]:
    """librdkafka's sasl.oauthbearer.config in the words of Java's login module."""
    pairs = dict(part.partition("=")[::2] for part in config.split())
    claim = pairs.get("principalClaimName", "sub")
    options = {
        "unsecuredLoginPrincipalClaimName": claim,
        f"unsecuredLoginStringClaim_{claim}": pairs.get("principal", ""),
    }
    if "lifeSeconds" in pairs:
        options["unsecuredLoginLifetimeSeconds"] = pairs["lifeSeconds"]
    if "scope" in pairs:
        options[f"unsecuredLoginListClaim_{pairs.get('scopeClaimName', 'scope')}"] = "," + pairs["scope"]
    options |= {
        f"unsecuredLoginExtension_{name.removeprefix('extension_')}": value
        for name, value in pairs.items()
        if name.startswith("extension_")
    }
    return options
