"""Where the original relay is: $CARBON_C_RELAY, the path, or compat/.relay, into which .ci/tools unpacks Debian's."""

import os
import shutil

from comparison import skip
from daemon import COMPAT

_UNPACKED = COMPAT / ".relay/usr/bin/carbon-c-relay"


def find_or_skip(name):
    """The program's path; where there is none, the comparison `name` ends as skipped."""
    found = os.environ.get("CARBON_C_RELAY") or shutil.which("carbon-c-relay") or shutil.which(_UNPACKED)
    return found or skip(name, "no carbon-c-relay ($CARBON_C_RELAY, the path, or compat/.relay, which .ci/tools makes)")
