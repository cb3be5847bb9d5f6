"""Imports kafka-python once with its deprecation warnings off: it reads its schemas the old way."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401
