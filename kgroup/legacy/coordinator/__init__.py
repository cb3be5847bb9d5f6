"""The coordinator's machine: `machine` takes events, `election` decides who is active, `reign` is that."""
