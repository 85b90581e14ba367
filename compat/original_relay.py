"""Where the original relay is: $CARBON_C_RELAY, the path, or compat/.relay, into which .ci/tools unpacks Debian's; and its
source beside it, with its test suite, built with every transport."""

import os
import shutil

from comparison import skip
from daemon import COMPAT

_UNPACKED = COMPAT / ".relay/usr/bin/carbon-c-relay"

SOURCE = COMPAT / ".relay/source"


def find_or_skip():
    """The program's path; where there is none, the comparison ends as skipped."""
    found = os.environ.get("CARBON_C_RELAY") or shutil.which("carbon-c-relay") or shutil.which(_UNPACKED)
    return found or skip("no carbon-c-relay ($CARBON_C_RELAY, the path, or compat/.relay, which .ci/tools makes)")


def built_or_skip():
    """The path of the one that is built from the source, in whose folder its suite is; likewise."""
    return shutil.which(SOURCE / "relay") or skip(f"no carbon-c-relay in {SOURCE}: .ci/tools builds it, from a Debian that has the source")
