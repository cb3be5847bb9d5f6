"""The verbs over HTTP, for tests in any language: `kgroup serve --control`.

`operations` is the table of operations, `openapi` their published document, `endpoint` serves both. Paths and
fields of faults and of waiting are those of `kcl fake --control`.
"""
