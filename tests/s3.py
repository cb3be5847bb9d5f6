"""An S3 server on loopback: moto's, filled by boto3, so that neither side of the judge is ours."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from botocore.config import Config
from botocore.session import Session

ACCESS = ("kgroup-test", "kgroup-test-secret")
_numbers = itertools.count()
SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


@dataclass(frozen=True)
class S3Server:
    """A running server; everybody is let in until `locked`."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """What `--storage-option` takes for it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": ACCESS[0],
            "AWS_SECRET_ACCESS_KEY": ACCESS[1],
        }

    @property
    def flags(self) -> list[str]:
        return [
            word for name, value in self.options.items() for word in ("--storage-option", f"{name}={value}")
        ]

    def client(self) -> Any:
        return _client(self.endpoint)

    def bucket(self, folder: Path | None = None, below: str = "", name: str = "") -> str:
        """A bucket, of its own unless it is named, with the files below a folder in it."""
        name = name or f"bucket-{next(_numbers)}"
        self.client().create_bucket(Bucket=name)
        if folder is not None:
            self.upload(folder, f"s3://{name}/{below}")
        return name

    def upload(self, folder: Path, url: str) -> None:
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = "/".join(
                    part for part in (prefix.strip("/"), path.relative_to(folder).as_posix()) if part
                )
                self.put(f"s3://{bucket}/{key}", path.read_bytes())

    def profile(self, folder: Path) -> dict[str, str]:
        """Variables of the environment for AWS's own files, with a profile `ops`, and for this server."""
        (folder / "credentials").write_text(
            f"[ops]\naws_access_key_id={ACCESS[0]}\naws_secret_access_key={ACCESS[1]}\n"
        )
        (folder / "config").write_text("[profile ops]\nregion=us-east-1\n")
        return {
            "AWS_CONFIG_FILE": str(folder / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def put(self, url: str, data: bytes) -> None:
        bucket, _, key = url.removeprefix("s3://").partition("/")
        self.client().put_object(Bucket=bucket, Key=key, Body=data)

    def get(self, url: str) -> bytes:
        bucket, _, key = url.removeprefix("s3://").partition("/")
        return bytes(self.client().get_object(Bucket=bucket, Key=key)["Body"].read())

    def keys(self, bucket: str) -> list[str]:
        told = self.client().list_objects_v2(Bucket=bucket)
        return [each["Key"] for each in told.get("Contents", [])]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Meanwhile nobody is let in whose key the server does not know, and it knows none."""
        before = self._let_in(0)
        try:
            yield
        finally:
            self._let_in(before)

    def _let_in(self, requests: float) -> float:
        """Let so many requests in whoever asks, from now on; how many there were before."""
        told = httpx.post(f"{self.endpoint}/moto-api/reset-auth", content=str(requests)).raise_for_status()
        return float(told.json()["PREVIOUS_INITIAL_NO_AUTH_ACTION_COUNT"])


@cache
def _client(endpoint: str) -> Any:
    return Session().create_client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=ACCESS[0],
        aws_secret_access_key=ACCESS[1],
        config=Config(retries={"total_max_attempts": 1}),
    )


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server on a port of its own, for as long as the block lasts."""
    # In a process of its own: deltalake holds the interpreter's lock for some of its trips over the network.
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None and server.stdout is not None
    try:
        yield S3Server(f"http://127.0.0.1:{int(server.stdout.readline())}")
    finally:
        server.communicate()
