"""The scenario of `kgroup replay-log GROUP --scenario FILE`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgroup.cli.env.invocation import Env
from kgroup.cli.inputs.history import shortcomings, unseen
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.output.pages import write_file
from kgroup.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from kgroup.history.replay import Story


@dataclass(frozen=True, slots=True)
class WantedScenario:
    """The scenario of one group to write to a file."""

    group: str
    path: Path
    replace_names: bool

    def write(self, env: Env, story: "Story", selection: Selection) -> None:
        """Write what happened in the group, if the log has it; raise ConfigError for an unplayable log."""
        from kgroup.scenario.naming import renamed
        from kgroup.scenario.recorded import scenario_in, text_of
        from kgroup.scenario.recording import record

        notes = [note for fold in story.folds.values() for note in (fold.notes or {}).get(self.group, ())]
        if not notes and unseen(story, selection):
            return  # the story's printer reports it
        span, unread = selection.span, len(shortcomings(story, selection)[0])
        recorded = record(self.group, notes, since_ms=span.since_ms, until_ms=span.until_ms, unread=unread)
        text = text_of(renamed(recorded) if self.replace_names else recorded)
        # Damaged records may show impossible events, and a file that cannot be played is useless.
        scenario_in(text, f"what the log says of {self.group}")
        write_file(self.path, text, new=True)
        env.note(f"wrote {self.path}")


def wanted_scenario(selection: Selection, path: Path | None, *, replace_names: bool) -> WantedScenario | None:
    """Return the scenario of `--scenario`, None without it; raise ConfigError unless of one whole group."""
    if path is None:
        if replace_names:
            raise ConfigError("--replace-names is for a scenario", "add --scenario FILE")
        return None
    named = selection.names or []
    if len(named) != 1:
        raise ConfigError("--scenario is of one group", "name it: kgroup replay-log GROUP --scenario FILE")
    if selection.instances or selection.kinds:
        raise ConfigError(
            "--scenario is of all members and events", "leave --instance and --events out, or edit the file"
        )
    if path.is_file():
        raise StorageError(f"{path} is there already", "name another file, or remove it")
    return WantedScenario(named[0], path, replace_names)
