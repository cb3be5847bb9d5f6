"""`upgrade rehearse`: which groups, each on a copy of its records from a cluster's logs or from files."""

from collections.abc import Sequence

from kgroup.admin.migrate.fleet import Fleet, plan_fleet
from kgroup.admin.migrate.rehearse_groups import check_setting, recorded_groups, rehearse_groups
from kgroup.cli.env.invocation import Env, pair
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.inputs.group_names import Named, every, expand, is_glob
from kgroup.cli.inputs.history import opened
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.output.result import show
from kgroup.cli.views.rehearsal import result_of_many, result_of_one
from kgroup.errors import ConfigError, KgroupError


def rehearse_copies(
    env: Env,
    names: Sequence[str],
    all_groups: bool,
    files: Sequence[str],
    settings: Sequence[str],
    options: Sequence[str] | None,
) -> ExitCode:
    """Copy the groups' records, run the migration there, print it; REFUSED when a copy refuses.

    Of a cluster those groups are rehearsed that have a plan, of files those with records.
    """
    if bool(names) == all_groups:
        raise ConfigError("name the groups to rehearse, or --all-groups", "kgroup list shows the groups")
    changed = {}
    for text in settings:
        name, value = pair(text, f"--set {text!r}", "as in group.consumer.migration.policy=disabled")
        check_setting(name)
        changed[name] = value
    one = names[0] if len(names) == 1 and not all_groups and not is_glob(names[0]) else None
    selection = Selection(patterns=tuple(names))
    fleet, named = Fleet((), (), ()), Named(())
    with opened(env, files, selection, options) as source:
        if one is not None:
            groups = [one]
        elif source.admin is None:
            groups = recorded_groups(source, selection)
        else:
            named = every(source.admin) if all_groups else expand(source.admin, names)
            fleet = plan_fleet(source.admin, named.groups)
            groups = [row.group_id for row in fleet.rows]
        done = rehearse_groups(source, groups, changed)
    if one is None:
        return show(env, result_of_many(done, fleet, named.unseen, source.damage, source.cluster))
    rehearsal = done[one]
    if isinstance(rehearsal, KgroupError):
        raise rehearsal
    return show(env, result_of_one(rehearsal, source.damage, source.cluster, with_records=env.verbose))
