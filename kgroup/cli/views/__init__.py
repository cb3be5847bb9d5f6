"""Models as text, tables and JSON, one module a subject. Pure but for what is shown live.

What is unknown is `?` or null, never zero or empty; the exit code of a view says what could not be seen.
"""
