"""`kgroup completion`: a completion script for the user's shell."""

from typing import Annotated

from kgroup.cli.declaring import argument
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.generated import SHELLS, completion_script
from kgroup.cli.frame.options import make
from kgroup.errors import ConfigError


@make(
    "completion",
    examples=(
        ("kgroup completion bash >> ~/.bashrc", "bash, for good"),
        ("mkdir -p ~/.zfunc && kgroup completion zsh > ~/.zfunc/_kgroup", "zsh, with ~/.zfunc on the fpath"),
        ("kgroup completion fish | source", "fish, for this session"),
    ),
    has_json=False,
)
def command(
    env: Env,
    shell: Annotated[str, argument("bash|zsh|fish", "bash, zsh or fish.", autocompletion=lambda: SHELLS)],
) -> ExitCode:
    """Print the completion script for a shell."""
    if shell not in SHELLS:
        raise ConfigError(f"there is no completion for {shell!r}", "one of " + ", ".join(SHELLS))
    print(completion_script(shell), end="")
    return ExitCode.OK
