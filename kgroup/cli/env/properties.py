"""Java properties files as Kafka's own tools take them, turned into librdkafka names."""

import re
from collections.abc import Mapping
from pathlib import Path

from kgroup.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE = re.compile(r"(?P<key>(?:\\.|[^\\\s=:])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_JAAS_OPTION = re.compile(r"""([\w.]+)\s*=\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s;]+)""")

# Java name → librdkafka name, where they differ; the others are spelled alike.
_RENAMED = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.key.password": "ssl.key.password",
    "sasl.mechanism": "sasl.mechanism",
}
_STORES = ("ssl.truststore", "ssl.keystore")
_INLINE_PEM = ("ssl.truststore.certificates", "ssl.keystore.key", "ssl.keystore.certificate.chain")
_CLASS = re.compile(r"[a-z]\w*(?:\.[a-z]\w*)*\.[A-Z]\w*LoginModule")
PLAIN_OR_SCRAM = ("PlainLoginModule", "ScramLoginModule")


def parse_properties(text: str) -> dict[str, str]:
    """The pairs of a `.properties` text by java.util.Properties' rules (comments, escapes, continuation)."""
    result: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _LINE.fullmatch(line)
        assert match is not None
        result[_unescape(match["key"])] = _unescape(match["value"])
    return result


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        line = pending + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
            continue
        lines.append(line)
        pending = ""
    return [*lines, pending] if pending else lines


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        token = match[1]
        return chr(int(token[1:], 16)) if len(token) == 5 else _ESCAPES.get(token, token)

    return _ESCAPED.sub(replace, text)


def read_command_config(path: Path) -> dict[str, str]:
    """The settings of a `--command-config` file by librdkafka name; ConfigError for what we cannot use."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"cannot read the command config {path}: {reason}") from None
    return from_java(parse_properties(text), str(path))


def from_java(values: Mapping[str, str], where: str) -> dict[str, str]:
    """Java client properties as librdkafka properties; keys unrelated to the connection pass through."""
    _refuse_java_stores(values, where)
    result: dict[str, str] = {}
    for key, value in values.items():
        if key == "sasl.jaas.config":
            result |= parse_jaas(value, where)
        elif key == "ssl.keystore.location":
            # A PEM key store holds the private key and its certificate chain in one file.
            result["ssl.certificate.location"] = result["ssl.key.location"] = value
        elif not key.endswith((".type", ".password")) or key == "ssl.key.password":
            result[_RENAMED.get(key, key)] = value
    return result


def _refuse_java_stores(values: Mapping[str, str], where: str) -> None:
    for key in _INLINE_PEM:
        if key in values:
            raise ConfigError(
                f"{key} in {where}: inline PEM is not supported",
                "put the PEM into a file and name it in ssl.truststore.location or ssl.keystore.location",
            )
    for store in _STORES:
        location = values.get(f"{store}.location")
        if location is None:
            continue
        kind = values.get(f"{store}.type", "PEM" if _looks_like_pem(location) else "JKS").upper()
        if kind != "PEM":
            raise ConfigError(
                f"{store}.location in {where} is a {kind} store, which only Java reads",
                f"export it as PEM and set {store}.type=PEM: keytool -importkeystore to PKCS12, "
                "then openssl pkcs12 -nodes",
            )


def _looks_like_pem(location: str) -> bool:
    return location.lower().endswith((".pem", ".crt", ".cer", ".key"))


def parse_jaas(text: str, where: str) -> dict[str, str]:
    """`sasl.username` and `sasl.password` of a PLAIN or SCRAM `sasl.jaas.config`; ConfigError for others."""
    module = text.strip().split(None, 1)[0] if text.strip() else ""
    if not module.endswith(PLAIN_OR_SCRAM):
        # Anything but the name of a class may be a part of the secret.
        named = module if _CLASS.fullmatch(module) else "no login module"
        raise ConfigError(
            f"sasl.jaas.config in {where} uses {named}, which kgroup cannot",
            "supported: PlainLoginModule and ScramLoginModule",
        )
    options = {key: _unquote(value) for key, value in _JAAS_OPTION.findall(text)}
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise ConfigError(f"sasl.jaas.config in {where} has no {missing[0]}")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _unquote(value: str) -> str:
    return _ESCAPED.sub(lambda m: m[1], value[1:-1]) if value[:1] in "\"'" else value
