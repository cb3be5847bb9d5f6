"""`kgroup docs` prints the pages; tests/release runs it where there is no checkout."""

import pytest

from tests.cli.conftest import Kgroup
from tests.house.repository import ROOT


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ((), "README.md"),
        (("exit-codes",), "exit-codes.md"),
        (("docs/exit-codes.md",), "exit-codes.md"),
        (("decisions/0023",), "decisions/0023-what-cannot-be-seen.md"),
    ],
)
def test_a_page_is_printed_as_it_is(page: tuple[str, ...], file: str, kgroup: Kgroup) -> None:
    ran = kgroup("docs", *page)
    assert (ran.code, ran.out, ran.err) == (0, (ROOT / "docs" / file).read_text(encoding="utf-8"), "")


@pytest.mark.parametrize(
    ("page", "hint"),
    [("exit-code", "exit-codes"), ("../README", "README"), ("zzz", "kgroup docs"), ("", "kgroup docs")],
)
def test_a_page_that_is_not_there_is_not_found(page: str, hint: str, kgroup: Kgroup) -> None:
    ran = kgroup("docs", page)
    assert (ran.code, ran.out) == (3, "")
    assert hint in ran.err and "Traceback" not in ran.err
