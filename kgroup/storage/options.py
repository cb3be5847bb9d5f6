"""`--storage-option K=V`: one vocabulary for our own readers and for the library of tables.

The names are those of the `object_store` library, which delta-rs and obstore share: the environment variables
of AWS's tools, and the like for Azure and Google. Each is also taken in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kgroup.errors import ConfigError
from kgroup.storage.location import AZURE, GCS, HDFS, S3, Location

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Key:
    """A key: for which kinds of store, its name in obstore, and whether its value is a secret."""

    kinds: tuple[str, ...]
    name: str
    secret: bool = False


_CLIENT = (S3, GCS, AZURE)
KEYS: Mapping[str, Key] = {
    "AWS_ENDPOINT_URL": Key((S3,), "endpoint"),
    "AWS_REGION": Key((S3,), "region"),
    "AWS_ACCESS_KEY_ID": Key((S3,), "access_key_id"),
    "AWS_SECRET_ACCESS_KEY": Key((S3,), "secret_access_key", secret=True),
    "AWS_SESSION_TOKEN": Key((S3,), "session_token", secret=True),
    "AWS_SKIP_SIGNATURE": Key((S3,), "skip_signature"),
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": Key((S3,), "virtual_hosted_style_request"),
    "AWS_ALLOW_HTTP": Key((S3,), "allow_http"),
    "AWS_PROFILE": Key((S3,), "profile"),
    "GOOGLE_SERVICE_ACCOUNT": Key((GCS,), "service_account"),
    "GOOGLE_SERVICE_ACCOUNT_KEY": Key((GCS,), "service_account_key", secret=True),
    "GOOGLE_APPLICATION_CREDENTIALS": Key((GCS,), "application_credentials"),
    "GOOGLE_BASE_URL": Key((GCS,), "base_url"),
    "GOOGLE_SKIP_SIGNATURE": Key((GCS,), "skip_signature"),
    "AZURE_STORAGE_ACCOUNT_NAME": Key((AZURE,), "account_name"),
    "AZURE_STORAGE_ACCOUNT_KEY": Key((AZURE,), "account_key", secret=True),
    "AZURE_STORAGE_SAS_KEY": Key((AZURE,), "sas_key", secret=True),
    "AZURE_STORAGE_CLIENT_ID": Key((AZURE,), "client_id"),
    "AZURE_STORAGE_CLIENT_SECRET": Key((AZURE,), "client_secret", secret=True),
    "AZURE_STORAGE_TENANT_ID": Key((AZURE,), "tenant_id"),
    "AZURE_STORAGE_ENDPOINT": Key((AZURE,), "endpoint"),
    "AZURE_STORAGE_USE_EMULATOR": Key((AZURE,), "use_emulator"),
    "AZURE_USE_AZURE_CLI": Key((AZURE,), "use_azure_cli"),
    "AZURE_SKIP_SIGNATURE": Key((AZURE,), "skip_signature"),
    "ALLOW_HTTP": Key(_CLIENT, "allow_http"),
    "PROXY_URL": Key(_CLIENT, "proxy_url", secret=True),
    "HADOOP_CONF_DIR": Key((HDFS,), "config_dir"),
    "HADOOP_USER_NAME": Key((HDFS,), "user"),
}
_URLS = ("AWS_ENDPOINT_URL", "GOOGLE_BASE_URL", "AZURE_STORAGE_ENDPOINT")
_HADOOP = ("dfs.", "fs.", "hadoop.")
"""Hadoop's own settings are passed on as they are."""


def check_url(value: str, name: str) -> None:
    """Raise ConfigError, without the value, for an invalid endpoint: the library would end the process."""
    if not re.fullmatch(r"https?://[^\s/@?#]+(/\S*)?", value):
        raise ConfigError(f"{name} is not a URL of http:// or https://", "as in http://127.0.0.1:9000")


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """How stores are reached: values by `KEYS`, and the seconds after which a call is given up.

    Sent to other processes as a value. Neither its text nor an error shows a value.
    """

    values: Mapping[str, str] = field(default_factory=dict, hash=False)
    timeout_s: float = TIMEOUT_S

    @classmethod
    def parse(cls, given: Iterable[str], timeout_s: float = TIMEOUT_S) -> StorageOptions:
        """Read `KEY=VALUE` texts; ConfigError, without the value, for an unknown one."""
        values = {}
        for text in given:
            name, equals, value = text.partition("=")
            if not equals:
                raise ConfigError("--storage-option wants KEY=VALUE", "as in AWS_REGION=eu-west-1")
            values[name] = value
        return cls.of(values, timeout_s)

    @classmethod
    def of(cls, values: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> StorageOptions:
        """Read values by name; ConfigError for an unknown name."""
        known = {}
        for name, value in values.items():
            key = name if name.startswith(_HADOOP) else name.upper()
            if key not in KEYS and not key.startswith(_HADOOP):
                raise ConfigError(f"--storage-option {name!r} is unknown", f"known are {', '.join(KEYS)}")
            if key in _URLS:
                check_url(value, key)
            known[key] = value
        return cls(known, timeout_s)

    def for_kind(self, kind: str) -> dict[str, str]:
        """Return those that matter to one kind of store, by obstore's names for them."""
        return {KEYS[k].name: v for k, v in self.values.items() if k in KEYS and kind in KEYS[k].kinds}

    def hadoop(self) -> dict[str, str]:
        """Return Hadoop's own settings among them."""
        return {k: v for k, v in self.values.items() if k.startswith(_HADOOP)}

    def for_tables(self, location: Location) -> dict[str, str]:
        """Return what delta-rs takes as `storage_options` for a table at this place, by its own names."""
        kind = location.kind
        chosen = {k: v for k, v in self.values.items() if k in KEYS and kind in KEYS[k].kinds}
        return chosen | (self.hadoop() if kind == HDFS else {})

    def hidden(self, text: str) -> str:
        """Return a library's text with the values of secrets taken out."""
        for name, value in self.values.items():
            if value and name in KEYS and KEYS[name].secret:
                text = text.replace(value, "…")
        return text

    def __repr__(self) -> str:
        return f"StorageOptions({', '.join(sorted(self.values))})"

    __str__ = __repr__
