"""Objects of a store, on an S3 server of other people."""

import pickle
import socket
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kgroup.errors import (
    ConfigError,
    StorageChanged,
    StorageDenied,
    StorageMissing,
    StorageUnreachable,
)
from kgroup.storage import files as storage_files
from kgroup.storage.failures import failure
from kgroup.storage.files import RemoteFile
from kgroup.storage.location import Location
from kgroup.storage.objects import _version
from kgroup.storage.opening import open_store
from kgroup.storage.options import StorageOptions
from kgroup.storage.store import Store
from tests.s3 import ACCESS, S3Server

DATA = bytes(range(256)) * 40
PATIENCE_S = 120


def opened(s3: S3Server, bucket: str, **more: str) -> tuple[Store, Location]:
    at = Location.parse(f"s3://{bucket}")
    return open_store(at, StorageOptions.of(s3.options | more, PATIENCE_S)), at


def test_objects_are_listed_looked_at_read_in_ranges_written_and_deleted(s3: S3Server) -> None:
    store, at = opened(s3, s3.bucket())
    s3.put(f"{at}a/one.log", DATA)
    s3.put(f"{at}a/b/two.log", DATA[:5])
    s3.put(f"{at}ab/three.log", b"")
    found = sorted(store.walk(at / "a"))
    assert [(str(f.location), f.size) for f in found] == [
        (f"{at}a/b/two.log", 5),
        (f"{at}a/one.log", len(DATA)),
    ]
    assert list(store.walk(at / "none")) == [] and len(list(store.walk(at))) == 3
    one = store.look(at / "a/one.log")
    assert one == found[1]
    assert store.read(one, 250, 260) == DATA[250:260]
    assert store.read(one, len(DATA) - 3, len(DATA) + 9) == DATA[-3:]
    assert store.read(one, len(DATA), len(DATA) + 9) == b""
    written = store.write(at / "w", b"1")
    assert store.write(at / "w", b"22") != written and s3.get(f"{at}w") == b"22"
    store.delete(at / "w")
    store.delete(at / "w")
    with pytest.raises(StorageMissing, match=r"there is no s3://bucket-\d+/w"):
        store.look(at / "w")


def test_an_object_that_changes_while_it_is_read_is_told(s3: S3Server) -> None:
    store, at = opened(s3, s3.bucket())
    s3.put(f"{at}one.log", DATA)
    found = store.look(at / "one.log")
    file = RemoteFile.of(found, StorageOptions.of(s3.options, PATIENCE_S))
    with file.open() as reader:
        assert reader.read(10) == DATA[:10]
        s3.put(f"{at}one.log", DATA[::-1])
        with pytest.raises(StorageChanged, match="one.log changed while it was read"):
            reader.read(10)


def test_an_object_is_read_on_with_the_next_range_fetched_beside(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_files, "_LARGE", 1)
    store, at = opened(s3, s3.bucket())
    s3.put(f"{at}one.log", DATA)
    options = StorageOptions.of(s3.options, PATIENCE_S)
    file = pickle.loads(pickle.dumps(RemoteFile.of(store.look(at / "one.log"), options)))
    assert (file.name, str(file.parent), str(file)) == ("one.log", str(at), f"{at}one.log")
    parts, ranges = [], []
    read = type(store).read
    monkeypatch.setattr(
        type(store), "read", lambda s, f, start, end: ranges.append((start, end)) or read(s, f, start, end)
    )
    with file.open() as reader:
        while part := reader.read(3000):
            parts.append(part)
        assert b"".join(parts) == DATA
        assert ranges == [(0, 3000), (3000, 6000), (6000, 9000), (9000, len(DATA))]
        reader.seek(255)
        assert reader.read(2) == DATA[255:257]
    assert file.read_bytes() == DATA


@pytest.mark.parametrize(
    ("listed", "told", "same"),
    [
        ("0x1", '"0x1"', True),  # as Azure does
        ('"0x1"', '"0x2"', False),
        (None, None, True),
        ('W/"1"', 'W/"2"', True),  # a weak tag says nothing of bytes, time and size do
    ],
)
def test_a_version_is_the_same_however_a_store_writes_it(
    listed: str | None, told: str | None, same: bool
) -> None:
    when = datetime(2026, 3, 1, tzinfo=UTC)
    one, other = ({"e_tag": tag, "last_modified": when, "size": 7} for tag in (listed, told))
    assert (_version(one) == _version(other)) is same
    assert _version(one) != _version({"e_tag": listed and listed + "9", "last_modified": when, "size": 8})


def test_a_listing_is_read_page_by_page(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgroup.storage.objects._PAGE", 2)
    store, at = opened(s3, s3.bucket())
    for number in range(5):
        s3.put(f"{at}{number}", b"x")
    assert [found.location.path for found in store.walk(at)] == list("01234")


def test_a_missing_bucket_is_named(s3: S3Server) -> None:
    store, at = opened(s3, "nobody-has-this")
    with pytest.raises(StorageMissing, match="there is no bucket nobody-has-this"):
        list(store.walk(at))
    with pytest.raises(StorageMissing):
        store.write(at / "x", b"")


def test_wrong_credentials_are_told_without_them(s3: S3Server) -> None:
    store, at = opened(s3, s3.bucket())
    with s3.locked():
        for call in (
            lambda: list(store.walk(at)),
            lambda: store.look(at / "x"),
            lambda: store.write(at / "x", b""),
        ):
            with pytest.raises(StorageDenied, match="denies us access") as caught:
                call()
            told = f"{caught.value.message} {caught.value.hint}"
            assert ACCESS[0] not in told and ACCESS[1] not in told


def test_without_credentials_nothing_is_asked(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at = Location.parse("s3://bucket")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    with pytest.raises(StorageDenied, match="no credentials for s3://bucket/ were found"):
        open_store(at, StorageOptions.of({"AWS_ENDPOINT_URL": s3.endpoint}))
    with pytest.raises(StorageDenied, match="nobody"):
        open_store(at, StorageOptions.of({"AWS_ENDPOINT_URL": s3.endpoint, "AWS_PROFILE": "nobody"}))


def test_a_profile_is_found_as_every_aws_tool_finds_it(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket = s3.bucket()
    for name, value in s3.profile(tmp_path).items():
        monkeypatch.setenv(name, value)
    at = Location.parse(f"s3://{bucket}")
    store = open_store(at, StorageOptions.of({"AWS_PROFILE": "ops"}))
    assert store.write(at / "x", b"1").size == 1


def test_an_endpoint_that_is_not_there_or_says_nothing_is_given_up_in_time() -> None:
    at = Location.parse("s3://bucket")
    options = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StorageUnreachable, match="could not be reached"):
            list(open_store(at, StorageOptions.of(options | {"AWS_ENDPOINT_URL": nobody}, 0.5)).walk(at))
        silent.listen()
        with pytest.raises(StorageUnreachable, match="did not answer within 0.6 s"):
            list(open_store(at, StorageOptions.of(options | {"AWS_ENDPOINT_URL": nobody}, 0.6)).walk(at))


def test_what_a_store_says_within_a_tree_of_causes_is_told_in_a_line() -> None:
    """As deltalake draws it: a server that takes no PUT, one that is busy, one that lets nobody in."""
    at, branch = Location.parse("gs://backups/tables/runs"), "\n   \x1b[31m↳\x1b[0m "
    refused = ("Generic GCS error", "Error performing PUT http://gcs/x?sig=SECRET", "Server returned non-2xx")
    error = failure(OSError(branch.join((*refused, "400 Bad Request"))), at, StorageOptions())
    assert error.message == (
        "gs://backups/tables/runs: Generic GCS error: Error performing PUT http://gcs/x "
        "Server returned non-2xx: 400 Bad Request"
    )
    busy = branch.join(("Generic S3 error", "Server returned non-2xx status code", "503 Slow Down"))
    assert isinstance(failure(OSError(busy), at, StorageOptions()), StorageUnreachable)
    shut = branch.join(("Generic S3 error", "Server returned non-2xx status code", "403 Forbidden"))
    assert isinstance(failure(OSError(shut), at, StorageOptions()), StorageDenied)


def test_an_option_that_the_library_cannot_use_is_refused() -> None:
    at = Location.parse("s3://bucket")
    options = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SKIP_SIGNATURE": "perhaps"}
    with pytest.raises(ConfigError, match="cannot be opened"):
        open_store(at, StorageOptions.of(options))


class Flaky(BaseHTTPRequestHandler):
    """A store that is overloaded for its first requests."""

    refusals = 0
    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        busy = self.asked <= self.refusals
        body = b"<Error><Code>SlowDown</Code></Error>" if busy else b"<ListBucketResult/>"
        self.send_response(503 if busy else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize("refusals", [2, 10_000])
def test_an_overloaded_store_is_asked_again_and_given_up_in_time(
    refusals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Flaky, "refusals", refusals)
    monkeypatch.setattr(Flaky, "asked", 0)
    with ThreadingHTTPServer(("127.0.0.1", 0), Flaky) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_SKIP_SIGNATURE": "true"}
        at = Location.parse("s3://bucket")
        store = open_store(at, StorageOptions.of(options, PATIENCE_S if refusals == 2 else 5))
        if refusals == 2:
            assert list(store.walk(at)) == [] and Flaky.asked == 3
        else:
            with pytest.raises(StorageUnreachable, match="is overloaded or out of order .status 503."):
                list(store.walk(at))
            assert Flaky.asked > 1
        server.shutdown()
