"""The verbs over HTTP, for tests in any language: `kgroup serve --control`.

`operations` is the table of what can be asked, `openapi` the document that others read, `endpoint` serves it.
Paths and fields of faults and of waiting are those of `kcl fake --control`.
"""
