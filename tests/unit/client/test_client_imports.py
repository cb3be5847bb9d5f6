"""What opening a plain connection and listing groups must not import: a command's start is measured in it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "ssl",
    "scramp",
    "asyncio",
    "rich",
    "typer",
    "httpx",
    "numpy",
    "platformdirs",
    "confluent_kafka",
    "yaml",
    "cryptography",
    "jwt",
    "botocore",
    "gssapi",
    "urllib.parse",
)
LATER = (
    "kgroup.client.auth.credentials",
    "kgroup.client.properties.security",
    "kgroup.client.tls.values",
    "kgroup.client.tls.context",
    "kgroup.admin.read.findings",
    "kgroup.admin.read.offsets",
    "kgroup.admin.journal",
    "kgroup.protocol.subscription",
)


@pytest.mark.parametrize("modules", [HEAVY, LATER])
def test_listing_imports_only_what_it_needs(modules: tuple[str, ...]) -> None:
    imports = "kgroup.client.transport, kgroup.admin.read.listing, kgroup.admin.read.describe"
    code = f"import sys, {imports}; print(*[m for m in {modules!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
