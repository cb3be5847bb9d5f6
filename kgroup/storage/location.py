"""A source or a target as it is named: a plain path, or a URL of an object store or of HDFS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from kgroup.errors import ConfigError

S3, GCS, AZURE, HDFS = "s3", "gs", "abfs", "hdfs"
_SCHEMES = {
    "s3": S3,
    "s3a": S3,  # Hadoop's name for the same, as in users' Spark jobs
    "gs": GCS,
    "abfs": AZURE,
    "abfss": AZURE,
    "hdfs": HDFS,
}
_SHAPES = {
    S3: "s3://BUCKET/KEY",
    GCS: "gs://BUCKET/KEY",
    AZURE: "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH",
    HDFS: "hdfs://NAMENODE:PORT/PATH",
}
KNOWN = "a path, or a URL of s3://, gs://, abfs://, abfss://, hdfs:// or file://"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place: `path` on this machine if `scheme` is "", else a URL's parts.

    `scheme` is s3, gs, abfs, abfss or hdfs as it was written; `host` is the bucket, the container
    (`CONTAINER@ACCOUNT…`) or the name node; `path` has no slash at its ends, and is "" for all of a bucket.
    """

    scheme: str
    host: str
    path: str

    @classmethod
    def parse(cls, text: str | Path) -> Location:
        """Return what a user named; ConfigError for a URL that cannot be opened."""
        if isinstance(text, Path) or "://" not in text:
            return cls("", "", str(text))
        scheme, _, rest = text.partition("://")
        scheme = scheme.lower()
        host, _, path = rest.partition("/")
        if scheme == "file":
            if host not in ("", "localhost"):
                raise ConfigError(f"{text!r} names a file of another machine", "as in file:///backup")
            return cls("", "", unquote(f"/{path}"))
        kind = _SCHEMES.get(scheme)
        if kind is None:
            raise ConfigError(f"{scheme}:// is nothing that can be read or written", f"wanted: {KNOWN}")
        # Not shown: what stands before an @ may be a secret.
        if "@" in host and kind != AZURE:
            hint = "credentials are given by the environment or by --storage-option"
            raise ConfigError(f"the {scheme}:// URL has a user name or a password in it", hint)
        if not host and kind != HDFS:
            raise ConfigError(f"{text!r} names no bucket or container", f"as in {_SHAPES[kind]}")
        return cls(scheme, host, path.strip("/"))

    @property
    def is_local(self) -> bool:
        return not self.scheme

    @property
    def kind(self) -> str:
        """`S3`, `GCS`, `AZURE` or `HDFS`; "" for a place on this machine."""
        return _SCHEMES.get(self.scheme, "")

    @property
    def local(self) -> Path:
        """The path on this machine, of a local one."""
        if not self.is_local:
            raise ConfigError(f"{self} is not on this machine", "a path is wanted here")
        return Path(self.path)

    @property
    def name(self) -> str:
        """The last word of the path; of a bucket, the bucket."""
        return Path(self.path).name if self.is_local else self.path.rpartition("/")[2] or self.host

    @property
    def parent(self) -> Location:
        """The folder it is in; a bucket is its own."""
        path = str(Path(self.path).parent) if self.is_local else self.path.rpartition("/")[0]
        return Location(self.scheme, self.host, path)

    @property
    def container(self) -> str:
        """The bucket, or the container of an Azure account."""
        return self.host.partition("@")[0]

    @property
    def account(self) -> str:
        """The Azure account in the URL, "" if none is."""
        return self.host.partition("@")[2].partition(".")[0]

    def __truediv__(self, name: str) -> Location:
        if self.is_local:
            return Location("", "", str(Path(self.path) / name))
        return Location(self.scheme, self.host, f"{self.path}/{name}".strip("/"))

    def __str__(self) -> str:
        if self.is_local:
            return self.path
        return f"{self.scheme}://{self.host}/{self.path}"
