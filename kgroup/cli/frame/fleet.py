"""`upgrade plan` of many groups: which groups, in which clusters, each asked in its share of the time."""

from dataclasses import replace
from typing import TYPE_CHECKING

from kgroup.admin.migrate.fleet import plan_fleet
from kgroup.admin.migrate.models import words
from kgroup.admin.migrate.waves import WAVE_SIZE, generated
from kgroup.admin.models import ItemError
from kgroup.admin.read.listing import list_groups
from kgroup.admin.read.topic_readers import reading
from kgroup.admin.refusals import item_error
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, limit_of_many, open_admin
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.inputs.group_names import Named, every, expand
from kgroup.cli.output.result import show
from kgroup.cli.views.fleet import Planned, Question, result_of, within
from kgroup.domain import Document
from kgroup.errors import BrokerRefused, ConfigError, Unreachable

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView


def plan_many(env: Env, question: Question) -> ExitCode:
    """Plan the upgrade of many groups and show it; 4 when one is blocked, else 5 or 6 when one is unknown."""
    if bool(question.groups) == question.all_groups and question.topic is None:
        raise ConfigError("name the groups to plan, --all-groups or --topic", "kgroup list shows the groups")
    if question.wave_size is not None and question.waves is None:
        raise ConfigError("--wave-size is about the file of --waves", "add --waves FILE")
    if question.contexts is None:
        with open_admin(env, stop_after_s=limit_of_many(env) if question.read_log else None) as admin:
            planned = [_planned(admin, question, None)]
            where: Document | None = identity(admin, env)
        failed: list[ItemError] = []
    else:
        if env.flags.keys() & {"bootstrap_server", "local", "context"}:
            raise ConfigError("--contexts names the clusters", "leave out -b, --local and -C")
        if question.waves is not None:
            hint = "name it with -C, and leave out --contexts"
            raise ConfigError("a file of waves is about one cluster", hint)
        names = tuple(dict.fromkeys(words(question.contexts)))
        if not names:
            raise ConfigError("--contexts names no context", "kgroup context list shows them")
        planned, failed, where = [], [], None
        for number, name in enumerate(names):
            there = replace(env, flags={**env.flags, "context": name})
            ends_s = limit_of_many(there) if question.read_log else None
            try:
                with (
                    open_admin(there, stop_after_s=ends_s) as admin,
                    # A cluster that does not answer leaves the others their time.
                    env.limit.narrowed(env.limit.left() / (len(names) - number)),
                ):
                    planned.append(_planned(admin, question, name))
            except (BrokerRefused, Unreachable) as error:
                failed.append(within(name, item_error(name, error)))
            except Failure as error:
                # A pattern that matches nothing here may match in the others.
                item = ItemError(error.item or name, error.code, error.message, error.hint)
                failed.append(within(name, item))
    waves = generated(planned[0].fleet, question.wave_size or WAVE_SIZE) if question.waves is not None else ()
    return show(env, result_of(env, question, planned, waves, failed, where))


def _planned(admin: "ClusterView", question: Question, context: str | None) -> Planned:
    if question.topic is None:
        named = every(admin) if question.all_groups else expand(admin, question.groups)
    else:
        listing = list_groups(admin)
        absent: set[str] = set()
        if question.groups:
            names = set(expand(admin, question.groups).groups)
            listing = replace(listing, groups=tuple(g for g in listing.groups if g.group_id in names))
            absent = names - {group.group_id for group in listing.groups}
        listing, _ = reading(admin, listing, question.topic, False)
        named = Named((*(group.group_id for group in listing.groups), *sorted(absent)), listing.errors)
    fleet = plan_fleet(admin, named.groups, patterns=question.patterns, read_log=question.read_log)
    return Planned(context, fleet, named.unseen)
