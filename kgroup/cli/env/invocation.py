"""What one invocation was given: output options, and the layers of its settings."""

import sys
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from kgroup.cli.env.escaping import clean
from kgroup.client.retry import Limit
from kgroup.domain import value
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.cli.env.config import Target
    from kgroup.cli.env.setting_names import Resolved

FORMATS = ("table", "wide", "json", "ndjson", "yaml", "csv", "csv-safe", "name")
COLORS = ("auto", "always", "never")


@value
class OutputOptions:
    """The output options of data; `color` is resolved already, `columns` None is the command's own choice."""

    format: str = "table"
    columns: tuple[str, ...] | None = None
    headers: bool = True
    color: bool = False
    terminal: bool = False
    for_spreadsheets: bool = False
    """In CSV (`-o csv-safe`): no cell is a formula, none holds a control character."""

    @property
    def is_document(self) -> bool:
        """Whether the JSON envelope is printed, for a failure too."""
        return self.format in ("json", "yaml")

    @property
    def is_lines(self) -> bool:
        """Whether lines and tables for people are printed, and nothing for programs."""
        return self.format in ("table", "wide")


@value
class Env:
    """One invocation of a command: its flags and the environment.

    `flags` holds the given target and connection flags; files are read only by `settings()` or `target()`, so
    commands that need no cluster never open one.
    """

    command: str
    flags: Mapping[str, str]
    properties: tuple[tuple[str, str], ...]
    environ: Mapping[str, str]
    output: OutputOptions
    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    limit: Limit = field(default_factory=lambda: Limit(), compare=False)
    """When the command ends; it begins with the command."""
    changes: bool = False
    """Whether the command changes the cluster: what it prints begins with which one that is."""
    reached: str | None = None
    """The cluster where an option of the command itself names it, --rest or --zookeeper."""
    _resolved: "list[Resolved]" = field(init=False, default_factory=list, repr=False, compare=False)
    _target: "list[Target]" = field(init=False, default_factory=list, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        command: str,
        options: Mapping[str, Any],
        environ: Mapping[str, str],
        *,
        changes: bool = False,
        reached: str | None = None,
    ) -> "Env":
        """Check and collect the shared options (names as in `options._shared`); ConfigError if unusable."""
        flags = {
            name: options[name]
            for name in ("bootstrap_server", "local", "context", "command_config", "timeout")
            if options[name] is not None
        }
        # The text is not quoted: it may be a secret whose name was forgotten.
        properties = tuple(
            pair(text, "an argument of -X", "for example -X security.protocol=SASL_SSL")
            for text in options["property_"] or ()
        )
        format_ = options["output"] or environ.get("KGROUP_OUTPUT") or "table"
        if format_ not in FORMATS:
            origin = "--output" if options["output"] else "KGROUP_OUTPUT"
            hint = "one of " + ", ".join(FORMATS)
            raise ConfigError(f"{origin} {format_!r} is not an output format", hint)
        color = options["color"] or "auto"
        if color not in COLORS:
            raise ConfigError(f"--color {color!r} is unknown", "one of " + ", ".join(COLORS))
        terminal = sys.stdout.isatty()
        automatic = terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        columns = options["columns"]
        return cls(
            command=command,
            flags=flags,
            properties=properties,
            environ=environ,
            output=OutputOptions(
                format="csv" if format_ == "csv-safe" else format_,
                columns=tuple(c.strip() for c in columns.split(",") if c.strip()) if columns else None,
                headers=not options["no_headers"],
                color=color == "always" or (color == "auto" and automatic),
                terminal=terminal,
                for_spreadsheets=format_ == "csv-safe",
            ),
            quiet=options["quiet"],
            verbose=options["verbose"],
            debug=options["debug"],
            changes=changes,
            reached=reached,
        )

    def settings(self) -> "Resolved":
        """Return every setting in force with its origin; the config and properties files are read once.

        So settings stay the same during a command, and a properties file may be a pipe.
        """
        if not self._resolved:
            from kgroup.cli.env.settings import resolve

            self._resolved.append(resolve(self.flags, self.properties, self.environ))
        return self._resolved[0]

    def target(self) -> "Target":
        """Return the cluster to use, determined once; raise ConfigError when there is none."""
        if not self._target:
            from kgroup.cli.env.config import target_of

            self._target.append(target_of(self.settings()))
        return self._target[0]

    def head(self) -> tuple[str, ...]:
        """Return the first lines of what a command that changes the cluster prints for people."""
        return (self.cluster_line(),) if self.changes else ()

    def cluster_line(self) -> str:
        """Return which cluster is used and why, for people."""
        return f"cluster: {self.reached}" if self.reached else self.settings().cluster_line()

    def target_words(self) -> list[str]:
        """Return the options that name the cluster, for another command line; secrets hidden."""
        from kgroup.admin.shell import word
        from kgroup.cli.env.known_settings import shown

        words = [
            f"--{name.replace('_', '-')}={value}" for name, value in self.flags.items() if name != "timeout"
        ]
        words += [f"-X {word(f'{key}={shown(key, value)}')}" for key, value in self.properties]
        return words

    def note(self, text: str) -> None:
        """Print one line to stderr for a person, unless asked to be quiet."""
        if not self.quiet:
            print(clean(text), file=sys.stderr)


def pair(text: str, what: str, hint: str) -> tuple[str, str]:
    """Return key and value of KEY=VALUE, stripped; raise ConfigError that `what` is not that."""
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"{what} is not KEY=VALUE", hint)
    return key.strip(), value.strip()
