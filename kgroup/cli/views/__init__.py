"""Models as text, tables and JSON, one module per subject. Pure except for live views.

Unknown values are `?` or null, never zero or empty; a view's exit code says what could not be seen.
"""
