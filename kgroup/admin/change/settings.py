"""Change settings of a group, and record what they were before."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import ChangeStatus
from kgroup.admin.settings import Items, Setting, Wanted, alter_group


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """A change of a group's settings by `command`, the settings before, and the reason."""

    command: str
    group_id: str
    changes: Mapping[str, Wanted]
    before: tuple[Setting, ...]
    reason: str | None = None


def change_settings(cluster: ClusterView, change: SettingsChange) -> str:
    """Change the settings, all or none, as one journal entry; return its id."""
    plan = {
        "group_id": change.group_id,
        "settings": {
            name: {"append" if value.added else "subtract": list(value.names)}
            if isinstance(value, Items)
            else value
            for name, value in change.changes.items()
        },
        "reason": change.reason,
    }
    image = {"settings": [asdict(setting) for setting in change.before if setting.name in change.changes]}
    named = [{"setting": name} for name in change.changes]
    with cluster.change(change.command, plan, image, named) as entry:
        alter_group(cluster, change.group_id, change.changes)
        entry.results += [{**item, "result": ChangeStatus.DONE} for item in named]
    return entry.id
