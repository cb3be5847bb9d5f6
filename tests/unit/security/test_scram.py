"""SCRAM's formulas and messages, by the examples of the RFCs."""

from __future__ import annotations

from base64 import b64decode

import pytest

from kgroup.security.scram import ScramCredential, ScramMechanism, ScramRefused, ScramServer, salted

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SHA_256 = ScramMechanism.SCRAM_SHA_256


def server(find_any: bool = False) -> ScramServer:
    secret = salted(SHA_256, "pencil", SALT, 4096)
    known = {"user": ScramCredential.of(SHA_256, secret, SALT, 4096)}
    find = (lambda user: known["user"]) if find_any else known.get
    return ScramServer(SHA_256, find, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")


def test_the_exchange_of_rfc_7677() -> None:
    made = server()
    first = made.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert first == b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert not made.done
    final = made.step(b"c=biws,r=" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert (made.done, made.user) == (True, "user")


@pytest.mark.parametrize(
    ("first", "user"),
    [
        (b"n,,n=a=2Cb=3Dc,r=x", "a,b=c"),
        (b"n,,n=user,r=x,tokenauth=true", "user"),
        (b"n,a=user,n=user,r=x", "user"),
        (b"n,,m=ext,n=user,r=x", "user"),
    ],
)
def test_what_else_a_first_message_may_have(first: bytes, user: str) -> None:
    made = server(find_any=True)
    assert made.step(first).startswith(b"r=x%hv")
    assert made.user == user


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"y,,n=user,r=x",
        b"p=tls-unique,,n=user,r=x",
        b"n,,n=,r=x",
        b"n,,n=us,er,r=x",
        b"n,,n=user",
        b"n,,n=user,r=",
        b"n,,n=user,r=x,",
        b"n,,n=u\xc3\xbcser,r=x",
        b"n,,n=user=2D,r=x",
        b"n,a=other,n=user,r=x",
        b"n,,n=nobody,r=x",
        b"n,,n=user,r=x\0",
        b"\xff",
    ],
)
def test_first_messages_that_are_none(first: bytes) -> None:
    with pytest.raises(ScramRefused):
        server().step(first)


NONCE = b"x%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


@pytest.mark.parametrize(
    "final",
    [
        b"",
        b"c=biws,r=" + NONCE,
        b"c=biws,r=" + NONCE + b",p=",
        b"c=biws,r=" + NONCE + b",p=AAAA",
        b"c=biws,r=" + NONCE + b",p=A",
        b"c=biws,r=x,p=" + b"A" * 43 + b"=",
        b"c=biws,r=" + NONCE + b",p=" + b"A" * 43 + b"=",
        b"r=" + NONCE + b",p=" + b"A" * 43 + b"=",
        b"\xff",
    ],
)
def test_final_messages_that_prove_nothing(final: bytes) -> None:
    made = server()
    made.step(b"n,,n=user,r=x")
    with pytest.raises(ScramRefused):
        made.step(final)
    assert not made.done


def test_secrets_are_not_in_what_is_shown() -> None:
    credential = ScramCredential(b"salty", b"stored", b"server", 4096)
    assert repr(credential) == "ScramCredential(iterations=4096)"


def test_long_hostile_messages_are_refused_at_once() -> None:
    """A pattern that backtracks would not end within the test's time."""
    for part in (b"a=b,", b"=2C", b"a" * 4, b",,,,", b"n=a,"):
        with pytest.raises(ScramRefused):
            server().step(b"n,," + part * 100_000)
        made = server()
        made.step(b"n,,n=user,r=x")
        with pytest.raises(ScramRefused):
            made.step(b"c=biws,r=" + part * 100_000)
