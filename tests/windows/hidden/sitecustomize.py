"""Python as modules of kgroup find it on Windows, as far as another system can show it.

A process with this folder on its PYTHONPATH starts with it. What only POSIX has is hidden from kgroup alone:
Python's own modules and other packages are Windows' matter where there is one.
"""

from __future__ import annotations

import ast
import builtins
import errno
import os
import sys
from functools import cache, wraps
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

REFUSED = {
    "crypt",
    "curses",
    "fcntl",
    "grp",
    "posix",
    "pty",
    "pwd",
    "readline",
    "resource",
    "syslog",
    "termios",
    "tty",
}
BINARY = 0x8000  # Windows' own number; Linux takes it for O_LARGEFILE, which is always on
_import = builtins.__import__
_text: set[int] = set()


@cache
def lacking(name: str) -> frozenset[str]:
    """What a module of Python's has on Linux and not on Windows, of the stubs that mypy checks with."""
    spec = find_spec("mypy")
    assert spec is not None and spec.origin is not None
    stubs = os.path.join(os.path.dirname(spec.origin), "typeshed", "stdlib", name)
    path = next(p for p in (f"{stubs}.pyi", os.path.join(stubs, "__init__.pyi")) if os.path.exists(p))
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    return frozenset(_declared(tree.body, "linux") - _declared(tree.body, "win32"))


def _declared(body: list[ast.stmt], platform: str) -> set[str]:
    found: set[str] = set()
    system = {"sys": SimpleNamespace(platform=platform, version_info=sys.version_info)}
    for each in body:
        if isinstance(each, ast.If):
            holds = eval(compile(ast.Expression(each.test), "stub", "eval"), system)
            found |= _declared(each.body if holds else each.orelse, platform)
        elif isinstance(each, ast.FunctionDef | ast.ClassDef):
            found.add(each.name)
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found.add(each.target.id)
        elif isinstance(each, ast.Assign):
            found |= {target.id for target in each.targets if isinstance(target, ast.Name)}
        elif isinstance(each, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in each.names}
    return found


class Shown(ModuleType):
    """A module without what Windows lacks, and with what is otherwise there."""

    def __init__(self, real: ModuleType, **other: object) -> None:
        super().__init__(real.__name__, real.__doc__)
        self.__dict__["_real"], self.__dict__["_other"] = real, other

    def __getattr__(self, name: str) -> Any:
        if name in self._other:
            return self._other[name]
        if name in lacking(self.__name__):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on Windows")
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._real, name, value)


# Files: bytes need a flag, and what is open stays where it is.


def _open(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    descriptor = os.open(path, flags, mode, **more)
    (_text.discard if flags & BINARY else _text.add)(descriptor)
    return descriptor


def _read(descriptor: int, size: int) -> bytes:
    assert descriptor not in _text, "without O_BINARY, Windows changes line ends"
    return os.read(descriptor, size)


def _write(descriptor: int, content: bytes) -> int:
    assert descriptor not in _text, "without O_BINARY, Windows changes line ends"
    return os.write(descriptor, content)


def _kill(pid: int, number: int) -> None:
    raise AssertionError(f"os.kill(…, {number}) ends a process on Windows")


def _of_kgroup() -> bool:
    """Whether kgroup asked, itself or through a module of Python's."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "").partition(".")[0]
        if name not in {"pathlib", "shutil", "tempfile", "contextlib", "os"}:
            return name == "kgroup"
        frame = frame.f_back
    return False


def _in_use(path: Any) -> bool:
    at = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    for number in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{number}") == at and not os.path.isdir(at):
                return True
        except OSError:
            continue
    return False


def _stays_open(name: str) -> None:
    call = getattr(os, name)

    @wraps(call)
    def checked(*paths: Any, dir_fd: int | None = None, **more: Any) -> None:
        if dir_fd is not None:
            more["dir_fd"] = dir_fd
        if _of_kgroup():
            beside = "" if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
            for path in paths:
                if _in_use(os.path.join(beside, os.fspath(path))):
                    raise PermissionError(errno.EACCES, "it is in use by another process", str(path))
            if name == "rename" and os.path.exists(paths[1]):
                raise FileExistsError(errno.EEXIST, "it is there already", str(paths[1]))
        call(*paths, **more)

    setattr(os, name, checked)


# Processes


def _subprocess() -> ModuleType:
    import subprocess

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *given: Any, **named: Any) -> None:
            for name in ("pass_fds", "preexec_fn"):
                if named.get(name):
                    raise ValueError(f"{name} is not supported on Windows")
            super().__init__(*given, **named)

    return Shown(subprocess, Popen=Popen)


def _multiprocessing() -> ModuleType:
    import multiprocessing

    def context(method: str = "spawn") -> Any:
        if method != "spawn":
            raise ValueError(f"cannot find context for {method!r} on Windows")
        return multiprocessing.get_context(method)

    return Shown(multiprocessing, get_context=context, get_all_start_methods=lambda: ["spawn"])


def _asyncio() -> ModuleType:
    import asyncio
    import asyncio.unix_events as unix

    def refuse(*_: object) -> None:
        raise NotImplementedError

    class Proactor(asyncio.SelectorEventLoop):
        add_reader = add_writer = refuse

    asyncio.SelectorEventLoop.add_signal_handler = refuse  # type: ignore[method-assign, assignment]
    # Tests run under the other kind of loop, here as there.
    if "pytest" not in sys.modules:
        policy = getattr(unix, "_UnixDefaultEventLoopPolicy", None) or unix.DefaultEventLoopPolicy
        policy._loop_factory = Proactor
    return asyncio


def _msvcrt() -> ModuleType:
    """Locks of one byte, which go with the descriptor as Windows' go with the handle."""
    import fcntl
    import struct

    made = ModuleType("msvcrt")

    def locking(descriptor: int, mode: int, size: int) -> None:
        at = os.lseek(descriptor, 0, os.SEEK_CUR)
        assert mode == 2, "only LK_NBLCK is played"
        writes = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        kind = fcntl.F_WRLCK if writes else fcntl.F_RDLCK
        whole = struct.pack("hhqqi4x", kind, os.SEEK_SET, at, size, 0)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole)
        except OSError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    made.__dict__.update(locking=locking, LK_NBLCK=2)
    return made


def _signal() -> ModuleType:
    import signal

    return Shown(signal)


def _socket() -> ModuleType:
    import socket

    class Socket(socket.socket):
        def bind(self, address: Any) -> None:
            # There a port is free again as soon as its listener is closed.
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            super().bind(address)

    return Shown(socket, socket=Socket)


def _os() -> ModuleType:
    return Shown(
        os,
        name="nt",
        open=_open,
        read=_read,
        write=_write,
        kill=_kill,
        O_BINARY=BINARY,
    )


MADE = {
    "asyncio": _asyncio,
    "msvcrt": _msvcrt,
    "multiprocessing": _multiprocessing,
    "os": _os,
    "signal": _signal,
    "socket": _socket,
    "subprocess": _subprocess,
    "sys": lambda: Shown(sys, platform="win32"),
}
_shown: dict[str, ModuleType] = {}


def _seen(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> ModuleType:
    about = globals or {}
    if not level and "kgroup" in {
        str(about.get(key)).partition(".")[0] for key in ("__name__", "__package__")
    }:
        if name in REFUSED:
            raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
        if name in MADE:
            if name not in _shown:
                _shown[name] = MADE[name]()
            return _shown[name]
    return _import(name, globals, locals, fromlist, level)


builtins.__import__ = _seen
for each in ("remove", "rename", "replace", "unlink"):
    _stays_open(each)
