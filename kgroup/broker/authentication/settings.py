"""Kafka's settings of listeners, read: where a broker listens, and the security of each listener.

`listeners`, `listener.security.protocol.map`, `advertised.listeners`, and what `ssl.*`, `sasl.*` and
`connections.*` say, for one listener (`listener.name.NAME.…`) or for all. Settings for connections between
brokers mean nothing in a cluster that is one process, and are ignored.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from kgroup.domain import SECURITY_PROTOCOLS
from kgroup.errors import ConfigError
from kgroup.settings import CLASS, INT, LIST, LONG, PASSWORD, STRING, Setting

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LOCAL_HOST = "127.0.0.1"
LISTENERS = Setting("listeners", LIST).documented("Addresses at which this broker listens.")
ADVERTISED = Setting("advertised.listeners", LIST).documented(
    "Addresses that clients of each listener are sent to."
)
PROTOCOL_MAP = Setting("listener.security.protocol.map", STRING).documented(
    "The security protocol of each listener."
)
WHERE = frozenset(row.name for row in (LISTENERS, ADVERTISED, PROTOCOL_MAP))
OF_OTHERS = frozenset(
    {
        "control.plane.listener.name",
        "controller.listener.names",
        "early.start.listeners",
        "inter.broker.listener.name",
        "sasl.mechanism.controller.protocol",
        "sasl.mechanism.inter.broker.protocol",
        "security.inter.broker.protocol",
    }
)
"""For the connections between a Kafka's brokers and controllers."""
_ROWS = (
    Setting("connection.failed.authentication.delay.ms", INT, 100, low=0).documented(
        "Delay of the answer to a failed authentication."
    ),
    Setting("connections.max.reauth.ms", LONG, 0, low=0).documented(
        "The longest session of an authentication; 0 is no limit."
    ),
    Setting("principal.builder.class", CLASS).documented("The class that names principals."),
    Setting("sasl.enabled.mechanisms", LIST).documented("SASL mechanisms that clients may use."),
    Setting("sasl.oauthbearer.clock.skew.seconds", INT, 30, low=0).documented(
        "Difference of clocks allowed for the times of a token."
    ),
    Setting("sasl.oauthbearer.expected.audience", LIST).documented(
        "Audiences of which a token must name one."
    ),
    Setting("sasl.oauthbearer.expected.issuer", STRING).documented("The issuer that a token must name."),
    Setting("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, low=0).documented(
        "How often the keys of tokens are fetched again."
    ),
    Setting("sasl.oauthbearer.jwks.endpoint.url", STRING).documented(
        "Where the keys of tokens are: a file or an HTTPS address."
    ),
    Setting("sasl.oauthbearer.scope.claim.name", STRING).documented(
        "The claim of a token that holds its scope."
    ),
    Setting("sasl.oauthbearer.sub.claim.name", STRING).documented(
        "The claim of a token that holds the user's name."
    ),
    Setting("sasl.server.callback.handler.class", CLASS).documented("The class that validates tokens."),
    Setting("sasl.server.max.receive.size", INT, 524_288, low=0).documented(
        "The largest frame before authentication, in bytes."
    ),
    Setting("ssl.client.auth", STRING).documented(
        "Whether clients must show a certificate: required, requested or none."
    ),
    Setting("ssl.enabled.protocols", LIST).documented("Versions of TLS that are served."),
    Setting("ssl.key.password", PASSWORD).documented("Password of the private key."),
    Setting("ssl.keystore.certificate.chain", PASSWORD).documented("The broker's certificates, in PEM."),
    Setting("ssl.keystore.key", PASSWORD).documented("The broker's private key, in PEM."),
    Setting("ssl.keystore.location", STRING).documented("File with the broker's key and certificates."),
    Setting("ssl.keystore.password", PASSWORD).documented("Password of the key store."),
    Setting("ssl.keystore.type", STRING).documented("Format of the key store: PEM, PKCS12 or JKS."),
    Setting("ssl.principal.mapping.rules", STRING).documented(
        "Rules that turn a certificate's name into a principal."
    ),
    Setting("ssl.truststore.certificates", PASSWORD).documented(
        "Certificates that clients' certificates are checked with, in PEM."
    ),
    Setting("ssl.truststore.location", STRING).documented(
        "File with the certificates that clients' certificates are checked with."
    ),
    Setting("ssl.truststore.password", PASSWORD).documented("Password of the trust store."),
    Setting("ssl.truststore.type", STRING).documented("Format of the trust store: PEM, PKCS12 or JKS."),
)
OF_LISTENERS = {row.name: row for row in _ROWS}
"""The settings of listeners by name, as Kafka 4.3.1's KafkaConfig defines them."""
IDLE = frozenset(
    {"ssl.endpoint.identification.algorithm", "ssl.protocol", "ssl.secure.random.implementation"}
)
"""No effect for a broker that connects to no other and takes what ssl.enabled.protocols says."""
JAAS = "sasl.jaas.config"
_PREFIX = "listener.name."
_LISTENER = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>\[[0-9a-fA-F:.%]*\]|[^:/\[\]]*):(?P<port>-?\d+)"
)
DEFAULT_PRINCIPALS = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """One listener: its name, protocol and address, the address for clients, and its settings.

    The brokers of a cluster listen on consecutive ports; port 0 takes free ones.
    """

    name: str
    protocol: str
    host: str
    port: int
    advertised: tuple[str, int] | None = None
    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    @property
    def where(self) -> str:
        """Its name for messages."""
        return f"listener {self.name}"

    def get(self, name: str, mechanism: str = "") -> str | None:
        """Return a setting that holds here: for this mechanism, for this listener, else for all."""
        own = f"{_PREFIX}{self.name.lower()}."
        names = [own + name, name]
        if mechanism:
            names.insert(0, f"{own}{mechanism.lower()}.{name}")
        for full_name in names:
            if full_name in self.values:
                return self.values[full_name]
        return None

    def number(self, name: str, mechanism: str = "") -> int:
        """Return a setting that is a number, its default where it is not set; ConfigError for any other."""
        text, row = self.get(name, mechanism), OF_LISTENERS[name]
        return int(row.default if text is None else row.given(text))

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms enabled here; ConfigError for one that is not served."""
        given = self.get("sasl.enabled.mechanisms")
        names = tuple(dict.fromkeys(name.strip() for name in (given or "").split(",") if name.strip()))
        unknown = [name for name in names if name not in MECHANISMS]
        if unknown or not names:
            what = f"{unknown[0]} is not served" if unknown else "sasl.enabled.mechanisms is not set"
            raise ConfigError(f"{self.where}: {what}", "served are " + ", ".join(MECHANISMS))
        return names


def is_of_listeners(name: str) -> bool:
    """Return whether a broker's setting is one of those read here, or spelled like one."""
    return name in WHERE | OF_OTHERS | OF_LISTENERS.keys() or name.startswith(
        ("listener.name.", "ssl.", "sasl.")
    )


def listeners_apart(settings: Mapping[str, str]) -> tuple[tuple[ListenerSettings, ...], dict[str, str]]:
    """Return the listeners that the settings describe, and the settings that are not of listeners.

    ConfigError as `read_listeners`.
    """
    of_listeners = {name: text for name, text in settings.items() if is_of_listeners(name)}
    return read_listeners(of_listeners), {n: text for n, text in settings.items() if n not in of_listeners}


def read_listeners(settings: Mapping[str, str]) -> tuple[ListenerSettings, ...]:
    """Return the listeners that the settings describe, in their order; none if `listeners` is not set.

    ConfigError for an unknown setting, for an invalid address or protocol, and for an address beyond this
    machine that is open to all.
    """
    if "listeners" not in settings:
        if settings.keys() - OF_OTHERS - IDLE:
            name = min(settings.keys() - OF_OTHERS - IDLE)
            raise ConfigError(
                f"{name} has no effect without listeners", "as listeners=SASL_SSL://127.0.0.1:9093"
            )
        return ()
    protocols = _protocols(settings.get("listener.security.protocol.map", ""))
    controllers = {name.strip() for name in settings.get("controller.listener.names", "").split(",")}
    advertised = {name: (host, port) for name, host, port in _addresses("advertised.listeners", settings)}
    values = {name: value for name, value in settings.items() if name not in WHERE | OF_OTHERS}
    listeners = []
    for name, host, port in _addresses("listeners", settings):
        if name in controllers:
            continue
        if name not in protocols:
            raise ConfigError(
                f"listener {name} has no security protocol", f"listener.security.protocol.map={name}:SASL_SSL"
            )
        address = advertised.pop(name, None) or _advertised(name, host)
        listeners.append(ListenerSettings(name, protocols[name], host, port, address, values))
    if strange := advertised.keys() - controllers:
        raise ConfigError(f"advertised.listeners names {min(strange)}, which listeners does not")
    if not listeners:
        raise ConfigError("listeners names none for clients", "as listeners=SASL_SSL://127.0.0.1:9093")
    _check_names(values, listeners)
    for listener in listeners:
        required = listener.get("ssl.client.auth") == "required"
        keeps_out = listener.protocol == "SASL_SSL" or (listener.protocol == "SSL" and required)
        if not is_loopback(listener.host) and not keeps_out:
            host = listener.host or "every address of this machine (no host is given)"
            raise ConfigError(
                f"{listener.where} is open to others on {host} and {listener.protocol} does not keep "
                "them out",
                f"listen on {LOCAL_HOST}, or take SASL_SSL, or SSL with ssl.client.auth=required",
            )
    return tuple(listeners)


def is_loopback(host: str) -> bool:
    """Return whether an address is local to this machine; a name must resolve to such ones only."""
    if not host:
        return False
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        pass
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise ConfigError(f"listeners: {host} cannot be resolved: {error.strerror}") from None
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)


def _advertised(name: str, host: str) -> tuple[str, int] | None:
    """Return the default address for clients: the address itself (0: with the port bound)."""
    if not host:
        return socket.getfqdn(), 0
    try:
        unspecified = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        unspecified = False
    if unspecified:
        raise ConfigError(
            f"listener {name} on {host}: clients cannot be sent there",
            f"advertised.listeners={name}://NAME:PORT says where they find it",
        )
    return None


def _addresses(setting: str, settings: Mapping[str, str]) -> list[tuple[str, str, int]]:
    addresses: list[tuple[str, str, int]] = []
    for text in filter(None, (part.strip() for part in settings.get(setting, "").split(","))):
        match = _LISTENER.fullmatch(text)
        if match is None or not 0 <= int(match["port"]) <= 65535:
            raise ConfigError(f"{setting}: {text!r} is not NAME://HOST:PORT", "as SASL_SSL://127.0.0.1:9093")
        name = match["name"].upper()
        if any(name == other for other, _, _ in addresses):
            raise ConfigError(f"{setting} names {name} twice")
        addresses.append((name, match["host"].strip("[]"), int(match["port"])))
    ports = [port for _, _, port in addresses if port]
    if setting == "listeners" and len(ports) != len(set(ports)):
        raise ConfigError("listeners: each listener must have a different port")
    return addresses


def _protocols(text: str) -> dict[str, str]:
    """Return each listener's protocol; without an entry, one named like a protocol has that one."""
    protocols = {name: name for name in SECURITY_PROTOCOLS}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = part.partition(":")
        if not colon or protocol.strip().upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: {part!r} is not NAME:PROTOCOL",
                "protocols are " + ", ".join(SECURITY_PROTOCOLS),
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def _check_names(values: Mapping[str, str], listeners: list[ListenerSettings]) -> None:
    known = {listener.name.lower() for listener in listeners}
    for full in values:
        name = _bare(full, known)
        if name == JAAS and name == full:
            raise ConfigError(
                f"{full} is not set for a listener and a mechanism",
                f"as {_PREFIX}{min(known)}.plain.{JAAS}",
            )
        if name not in OF_LISTENERS.keys() | IDLE | {JAAS}:
            near = get_close_matches(name, sorted(OF_LISTENERS), n=2)
            raise ConfigError(
                f"the setting {full} is not known here", "perhaps " + " or ".join(near) if near else None
            )
    builder = {value for full, value in values.items() if _bare(full, known) == "principal.builder.class"}
    if builder - {DEFAULT_PRINCIPALS}:
        raise ConfigError("principal.builder.class: only Kafka's DefaultKafkaPrincipalBuilder is served")


def _bare(full: str, listeners: set[str]) -> str:
    """Return a setting's name without listener and mechanism."""
    if not full.startswith(_PREFIX):
        return full
    rest = full[len(_PREFIX) :]
    listener = next((name for name in listeners if rest.startswith(f"{name}.")), None)
    if listener is None:
        raise ConfigError(
            f"{full}: there is no such listener", "listeners are " + ", ".join(sorted(listeners))
        )
    name = rest[len(listener) + 1 :]
    for mechanism in MECHANISMS:
        name = name.removeprefix(f"{mechanism.lower()}.")
    return name
