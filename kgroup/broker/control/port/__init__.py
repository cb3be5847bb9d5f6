"""The verbs over HTTP, for tests in any language: `kgroup serve --control`.

`operations` derives the operations from the verbs, `openapi` their document; `endpoint` serves both. Paths
and fields of faults and of waiting are those of `kcl fake --control`.
"""
