"""The compiled loops tell what their plain source tells: on every incident, whole and with bytes changed."""

import subprocess
import sys
from pathlib import Path

import pytest

from kgroup.history.decode import decoder

from .plain_source import digests


@pytest.mark.skipif(
    decoder.__file__.endswith(".py"), reason="nothing is compiled here: there was no C compiler"
)
def test_compiled_loops_tell_what_their_source_tells() -> None:
    script = Path(__file__).with_name("plain_source.py")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    source, *plain = run.stdout.splitlines()
    assert source == "decoder.py"
    assert plain == digests()
