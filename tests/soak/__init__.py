"""Real clients against `kgroup serve` while things go wrong, and an audit of what was acknowledged."""
