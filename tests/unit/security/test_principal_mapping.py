"""ssl.principal.mapping.rules: the examples of Kafka's documentation and tests (KIP-371)."""

from __future__ import annotations

import pytest

from kgroup.security.principal_mapping import PrincipalMapping

DOCUMENTED = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U,"
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("", "CN=a,O=b", "CN=a,O=b"),
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        (
            DOCUMENTED,
            "CN=kafka-server1,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown",
            "kafka-server1",
        ),
        (DOCUMENTED, "CN=adminuser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "adminuser@admin"),
        (DOCUMENTED, "cn=someuser,ou=group,dc=example,dc=com", "SOMEUSER@GROUP"),
        (DOCUMENTED, "CN=kafka1.example.com,O=Any", "KAFKA1.EXAMPLE.COM"),
        (DOCUMENTED, "OU=only", "OU=only"),
        ("RULE:^CN=(.*?),.*$/$1/", "O=b", None),
        (r"RULE:^CN=(.*?),.*$/user\/$1/", "CN=a,O=b", "user/a"),
        ("RULE:^CN=(.*?),.*$/$1@$4/", "CN=a,O=b", "a@$4"),
        ("RULE:^CN=(.*?),.*$/$12/", "CN=a,O=b", "a2"),
        ("RULE:^CN=(.*?),.*$/$0/", "CN=a,O=b", "CN=a,O=b"),
        (r"RULE:^CN=(.*?),.*$/\$1/", "CN=a,O=b", "$1"),
        ("RULE:.*/x/ , DEFAULT", "CN=a", "xx"),  # replaceAll goes on behind the end, with the empty match
        ("RULE:^CN=a$/x,y/", "CN=a", "x,y"),
    ],
)
def test_the_first_rule_that_matches_decides(rules: str, name: str, mapped: str | None) -> None:
    assert PrincipalMapping(rules).name_of(name) == mapped


@pytest.mark.parametrize(
    "rules",
    ["default", "RULE:", "RULE:a", "RULE:a/b", "RULE:a/b/c", "RULE:a/b/LU", "DEFAULT;RULE:a/b/", "RULE:(/x/"],
)
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(ValueError, match="is neither DEFAULT nor|is no pattern"):
        PrincipalMapping(rules)
