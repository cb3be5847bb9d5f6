"""`kgroup mcp`: read-only tools for agents."""

import sys
from typing import Annotated

from kgroup.cli.declaring import option
from kgroup.cli.env.config import load_config
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.locations import Files, StorageOption, storage_options
from kgroup.extras import require_extra


@make(
    "mcp",
    examples=(
        ("kgroup mcp -b broker:9092", "as a client of MCP starts it: tools about one cluster"),
        ("kgroup mcp -C prod --timeout 1m", "one of the config file's, and each call has a minute"),
        ("kgroup mcp --files ./history", "and a recording, for replay-log, blame, doctor --at and lag --at"),
        ("kgroup mcp", "each call names a context of the config file"),
    ),
    has_json=False,
)
def command(
    env: Env,
    files: Files = None,
    storage_option: StorageOption = None,
    max_bytes: Annotated[
        int, option("--max-bytes N", "The longest answer; what is cut of it is named.", min=8192)
    ] = 65_536,
    max_rows: Annotated[int, option("--max-rows N", "The most rows of each list in an answer.", min=1)] = 500,
) -> ExitCode:
    """Serve read-only tools to an agent: the Model Context Protocol on stdin and stdout.

    The tools are list, describe, lag, doctor, blame, replay-log and explain; they answer with what these
    commands print with -o json. None changes anything, writes a file or takes an address: which cluster and
    which recordings are read stands in the options of this command. Ends when stdin does.
    """
    require_extra("mcp", "kgroup mcp", "mcp.server.lowlevel", "jsonschema")
    from kgroup.cli.agents.serving import Agents, serve
    from kgroup.cli.agents.tools import Given

    env.settings().timeout_s()
    storage_options(env, storage_option)
    # Who chose how to connect did not choose it for other clusters.
    contexts = () if env.flags.keys() - {"timeout"} or env.properties else sorted(load_config().contexts)
    if sys.stdin is None:
        return ExitCode.OK
    if sys.stdin.isatty():
        env.note("an MCP client starts this command and speaks to it; end it with Ctrl-D")
    serve(Agents(env, Given(contexts, files or (), storage_option or (), max_bytes, max_rows)))
    return ExitCode.OK
