"""Places that a command is given: paths and URLs, and how stores are reached."""

from collections.abc import Sequence
from typing import Annotated

from kgroup.cli.declaring import option
from kgroup.cli.env.invocation import Env
from kgroup.storage.options import StorageOptions

StorageOption = Annotated[
    list[str] | None,
    option(
        "--storage-option K=V",
        "Of a store at a URL: AWS_REGION=x; repeatable.",
    ),
]
"""The parameter of a command that takes URLs."""
UploadEvery = Annotated[str, option("--upload-every DURATION", "How often to store at a URL.")]
Files = Annotated[
    list[str] | None,
    option("--files PATH", "Segment files, folders or URLs, no broker needed; repeatable."),
]


def storage_options(env: Env, given: Sequence[str] | None) -> "StorageOptions":
    """Return the options given, with the command's timeout; raise ConfigError for an unknown one."""
    return StorageOptions.parse(given or (), env.settings().timeout_s())
