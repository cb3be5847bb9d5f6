"""A while of `make hostile`: strangers at a server beside real clients that must not notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.__main__ import Plan, hostile
from tests.sampled import FULL

pytestmark = pytest.mark.interop


@pytest.mark.timeout(1200)
def test_a_while_of_strangers_harms_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Shorter than a session: the machine is not ours alone.
    harmed = hostile(Plan(60 if FULL else 20, 0, ping_s=9, silent_s=9), tmp_path)
    assert not harmed, capsys.readouterr().out
