"""Groups of a cluster that is reached by REST alone: Confluent's REST API v3, per its OpenAPI document.

`api.py` sends requests (one URL, one cluster, GET only), `documents.py` validates the answers, `groups.py`
lists, describes and measures groups in the admin layer's models. REST reports less than brokers do: a missing
value is None, and an error marks lists that may silently be incomplete.
"""
