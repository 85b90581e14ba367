"""Where the original relay is: $CARBON_C_RELAY, the path, or compat/.relay, into which .ci/tools unpacks Debian's."""

import os
import pathlib
import shutil

_UNPACKED = pathlib.Path(__file__).resolve().parent / ".relay/usr/bin/carbon-c-relay"

MISSING = "no carbon-c-relay ($CARBON_C_RELAY, the path, or compat/.relay, which .ci/tools makes)"


def find():
    """The program's path; none when there is none."""
    return os.environ.get("CARBON_C_RELAY") or shutil.which("carbon-c-relay") or shutil.which(_UNPACKED)
