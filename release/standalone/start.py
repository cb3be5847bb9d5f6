"""Start of the program without Python, and of kgroup's own processes: it is their `sys.executable`."""

import os
import sys

OURS = ("import kgroup.", "from multiprocessing.")
"""How the code of kgroup's own processes begins; no other code is run."""
DEBIANS = "/etc/ssl/certs/ca-certificates.crt"
OTHERS = (
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""A machine's trusted certificates; OpenSSL looks where the machine that built it has them, Debian."""


def start() -> None:
    """Run the command line, or what one of kgroup's processes is for."""
    environment()
    typed = sys.argv
    if typed[1:3] == ["-m", "kgroup"]:
        del typed[1:3]
    elif typed[1:2] == ["--multiprocessing-fork"]:
        from multiprocessing import freeze_support

        freeze_support()
    elif "-c" in typed[1:-1]:
        at = typed.index("-c")
        # Behind Python's own options, as kgroup starts it: no word of a command line gets here.
        if typed[at + 1].startswith(OURS) and all(word.startswith("-") for word in typed[1:at]):
            sys.argv = ["-c", *typed[at + 2 :]]
            exec(typed[at + 1], {})
            return
    # A shell passes the name that was typed, which is no path; the single file is elsewhere than its program.
    typed[0] = os.environ.pop("KGROUP_TYPED", sys.executable)

    from kgroup.cli.app import main

    main()


def environment() -> None:
    """Let other programs find their own libraries, and OpenSSL the machine's certificates."""
    before = os.environ.pop("LD_LIBRARY_PATH_ORIG", "")
    os.environ.pop("LD_LIBRARY_PATH", None)
    if before:
        os.environ["LD_LIBRARY_PATH"] = before
    if not os.path.exists(DEBIANS):
        for bundle in filter(os.path.exists, OTHERS):
            os.environ.setdefault("SSL_CERT_FILE", bundle)


# A process of multiprocessing's would look for this file, and run it again.
del __file__
start()
