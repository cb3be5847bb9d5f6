"""JAAS lines as Kafka's settings have them."""

from __future__ import annotations

import pytest

from kgroup.security.jaas import parse_jaas


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a.b.PlainLoginModule required;", {}),
        ('a.b.PlainLoginModule required user_alice="secret" ;', {"user_alice": "secret"}),
        ("a.b.PlainLoginModule REQUIRED\n  user_a='x y'\n  user_b=z;", {"user_a": "x y", "user_b": "z"}),
        (r'a.b.PlainLoginModule required p="a\"b;c\\=";', {"p": 'a"b;c\\='}),
        ('a.b.PlainLoginModule optional p = "";', {"p": ""}),
        (
            'a.b.PlainLoginModule required // a remark\n /* one more; */ p="tab\\there \\101";',
            {"p": "tab\there A"},
        ),
    ],
)
def test_the_options_of_a_module(text: str, options: dict[str, str]) -> None:
    found = parse_jaas(text)
    assert (found.name, dict(found.options)) == ("PlainLoginModule", options)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "a.b.PlainLoginModule;",
        "a.b.PlainLoginModule required",
        'a.b.PlainLoginModule user_alice="s3cret";',
        'a.b.PlainLoginModule required user_alice "s3cret";',
        'a.b.PlainLoginModule required user_alice="s3cret;',
        "a.b.PlainLoginModule required user_alice=;",
        'a.b.PlainLoginModule required; c.d.PlainLoginModule required user_alice="s3cret";',
    ],
)
def test_what_is_wrong_is_said_without_a_secret(text: str) -> None:
    with pytest.raises(ValueError, match=".") as raised:
        parse_jaas(text)
    assert "s3cret" not in str(raised.value)


def test_options_are_not_in_what_is_shown() -> None:
    assert "s3cret" not in repr(parse_jaas('PlainLoginModule required user_alice="s3cret";'))
