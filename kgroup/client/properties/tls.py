"""The `ssl.*` properties of Java's and of librdkafka's clients as one `Tls`."""

import re
from collections.abc import Mapping

from kgroup.client.properties.given import Given
from kgroup.client.tls.values import Tls
from kgroup.errors import ConfigError
from kgroup.keystores.values import Pem, PemPair, Store

TRUST = ("ssl.truststore.location", "ssl.truststore.certificates", "ssl.ca.location", "ssl.ca.pem")
"""Each names what is trusted; two at once contradict each other."""
KEYS = ("ssl.keystore.location", "ssl.keystore.key", "ssl.certificate.location", "ssl.certificate.pem")
"""Each names our certificate; two at once contradict each other."""
_VERSIONS = ("TLSv1.2", "TLSv1.3")
_TLS_1_3 = re.compile(r"TLS_(AES|CHACHA20)_")
_JAVA_CIPHER = re.compile(r"TLS_(?:(?P<kx>\w+?)_)?WITH_(?P<cipher>\w+)")


def tls_of(given: Given) -> Tls:
    """Return the TLS settings; ConfigError names the property that cannot be used."""
    oldest, newest = _versions(given)
    identify = given.values.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    # OpenSSL's list for TLS 1.2; Java's names are turned into OpenSSL's. Those of TLS 1.3 are always on.
    names = [name for name in re.split(r"[,:\s]+", given.get("ssl.cipher.suites") or "") if name]
    older = [_openssl_name(name) for name in names if not _TLS_1_3.match(name)]
    return Tls(
        trust=_trust(given),
        identity=_identity(given),
        endpoint_identification=identify not in ("", "none"),
        verify=given.flag("enable.ssl.certificate.verification", default=True),
        revoked=given.get("ssl.crl.location"),
        oldest=oldest,
        newest=newest,
        ciphers=":".join(older) or None,
    )


def https_of(given: Given, options: Mapping[str, str]) -> Tls | None:
    """Return a token endpoint's TLS: the login module's ssl options (Java), or librdkafka's `https.ca.*`."""
    own = {name: value for name, value in options.items() if name.startswith("ssl.")}
    if own:
        return tls_of(Given(own, dict.fromkeys(own, "sasl.jaas.config")))
    location, text = given.get("https.ca.location"), given.get("https.ca.pem")
    if location and location != "probe":
        return Tls(trust=Store(location, "https.ca.location"))
    return Tls(trust=Pem(text, "https.ca.pem")) if text else None


def _only(given: Given, names: tuple[str, ...]) -> str | None:
    """Return the one of these that is given; ConfigError when two are."""
    present = [name for name in names if given.get(name)]
    if len(present) > 1:
        raise ConfigError(
            f"{given.named(present[0])} and {given.named(present[1])} contradict each other", "keep one"
        )
    return present[0] if present else None


def _trust(given: Given) -> Store | Pem | None:
    name = _only(given, TRUST)
    value = given.get(name) if name else None
    if name is None or value is None or (name == "ssl.ca.location" and value == "probe"):
        return None
    if name == "ssl.ca.location":
        return Store(value, name, "PEM")
    if name == "ssl.ca.pem":
        return Pem(value, name)
    kind = given.get("ssl.truststore.type")
    if name == "ssl.truststore.certificates":
        _wants_pem(given, "ssl.truststore.type", kind, name)
        return Pem(value, name)
    return Store(value, name, kind, given.values.get("ssl.truststore.password"))


def _identity(given: Given) -> Store | PemPair | None:
    name = _only(given, KEYS)
    key_password = given.values.get("ssl.key.password")
    if name == "ssl.keystore.location":
        location, kind = given.get(name) or "", given.get("ssl.keystore.type")
        return Store(location, name, kind, given.values.get("ssl.keystore.password"), key_password)
    if name == "ssl.keystore.key":
        _wants_pem(given, "ssl.keystore.type", given.get("ssl.keystore.type"), name)
        chain = given.get("ssl.keystore.certificate.chain")
        if chain is None:
            raise ConfigError(
                f"{given.named(name)} is a TLS key without its certificate",
                "set ssl.keystore.certificate.chain too",
            )
        return PemPair(
            Pem(chain, "ssl.keystore.certificate.chain"), Pem(given.get(name) or "", name), key_password
        )
    key = _key(given)
    if name is None:
        if key is not None:
            raise ConfigError(
                f"{given.named(key.setting)} is a TLS key without its certificate",
                "set ssl.certificate.location too",
            )
        if given.get("ssl.keystore.certificate.chain"):
            raise ConfigError(
                f"{given.named('ssl.keystore.certificate.chain')} has no key", "set ssl.keystore.key too"
            )
        return None
    value = given.get(name) or ""
    certificate = Pem(value, name) if name.endswith(".pem") else Store(value, name, "PEM")
    return PemPair(certificate, key, key_password)


def _key(given: Given) -> Store | Pem | None:
    name = _only(given, ("ssl.key.location", "ssl.key.pem"))
    value = given.get(name) if name else None
    if name is None or value is None:
        return None
    return Pem(value, name) if name.endswith(".pem") else Store(value, name, "PEM")


def _wants_pem(given: Given, type_name: str, kind: str | None, name: str) -> None:
    if (kind or "").upper() != "PEM":
        raise ConfigError(
            f"{given.named(name)} wants {type_name}=PEM", f"set {type_name}=PEM, as Java needs it too"
        )


def _versions(given: Given) -> tuple[str, str]:
    """Return the oldest and the newest version that both `ssl.enabled.protocols` and `ssl.protocol` allow."""
    enabled = given.get("ssl.enabled.protocols")
    protocol = given.get("ssl.protocol") or "TLSv1.3"
    versions = [v.strip() for v in enabled.split(",")] if enabled else list(_VERSIONS)
    if protocol == "TLSv1.2":
        versions = [version for version in versions if version != "TLSv1.3"]
    usable = [version for version in _VERSIONS if version in versions]
    if not usable or protocol not in (*_VERSIONS, "TLS"):
        name = "ssl.enabled.protocols" if protocol in (*_VERSIONS, "TLS") else "ssl.protocol"
        raise ConfigError(
            f"{given.named(name)} leaves no version of TLS that is safe", "TLSv1.2 and TLSv1.3 are"
        )
    return usable[0], usable[-1]


def _openssl_name(name: str) -> str:
    """Return ECDHE-RSA-AES128-GCM-SHA256 for TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; other names unchanged."""
    java = _JAVA_CIPHER.fullmatch(name)
    if java is None:
        return name
    exchange = "" if java["kx"] in (None, "RSA") else java["kx"].replace("_", "-") + "-"
    cipher = re.sub(r"AES_(\d+)", r"AES\1", java["cipher"]).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return exchange + cipher.replace("_", "-")
