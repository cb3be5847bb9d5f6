from __future__ import annotations

import pytest

from kgroup.security.principals import ANONYMOUS, Principal


@pytest.mark.parametrize("text", ["User:alice", "User:CN=a:b,O=c", "Group:x", "User:*"])
def test_a_principal_is_read_as_it_was_written(text: str) -> None:
    assert str(Principal.parse(text)) == text


@pytest.mark.parametrize("text", ["", "alice", "User:", ":alice"])
def test_what_names_nobody_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write KIND:NAME"):
        Principal.parse(text)


def test_nobody_in_particular_has_the_name_that_kafka_gives() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
