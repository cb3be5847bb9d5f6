"""Groups that change their type, and classic members inside a consumer group (KIP-848)."""
