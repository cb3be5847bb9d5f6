"""`python -m tests.incidents.wrong_clock SECONDS …`: kgroup on a machine whose clock is ahead by so much."""

from __future__ import annotations

import sys
import time

from kgroup.cli.app import main

ahead_s = int(sys.argv[1])
right, right_ns = time.time, time.time_ns
time.time = lambda: right() + ahead_s
time.time_ns = lambda: right_ns() + ahead_s * 10**9
sys.argv[1:] = sys.argv[2:]
main()
