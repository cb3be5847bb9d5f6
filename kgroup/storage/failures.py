"""A failure of a store's library → one sentence, of the kind that has the right exit code."""

import re

from kgroup.errors import StorageChanged, StorageDenied, StorageError, StorageMissing, StorageUnreachable
from kgroup.storage.location import AZURE, GCS, HDFS, S3, Location
from kgroup.storage.options import StorageOptions

_CODE = re.compile(r"<Code>(\w+)</Code>|\"reason\": ?\"(\w+)\"")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_STATUS = re.compile(r"status code: (\d{3})|HTTP error: (\d{3})")
_SECRETS = re.compile(r"\?\S*")
"""The query of a URL, which carries signatures."""
_MISSING = ("NoSuchBucket", "NoSuchKey", "ContainerNotFound", "BlobNotFound", "FilesystemNotFound")
_NO_BUCKET = (
    "NoSuchBucket",
    "ContainerNotFound",
    "FilesystemNotFound",
    "bucket does not exist",
)
_REGION = ("redirect without LOCATION", "AuthorizationHeaderMalformed", "PermanentRedirect", "region")
_DENIED = (
    "AccessDenied",
    "PermissionDenied",
    "AccessControlException",
    "Permission denied",
    # object_store's own words, in which deltalake reports it.
    "lacked the necessary privileges",
    "lacked valid authentication credentials",
)
_NO_CREDENTIALS = (
    "169.254.169.254",
    "metadata.google.internal",
    "Error getting token",
    "CredentialsNotLoaded",
)
_NAME = {
    S3: "check its name, and AWS_REGION",
    GCS: "check its name",
    AZURE: "check its name, and the account",
}
_CREDENTIALS = {
    S3: "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of this machine",
    GCS: "check GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login",
    AZURE: "check AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_KEY or the identity of this machine",
    HDFS: "check HADOOP_USER_NAME, or kinit, and the rights of the folder",
}


def failure(error: Exception, at: Location, options: StorageOptions) -> StorageError:
    """Return the failure of a call at a location, fit for a user; never contains a credential."""
    if isinstance(error, StorageError):
        return error
    text = options.hidden(str(error))
    if "↳" in text:
        # deltalake's coloured tree of causes.
        lines = (line.strip(" ↳\t") for line in COLOURS.sub("", text).splitlines())
        text = ": ".join(line for line in lines if line)
    code = next((a or b for a, b in _CODE.findall(text)), "")
    status = next((a or b for a, b in _STATUS.findall(text)), "")
    name = type(error).__name__
    if name == "PreconditionError" or status == "412":
        return changed(at)
    if code in _NO_BUCKET or any(word in text for word in _NO_BUCKET):
        kind = "container" if at.kind == AZURE else "bucket"
        return StorageMissing(f"there is no {kind} {at.container} ({at})", _NAME[at.kind])
    if isinstance(error, FileNotFoundError) or status == "404" or code in _MISSING:
        return StorageMissing(f"there is no {at}", "check its name")
    if denied := _not_let_in(text, code, status, name, at):
        return denied
    timeout_s = options.timeout_s
    if status.startswith("5") or status == "429":
        busy = f"{at} is overloaded or out of order (status {status}), for {timeout_s:g} s of trying"
        return StorageUnreachable(busy, "try again later, or with a longer --timeout")
    if isinstance(error, TimeoutError) or "HTTP error" in text or "onnection" in text or "timed out" in text:
        where = "" if at.kind == HDFS else "the endpoint, "
        return StorageUnreachable(
            f"{at} could not be reached, or did not answer within {timeout_s:g} s",
            f"check {where}the network, and --timeout",
        )
    return StorageError(f"{at}: {_SECRETS.sub('', text.splitlines()[0] if text else name)}")


def changed(at: Location) -> StorageChanged:
    """Return the error for an object that changed since it was found."""
    hint = "run again once nothing writes there; what was read is not used"
    return StorageChanged(f"{at} changed while it was read", hint)


def _not_let_in(text: str, code: str, status: str, name: str, at: Location) -> StorageError | None:
    if status in ("301", "400") and any(word in text for word in _REGION):
        hint = "give the bucket's region by --storage-option AWS_REGION=…"
        return StorageError(f"{at} was not read: its bucket is in another region", hint)
    if any(word in text for word in _NO_CREDENTIALS):
        return StorageDenied(f"no credentials for {at} were found", _CREDENTIALS[at.kind])
    denied = name in ("UnauthenticatedError", "PermissionDeniedError") or status in ("401", "403")
    if denied or code in _DENIED or any(word in text for word in _DENIED):
        why = f" ({code})" if code else ""
        return StorageDenied(f"{at} denies us access{why}", _CREDENTIALS[at.kind])
    return None
