"""Access rules on disk: there after a restart, and never taken for none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgroup.errors import ConfigError, StorageError
from kgroup.log.files import ACLS
from kgroup.runtime.acl_store import AclStore
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings import STANDARD_AUTHORIZER, BrokerSettings
from kgroup.security.acls import Acl, Operation, PatternType, Permission, ResourceType

ON = {"authorizer.class.name": STANDARD_AUTHORIZER, "offsets.topic.num.partitions": "1"}
RULE = Acl(
    ResourceType.GROUP, "π-", PatternType.PREFIXED, "User:alice", "*", Operation.READ, Permission.ALLOW
)
OTHER = Acl(
    ResourceType.TOPIC, "t", PatternType.LITERAL, "User:*", "10.0.0.1", Operation.ALL, Permission.DENY
)


def open_store(folder: Path | None, cluster_id: str = "c", *, known: bool = False) -> AclStore:
    return AclStore(folder, cluster_id, BrokerSettings(), known=known)


def test_rules_are_there_after_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.add([RULE, OTHER, RULE])
    assert open_store(tmp_path).authorizer.acls == {RULE, OTHER}
    store.remove([OTHER])
    assert open_store(tmp_path, known=True).authorizer.acls == {RULE} == store.authorizer.acls


def test_in_memory_without_a_folder() -> None:
    store = open_store(None, known=True)
    store.add([RULE])
    assert store.authorizer.acls == {RULE}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[:-20], "not a file of access rules"),
        (lambda text: "", "not a file of access rules"),
        (lambda text: text.replace("READ", "WRITE"), "checksum"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "this kgroup reads 1"),
        (lambda text: "[]", "not a file of access rules"),
    ],
)
def test_damage_is_an_error_and_not_no_rules(tmp_path: Path, damage, words: str) -> None:  # type: ignore[no-untyped-def]
    open_store(tmp_path).add([RULE])
    path = tmp_path / ACLS
    path.write_text(damage(path.read_text()))
    with pytest.raises(StorageError, match=words) as caught:
        open_store(tmp_path)
    assert "backup" in (caught.value.hint or "")


def test_the_rules_of_another_cluster_are_an_error(tmp_path: Path) -> None:
    open_store(tmp_path, "this").add([RULE])
    with pytest.raises(StorageError, match="belongs to cluster this, not that"):
        open_store(tmp_path, "that")


def test_a_rule_that_cannot_be_written_does_not_hold(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.add([RULE])
    (tmp_path / f"{ACLS}.tmp").mkdir()
    with pytest.raises(StorageError, match="cannot write"):
        store.add([OTHER])
    with pytest.raises(StorageError, match="cannot write"):
        store.remove([RULE])
    assert store.authorizer.acls == {RULE}


def test_rules_taken_away_are_an_error(tmp_path: Path) -> None:
    first = Cluster(tmp_path, config=ON)
    assert first.acls is not None
    first.acls.add([RULE])
    first.close()
    with_rules = Cluster(tmp_path, config=ON)
    assert with_rules.acls is not None and with_rules.acls.authorizer.acls == {RULE}
    with_rules.close()
    (tmp_path / ACLS).unlink()
    with pytest.raises(StorageError, match="access rules"):
        Cluster(tmp_path, config=ON)


def test_without_an_authorizer_there_are_none(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.acls is None and not (tmp_path / ACLS).exists()
    cluster.close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}, "StandardAuthorizer"),
        ({"super.users": "User:a;bob"}, "'bob' is not KIND:NAME"),
        ({"allow.everyone.if.no.acl.found": "perhaps"}, "true or false"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Cluster(None, config=settings)


def test_settings_are_kept_as_they_were_written() -> None:
    given = {**ON, "super.users": " User:Alice ; Role:Admins", "allow.everyone.if.no.acl.found": "True"}
    cluster = Cluster(None, config=given)
    cluster.configure_broker("", {"log.cleaner.backoff.ms": "20000"})
    assert cluster.settings.super_users == "User:Alice ; Role:Admins"
    assert cluster.acls is not None
    assert cluster.acls.authorizer.super_users == {"User:Alice", "Role:Admins"}
    assert cluster.acls.authorizer.open_by_default


def test_the_file_can_be_read_by_people(tmp_path: Path) -> None:
    open_store(tmp_path).add([OTHER])
    (entry,) = json.loads((tmp_path / ACLS).read_text())["acls"]
    assert entry == {
        "resource_type": "TOPIC",
        "name": "t",
        "pattern": "LITERAL",
        "principal": "User:*",
        "host": "10.0.0.1",
        "operation": "ALL",
        "permission": "DENY",
    }
