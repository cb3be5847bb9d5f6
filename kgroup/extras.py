"""What an extra brings, and the command that installs it where this kgroup runs.

It names the packages of an extra rather than kgroup: on an index, that name may be somebody else's.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_NOT_IN_BUILD = "not part of this build; use the wheel"
_BUILT = {"kerberos": " (its build needs libkrb5-dev or, on Fedora and RHEL, krb5-devel; and a C compiler)"}
_REQUIRED = re.compile(r"""([^;]+);(.*)\bextra == ["'](\w+)["']""")
_OWN = re.compile(r"kgroup\[([\w,]+)\]")


def require_extra(extra: str, what: str, *modules: str) -> None:
    """Import the modules that `what` needs; raise ConfigError that names the extra of a missing one."""
    missing = []
    for name in modules:
        try:
            import_module(name)
        except ModuleNotFoundError:
            missing.append(name)
        except ImportError as error:  # such as a shared library that the machine does not have
            missing.append(f"{name}, which does not load: {error}")
    if missing:
        raise ConfigError(f"{what} needs {', '.join(missing)}", extra_hint(extra))


def extra_hint(extra: str) -> str:
    """Return how to install an extra beside this kgroup."""
    from importlib.metadata import PackageNotFoundError, distribution

    if getattr(sys, "frozen", False):
        return f"the extra {extra} is {_NOT_IN_BUILD}"
    try:
        installed = distribution("kgroup")
    except PackageNotFoundError:  # such as in a zip on an executor of Spark
        return f"install kgroup's wheel with the extra {extra}"
    packages = dict.fromkeys(_packages(installed, extra))
    if not packages:
        return f"the extra {extra} has no packages for this system"
    checkout = _checkout(installed)
    what = install_command(*packages, checkout=f"{checkout}[{extra}]" if checkout else None)
    return f"install the extra {extra}{_BUILT.get(extra, '')}: {what}"


def install_command(*packages: str, checkout: str | None = None) -> str:
    """Return the command that installs packages beside this kgroup, or newer ones.

    `checkout`: those of kgroup's own folder and extra, where it runs from one.
    """
    prefix, words = Path(sys.prefix), " ".join(map(_word, packages))
    if getattr(sys, "frozen", False):
        return f"it is {_NOT_IN_BUILD}"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx inject {prefix.name} {words}"
    receipt = prefix / "uv-receipt.toml"
    if receipt.exists() and (with_uv := _uv_tool(receipt.read_text(encoding="utf-8"), packages)):
        return with_uv
    return f"{_install()} {f'-e {_word(checkout)}' if checkout else words}"


def _install() -> str:
    pip = Path(sys.executable).with_name("pip.exe" if os.name == "nt" else "pip")
    if pip.exists():
        return f"{_word(str(pip))} install"
    python = _word(sys.executable)
    return f"{python} -m pip install" if _has_pip() else f"uv pip install --python {python}"


def _has_pip() -> bool:
    """Return whether this Python has pip, by its metadata: setuptools acts where its module is looked for."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution("pip")
    except PackageNotFoundError:
        return False
    return True


def _uv_tool(receipt: str, packages: tuple[str, ...]) -> str | None:
    """Return uv's command with all that was beside kgroup before; None if it came from an index."""
    import tomllib

    beside, source = [], None
    for row in tomllib.loads(receipt)["tool"]["requirements"]:
        extras = f"[{','.join(row['extras'])}]" if row.get("extras") else ""
        if row["name"] == "kgroup":
            origin = row.get("editable") or row.get("directory") or row.get("path") or row.get("url")
            source = origin and ("--editable " if "editable" in row else "") + _word(f"{origin}{extras}")
        else:
            beside.append(f"{row['name']}{extras}{row.get('specifier', '')}")
    words = " ".join(f"--with {_word(package)}" for package in (*beside, *packages))
    return f"uv tool install {words} {source}" if source else None


def _packages(distribution: Distribution, extra: str) -> Iterator[str]:
    for requirement in distribution.requires or ():
        needed = _REQUIRED.match(requirement)
        if needed is None or needed[3] != extra:
            continue
        if own := _OWN.fullmatch(needed[1].strip()):
            for name in own[1].split(","):
                yield from _packages(distribution, name)
        elif not (needed[2].strip() and sys.platform == "win32"):  # no extra has another marker
            yield needed[1].strip()


def _checkout(distribution: Distribution) -> Path | None:
    """Return the folder of an editable install (PEP 610)."""
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    if not origin.get("dir_info", {}).get("editable"):
        return None
    return Path(url2pathname(urlsplit(origin["url"]).path))


def _word(text: str) -> str:
    import shlex

    if os.name != "nt":
        return shlex.quote(text)
    # cmd and PowerShell both read it; PowerShell runs no quoted path.
    return text if re.fullmatch(r"[\w.:/\\~-]+", text) else f'"{text}"'
