"""Every family of incidents, so that all of them are entered."""

from . import static_members

__all__ = ["static_members"]
