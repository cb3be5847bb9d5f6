"""What users name: places, and options for the stores they are in."""

import pickle
from pathlib import Path

import pytest

from kgroup.errors import ConfigError
from kgroup.storage.location import AZURE, GCS, HDFS, S3, Location
from kgroup.storage.options import _URLS, KEYS, StorageOptions


@pytest.mark.parametrize(
    ("text", "kind", "host", "path"),
    [
        ("./backup", "", "", "./backup"),
        ("C:\\backup", "", "", "C:\\backup"),
        ("file:///backup/with%20blank", "", "", "/backup/with blank"),
        ("s3://bucket", S3, "bucket", ""),
        ("s3a://bucket/a/b.log", S3, "bucket", "a/b.log"),
        ("S3://bucket/a%20b?c#d/", S3, "bucket", "a%20b?c#d"),
        ("gs://bucket/a", GCS, "bucket", "a"),
        ("abfss://box@people.dfs.core.windows.net/a", AZURE, "box@people.dfs.core.windows.net", "a"),
        ("hdfs://nn:8020/a/b", HDFS, "nn:8020", "a/b"),
        ("hdfs:///a", HDFS, "", "a"),
    ],
)
def test_a_location_is_a_path_or_a_url(text, kind, host, path):
    found = Location.parse(text)
    assert (found.kind, found.host, found.path) == (kind, host, path)
    assert found.is_local is (kind == "")
    assert Location.parse(str(found)) == found


def test_parts_of_a_location():
    found = Location.parse("abfss://box@people.dfs.core.windows.net/a/b.log")
    assert (found.name, found.parent.name, found.parent.parent.name) == ("b.log", "a", found.host)
    assert (found.container, found.account) == ("box", "people")
    assert found.parent / "b.log" == found
    assert Location.parse("s3://b") / "x" == Location.parse("s3://b/x")
    assert Location.parse(Path("a/b")).local == Path("a/b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ftp://host/a", "ftp:// is nothing that can be read or written"),
        ("file://other/a", "of another machine"),
        ("s3:///a", "names no bucket"),
        ("s3://me:hush@bucket/a", "has a user name or a password in it"),
    ],
)
def test_a_bad_url_is_one_sentence_without_secrets(text, said):
    with pytest.raises(ConfigError, match=said) as caught:
        Location.parse(text)
    assert "hush" not in caught.value.message + str(caught.value.hint)


def test_options_are_one_vocabulary_for_readers_and_tables():
    options = StorageOptions.parse(["aws_region=eu-west-1", "AWS_ENDPOINT_URL=http://a=b", "dfs.ha.x=1"])
    assert options.for_kind(S3) == {"region": "eu-west-1", "endpoint": "http://a=b"}
    assert options.for_kind(GCS) == {}
    told = options.for_tables(Location.parse("s3://bucket/t"))
    assert told == {"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": "http://a=b"}
    assert options.for_tables(Location.parse("hdfs:///t")) == {"dfs.ha.x": "1"}
    assert pickle.loads(pickle.dumps(options)) == options


def test_an_unknown_option_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match="'AWS_REGOIN' is unknown") as caught:
        StorageOptions.parse(["AWS_REGOIN=hush"])
    assert "AWS_REGION" in str(caught.value.hint) and "hush" not in str(caught.value)
    with pytest.raises(ConfigError, match="KEY=VALUE") as caught:
        StorageOptions.parse(["hush"])
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("name", KEYS)
def test_no_value_of_an_option_is_in_its_text(name):
    value = "http://hush" if name in _URLS else "hush"
    options = StorageOptions.of({name: value})
    assert "hush" not in f"{options!r} {options}" and name in str(options)


@pytest.mark.parametrize("name", _URLS)
def test_an_endpoint_is_a_url_without_credentials(name):
    for value in ("hush", "http://me:hush@host", "ftp://hush"):
        with pytest.raises(ConfigError, match="not a URL") as caught:
            StorageOptions.of({name: value})
        assert "hush" not in caught.value.message + str(caught.value.hint)


def test_what_a_library_says_is_shown_without_the_values_of_secrets():
    options = StorageOptions.of({"aws_secret_access_key": "hush", "AWS_REGION": "eu"})
    assert options.hidden("in eu: hush is wrong") == "in eu: … is wrong"
