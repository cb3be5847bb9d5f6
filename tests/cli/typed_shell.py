"""A real shell at a terminal: bash with readline, zsh with its line editor, or fish."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROMPT = "READY> "
_BASH = f"PS1='{PROMPT}'\nsource '{ROOT}/completions/kgroup.bash'\n"
_ZSH = f"PS1='{PROMPT}'\nfpath=('{ROOT}/completions' $fpath)\nautoload -Uz compinit\ncompinit -u -D\n"
_FISH = f"function fish_prompt; printf '{PROMPT}'; end; source '{ROOT}/completions/kgroup.fish'"
LIMIT_S = 60
"""The longest that an answer may take on a busy machine."""


class TypedShell:
    """A shell that is typed at; `screen` is what it has written so far."""

    def __init__(self, shell: str, home: Path, folder: Path, environment: Mapping[str, str]) -> None:
        home.mkdir()
        (home / ".zshrc").write_text(_ZSH)
        (home / "bashrc").write_text(_BASH)
        argv = {
            "bash": ["bash", "--noprofile", "--rcfile", str(home / "bashrc"), "-i"],
            "zsh": ["zsh", "-d", "-i"],
            "fish": ["fish", "--private", "-i", "-C", _FISH],
        }[shell]
        own = {"HOME": str(home), "ZDOTDIR": str(home), "INPUTRC": "/dev/null", "TERM": "xterm"}
        environ = {**environment, **own, "LC_ALL": "C.UTF-8"}
        self.screen = ""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            os.execvpe(argv[0], argv, environ)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("4H", 200, 4000, 0, 0))
        self.until(lambda: PROMPT in self.screen)

    def type(self, text: str) -> None:
        """Send the keys."""
        os.write(self._terminal, text.encode())

    def until(self, happened: Callable[[], object]) -> None:
        """Read what the shell writes until this has happened."""
        for _ in range(LIMIT_S * 100):
            if happened():
                return
            if select.select([self._terminal], [], [], 0.01)[0]:
                got = os.read(self._terminal, 65536)
                if b"\x1b[c" in got or b"\x1b[0c" in got:
                    # fish 4 asks what terminal it is, and waits for the answer.
                    os.write(self._terminal, b"\x1b[?62;c")
                self.screen += got.decode(errors="replace")
        raise AssertionError(f"it did not happen; the screen: {self.screen[-4000:]!r}")

    def close(self) -> None:
        """End the shell."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)
