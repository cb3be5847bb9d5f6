"""Whom brokers let in, and what they may do: the part of Admin about users and access rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.admin.discovery import ClusterView

if TYPE_CHECKING:
    from kgroup.admin.acls import Acls
    from kgroup.admin.users import Users


class Access:
    """Users and access rules of one cluster."""

    _cluster: ClusterView

    @property
    def acls(self) -> Acls:
        """Who may do what with which resources."""
        from kgroup.admin.acls import Acls

        return Acls(self._cluster)

    @property
    def users(self) -> Users:
        """Those that brokers let in by SCRAM."""
        from kgroup.admin.users import Users

        return Users(self._cluster)
