"""Stands in for testcontainers in the process of a suite that asks for a broker by it; see tests/outside."""
