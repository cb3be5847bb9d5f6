"""Register instance ids that a group waits for, and remove them again (KIP-345, future work).

The list is a group setting of kgroup's embedded cluster; no Kafka has it (SM-80 to SM-85).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kgroup.admin.change.remove_members import effect_of
from kgroup.admin.change.settings import SettingsChange, change_settings
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import CLASSIC, CONSUMER, ChangeStatus, GroupDescription
from kgroup.admin.read.describe import groups_only
from kgroup.admin.refusals import is_absent
from kgroup.admin.settings import Items, Setting, Wanted, alter_group, settings_of_groups
from kgroup.coordinator.roster import REGISTERED, SETTINGS, TARGET_SIZE, WAIT, registered_in
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError, SafetyRefused

REGISTER, UNREGISTER = "member register", "member unregister"
_NOT_KNOWN = frozenset({ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION})


@dataclass(frozen=True, slots=True)
class Registering:
    """The request: ids to register, or with `remove` to remove, or `all` of them.

    `wait_ms` and `target_size` are set with new ids, and unchanged when None.
    """

    instance_ids: tuple[str, ...] = ()
    remove: bool = False
    all: bool = False
    wait_ms: int | None = None
    target_size: int | None = None

    @property
    def command(self) -> str:
        return UNREGISTER if self.remove else REGISTER


@dataclass(frozen=True, slots=True)
class Registrant:
    """One instance id of a plan: whether it will be registered, and which member has it now, if any.

    `result` is planned, unchanged, or not_found for an id to remove that is not registered.
    """

    instance_id: str
    registered: bool
    member_id: str | None
    result: ChangeStatus
    effect: str

    @property
    def is_missing(self) -> bool:
        """Whether the group will wait for it."""
        return self.registered and self.member_id is None


@dataclass(frozen=True, slots=True)
class RegistrationPlan:
    """A change of a group's registered ids, not yet done. `group` is None while it does not exist."""

    group_id: str
    wanted: Registering
    group: GroupDescription | None
    registrants: tuple[Registrant, ...]
    changes: Mapping[str, Wanted]
    before: Mapping[str, str]

    @property
    def after(self) -> dict[str, str]:
        """The settings after the change, if the list does not change meanwhile."""
        settings = dict(self.before)
        for name, value in self.changes.items():
            if isinstance(value, Items):
                settings[name] = ",".join(row.instance_id for row in self.registrants if row.registered)
            elif value is None:
                settings.pop(name, None)
            else:
                settings[name] = value
        return settings

    @property
    def missing(self) -> tuple[str, ...]:
        """The ids that the group would wait for now."""
        return tuple(row.instance_id for row in self.registrants if row.is_missing)


def plan_registration(cluster: ClusterView, group_id: str, requested: Registering) -> RegistrationPlan:
    """Return the effect of the change, which the broker has validated; the group need not exist.

    Raise ConfigError for ids that a list cannot hold; SafetyRefused for a group of another type;
    BrokerRefused with UNSUPPORTED_VERSION for a broker without registered ids, and as `groups_only` and the
    broker refuse.
    """
    for instance_id in requested.instance_ids:
        if "," in instance_id:
            raise ConfigError(f"{instance_id!r} cannot be registered: a list of ids has no room for a comma")
    # Refuse a broker without registered ids: one that rejects a value that is always valid.
    try:
        alter_group(cluster, group_id, {WAIT: "0"}, validate_only=True)
    except BrokerRefused as error:
        if error.code not in _NOT_KNOWN:
            raise
        raise BrokerRefused(
            ErrorCode.UNSUPPORTED_VERSION,
            "this broker does not know registered instance ids, only an embedded cluster of kgroup does: "
            "nothing was changed",
            detail=error.message,
            hint="kgroup serve; kgroup docs registered-ids-and-standbys says what they are",
        ) from None
    settings = settings_of_groups(cluster, [group_id], SETTINGS)[group_id]
    if isinstance(settings, KgroupError):
        raise settings
    described = groups_only(cluster, [group_id])[group_id]
    group = None if is_absent(described) else described
    if isinstance(group, KgroupError):
        raise group
    if group is not None and group.type not in (CLASSIC, CONSUMER):
        raise SafetyRefused(
            f"{group_id} is a {group.type} group: classic and consumer groups alone have registered ids"
        )
    changes = _changes(requested, settings)
    if changes:
        alter_group(cluster, group_id, changes, validate_only=True)
    return RegistrationPlan(
        group_id, requested, group, _registrants(requested, settings, group), changes, settings
    )


def execute_registration(cluster: ClusterView, made: RegistrationPlan, reason: str | None = None) -> str:
    """Execute a plan as one journal entry, and return its id. Ids added meanwhile by others stay."""
    before = tuple(
        Setting(name, made.before.get(name), "group" if name in made.before else "default")
        for name in made.changes
    )
    change = SettingsChange(made.wanted.command, made.group_id, made.changes, before, reason)
    return change_settings(cluster, change)


def _changes(requested: Registering, before: Mapping[str, str]) -> dict[str, Wanted]:
    """Return the settings to change, without those that already have the value."""
    known = registered_in(before)
    changes: dict[str, Wanted] = {}
    if requested.all:
        return {name: None for name in (REGISTERED, WAIT) if name in before}
    if requested.remove:
        # Compare as written: a list set by hand may have blanks around its commas.
        written = before.get(REGISTERED, "").split(",")
        gone = tuple(dict.fromkeys(part for part in written if part.strip() in requested.instance_ids))
        return {REGISTERED: Items(gone, added=False)} if gone else {}
    new = tuple(name for name in requested.instance_ids if name not in known)
    if new:
        changes[REGISTERED] = Items(new, added=True)
    for name, value in ((WAIT, requested.wait_ms), (TARGET_SIZE, requested.target_size)):
        if value is not None and before.get(name) != str(value):
            changes[name] = str(value)
    return changes


def _registrants(
    requested: Registering, before: Mapping[str, str], group: GroupDescription | None
) -> tuple[Registrant, ...]:
    """Return every id that is registered, would be, or was asked for."""
    known = registered_in(before)
    members = {m.instance_id: m for m in group.known_members if m.instance_id} if group else {}
    leaving = known if requested.all else requested.instance_ids if requested.remove else ()
    heirs = [m for m in group.known_members if m.instance_id not in leaving] if group else []
    registrants = []
    for name in dict.fromkeys((*known, *requested.instance_ids)):
        member = members.get(name)
        result = ChangeStatus.PLANNED
        if name not in leaving:
            effect = "in the group" if member else "missing: the group waits for it"
            if name in known:
                result, effect = ChangeStatus.UNCHANGED, f"registered already, {effect}"
        elif name in known:
            effect = effect_of(member, heirs) if member else "not waited for any more"
        else:
            result, effect = ChangeStatus.NOT_FOUND, "not registered: no-op"
        member_id = member.member_id if member else None
        registrants.append(Registrant(name, name not in leaving, member_id, result, effect))
    return tuple(registrants)
