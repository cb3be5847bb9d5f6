"""The locks of listeners."""
