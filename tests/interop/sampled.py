"""What `make interop` leaves to `make interop-full`, which sets KGROUP_INTEROP=full."""

from __future__ import annotations

import os

import pytest

FULL = os.environ.get("KGROUP_INTEROP") == "full"
in_full = pytest.mark.skipif(not FULL, reason="a part of `make interop-full`")
