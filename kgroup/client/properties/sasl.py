"""The `sasl.*` properties of Java's and of librdkafka's clients as one value of credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kgroup.client.auth.credentials import (
    GSSAPI,
    MECHANISMS,
    MSK_IAM,
    OAUTHBEARER,
    Credentials,
    Kerberos,
    Password,
)
from kgroup.client.properties.aws import aws_login
from kgroup.client.properties.given import Given
from kgroup.client.properties.oauthbearer import bearer_of
from kgroup.errors import ConfigError
from kgroup.security.jaas import LoginModule, parse_jaas

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
    """`sasl.mechanism`, GSSAPI when it is not set (as in Java); ConfigError for one unknown here."""
    mechanism = (given.get("sasl.mechanism", "sasl.mechanisms") or GSSAPI).strip().upper()
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"kgroup cannot authenticate with {given.named('sasl.mechanism', 'sasl.mechanisms')} {mechanism}",
            "supported: " + ", ".join(MECHANISMS),
        )
    return mechanism


def credentials_of(given: Given) -> Credentials:
    """Who we say we are; ConfigError names the property that is missing or cannot be used."""
    mechanism = mechanism_of(given)
    jaas = _jaas(given, mechanism)
    if mechanism == OAUTHBEARER:
        return bearer_of(given, jaas.options)
    if mechanism == MSK_IAM:
        return aws_login(jaas.options)
    return _kerberos(given, jaas) if mechanism == GSSAPI else _password(given, jaas.options, mechanism)


def _jaas(given: Given, mechanism: str) -> LoginModule:
    """The login module given, which must be the mechanism's; one without options if none was."""
    text, wanted = given.get(JAAS), _MODULES[mechanism]
    if text is None:
        return LoginModule(wanted, {})
    try:
        found = parse_jaas(text, closed=False)
    except ValueError as error:
        raise ConfigError(f"{given.named(JAAS)}: {error}", _AS_JAVA) from None
    if not _CLASS.fullmatch(found.class_name):
        # Anything but the name of a class may be a part of the secret.
        raise ConfigError(f"{given.named(JAAS)} begins with no login module", _AS_JAVA)
    if found.name != wanted:
        raise ConfigError(
            f"{given.named(JAAS)} uses {found.name}, and sasl.mechanism {mechanism} wants {wanted}",
            "set sasl.mechanism and sasl.jaas.config to what belongs together",
        )
    return found


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
