"""`doctor --at` and `lag --at`: the recording and the moment that a command names."""

from collections.abc import Sequence

from kgroup.admin.recording.then import Then, at
from kgroup.cli.env.invocation import Env
from kgroup.cli.inputs.locations import storage_options
from kgroup.cli.output.times import parse_time
from kgroup.errors import ConfigError
from kgroup.history.sources.folders import folder_at
from kgroup.storage.location import Location


def recorded_at(
    env: Env,
    moment: str,
    files: Sequence[str] | None,
    options: Sequence[str] | None,
    *,
    with_lag: bool = False,
) -> Then:
    """Return what the one recording that --files names had at --at; ConfigError for none or several."""
    if files is None or len(files) != 1:
        raise ConfigError("--at reads one recording", "add --files DIR or URL, that of kgroup record")
    folder = folder_at(Location.parse(files[0]), storage_options(env, options))
    return at(folder, parse_time(moment), with_lag=with_lag)
