"""A client's properties as one `Security`: Java's names and librdkafka's, both at once where they differ."""

import re
import shlex
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from kgroup.client.auth.credentials import (
    GSSAPI,
    MECHANISMS,
    MSK_IAM,
    OAUTHBEARER,
    AwsToken,
    Bearer,
    ClientCredentials,
    Credentials,
    GivenToken,
    Kerberos,
    Password,
    Renewal,
    SignedAssertion,
    TokenCommand,
    TokenEndpoint,
    TokenFile,
    TokenSource,
    UnsecuredToken,
)
from kgroup.client.properties.aws import aws_login
from kgroup.client.properties.catalogue import AS_DEFAULT, REFUSED
from kgroup.client.properties.given import Given
from kgroup.client.properties.tls import https_of, tls_of
from kgroup.client.security import PLAINTEXT, Security
from kgroup.domain import SECURITY_PROTOCOLS
from kgroup.errors import ConfigError
from kgroup.security.jaas import LoginModule, parse_jaas

# Java classes whose work is done here, by the last part of their name.
_CLASSES = {
    "sasl.login.callback.handler.class": (
        "OAuthBearerLoginCallbackHandler",
        "OAuthBearerUnsecuredLoginCallbackHandler",
        "IAMOAuthBearerLoginCallbackHandler",
        "IAMClientCallbackHandler",
    ),
    "sasl.client.callback.handler.class": (
        "IAMClientCallbackHandler",
        "OAuthBearerSaslClientCallbackHandler",
        "SaslClientCallbackHandler",
    ),
    "sasl.login.class": ("DefaultLogin", "KerberosLogin", "OAuthBearerRefreshingLogin"),
    "sasl.oauthbearer.jwt.retriever.class": (
        "DefaultJwtRetriever",
        "FileJwtRetriever",
        "ClientCredentialsJwtRetriever",
        "JwtBearerJwtRetriever",
    ),
    "sasl.oauthbearer.jwt.validator.class": ("DefaultJwtValidator", "ClientJwtValidator"),
}


def security_of(given: Given) -> Security:
    """Return how the connection is secured; ConfigError names an unusable property, and what to use.

    No store is opened and no service is called.
    """
    protocol = (given.get("security.protocol") or "PLAINTEXT").strip().upper()
    if protocol not in SECURITY_PROTOCOLS:
        raise ConfigError(
            f"{given.named('security.protocol')}={protocol} is unknown",
            "one of " + ", ".join(SECURITY_PROTOCOLS),
        )
    if protocol == "PLAINTEXT":
        return PLAINTEXT
    _refuse(given, "ssl." if protocol == "SSL" else "sasl." if protocol == "SASL_PLAINTEXT" else "")
    tls = credentials = None
    if protocol in ("SSL", "SASL_SSL"):
        tls = tls_of(given)
    if protocol.startswith("SASL_"):
        credentials = credentials_of(given)
    return Security(tls, credentials)


def _refuse(given: Given, prefix: str) -> None:
    """Raise ConfigError for a property that would change trust or identity, and cannot be obeyed here."""
    for name, why in REFUSED.items():
        value = given.get(name)
        if value and name.startswith((prefix, "security.")) and value.strip() not in AS_DEFAULT.get(name, ()):
            raise ConfigError(f"{given.named(name)} cannot be used here", why)
    if given.get("config.providers"):
        _refuse_placeholders(given)
    for name, known in _CLASSES.items():
        value = given.get(name)
        if value and name.startswith(prefix) and value.strip().rpartition(".")[2] not in known:
            instead = (
                "let sasl.oauthbearer.token-command print the token" if "login" in name else "leave it out"
            )
            raise ConfigError(
                f"{given.named(name)} names a Java class that kgroup cannot run",
                f"known: {', '.join(known)}; for another, {instead}",
            )


def _refuse_placeholders(given: Given) -> None:
    """Raise ConfigError for a value that a Java class would fill in: unfilled, it is a wrong password."""
    for name, value in given.values.items():
        if name.startswith(("ssl.", "sasl.")) and "${" in value:
            raise ConfigError(
                f"{given.named(name)} is filled in by config.providers, Java classes that kgroup cannot run",
                f"{name}-env=VARIABLE or {name}-command=COMMAND fetches it",
            )


JAAS = "sasl.jaas.config"
_CLASS = re.compile(r"[a-z]\w*(?:\.[a-z]\w*)*\.[A-Z]\w*LoginModule")
_AS_JAVA = 'write it as Java does: org.apache…LoginModule required name="value" …;'
_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    OAUTHBEARER: "OAuthBearerLoginModule",
    MSK_IAM: "IAMLoginModule",
    GSSAPI: "Krb5LoginModule",
}


def mechanism_of(given: Given) -> str:
    """Return `sasl.mechanism`, GSSAPI when it is not set (as in Java); ConfigError for an unknown one."""
    mechanism = (given.get("sasl.mechanism", "sasl.mechanisms") or GSSAPI).strip().upper()
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"kgroup cannot authenticate with {given.named('sasl.mechanism', 'sasl.mechanisms')} {mechanism}",
            "supported: " + ", ".join(MECHANISMS),
        )
    return mechanism


def credentials_of(given: Given) -> Credentials:
    """Return our credentials; ConfigError names the property that is missing or cannot be used."""
    mechanism = mechanism_of(given)
    jaas = _jaas(given, mechanism)
    if mechanism == OAUTHBEARER:
        return bearer_of(given, jaas.options)
    if mechanism == MSK_IAM:
        return aws_login(jaas.options)
    return _kerberos(given, jaas) if mechanism == GSSAPI else _password(given, jaas.options, mechanism)


def _jaas(given: Given, mechanism: str) -> LoginModule:
    """Return the login module given, which must be the mechanism's; one without options if none was."""
    text, module_name = given.get(JAAS), _MODULES[mechanism]
    if text is None:
        return LoginModule(module_name, {})
    try:
        module = parse_jaas(text)
    except ValueError as error:
        raise ConfigError(f"{given.named(JAAS)}: {error}", _AS_JAVA) from None
    if not _CLASS.fullmatch(module.class_name):
        # Anything except the name of a class may be a part of the secret.
        raise ConfigError(f"{given.named(JAAS)} begins with no login module", _AS_JAVA)
    if module.name != module_name:
        raise ConfigError(
            f"{given.named(JAAS)} uses {module.name}, and sasl.mechanism {mechanism} wants {module_name}",
            "set sasl.mechanism and sasl.jaas.config to what belongs together",
        )
    return module


def _password(given: Given, options: Mapping[str, str], mechanism: str) -> Password:
    user, password = given.get("sasl.username"), given.values.get("sasl.password")
    user = options.get("username") if user is None else user
    password = options.get("password") if password is None else password
    if not user or password is None:
        missing = "user name" if not user else "password"
        raise ConfigError(
            f"{mechanism} needs a user name and a password, and there is no {missing}",
            "set sasl.username and sasl.password, or sasl.jaas.config",
        )
    return Password(mechanism, user, password, options.get("tokenauth", "").lower() == "true")


def _kerberos(given: Given, jaas: LoginModule) -> Kerberos:
    options = jaas.options
    named, in_jaas = given.get("sasl.kerberos.service.name"), options.get("serviceName")
    if named and in_jaas and named != in_jaas:
        raise ConfigError(
            f"{given.named('sasl.kerberos.service.name')} and serviceName in sasl.jaas.config differ",
            "keep one",
        )
    if not (named or in_jaas):
        raise ConfigError(
            "GSSAPI needs the brokers' service name", "set sasl.kerberos.service.name, mostly to kafka"
        )
    keytab = options.get("keyTab") if options.get("useKeyTab", "").lower() == "true" else None
    # librdkafka's names; its kinit command, which would use them, is not run.
    keytab = keytab or given.get("sasl.kerberos.keytab")
    principal = options.get("principal") or (given.get("sasl.kerberos.principal") if keytab else None)
    if keytab and not principal:
        raise ConfigError(
            "a keytab holds keys of several principals, and none is named", 'add principal="NAME@REALM"'
        )
    return Kerberos(
        service=named or in_jaas or "",
        principal=principal,
        keytab=keytab.removeprefix("file:").removeprefix("FILE:") if keytab else None,
        cache=options.get("ticketCache"),
    )


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
    """Return where the token comes from, from the properties and the login module's options."""
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
        endpoint=TokenEndpoint(
            url,
            https_of(given, options),
            backoff_s=given.number("sasl.login.retry.backoff.ms", default=100) / 1000,
            longest_s=given.number("sasl.login.retry.backoff.max.ms", default=10_000) / 1000,
            connect_timeout_s=given.number("sasl.login.connect.timeout.ms", default=0) / 1000 or None,
            read_timeout_s=given.number("sasl.login.read.timeout.ms", default=0) / 1000 or None,
        ),
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
            f"the token endpoint needs to know who asks: {missing} is not set", f"set {missing}"
        )
    return made


def _has_port(url: str) -> bool:
    """Return whether the port is a number, or missing."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


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
    """Return SASL extensions: Java's `extension_NAME` options and librdkafka's list, or ConfigError."""
    extensions: dict[str, str] = {}
    for prefix in ("extension_", "unsecuredLoginExtension_"):
        extensions |= {
            name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)
        }
    for pair in filter(None, (part.strip() for part in (given.get(_O + "extensions") or "").split(","))):
        name, _, value = pair.partition("=")
        extensions[name] = value
    for name, value in extensions.items():
        if name == "auth" or not _KEY.fullmatch(name) or not _VALUE.fullmatch(value):
            shown = name if _KEY.fullmatch(name) else "an extension"
            raise ConfigError(
                f"OAUTHBEARER cannot send {shown} as an extension", "letters=printable text, and not `auth`"
            )
    return extensions


def _unsecured(config: str) -> dict[str, str]:
    """Return librdkafka's sasl.oauthbearer.config in the words of Java's login module."""
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
