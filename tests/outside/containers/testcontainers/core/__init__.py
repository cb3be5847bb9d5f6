"""The modules that quix-streams imports."""
