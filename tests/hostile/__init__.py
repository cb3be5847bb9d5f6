"""Strangers: whatever can be sent to a broker, sent to ours, beside real clients that must not notice."""
