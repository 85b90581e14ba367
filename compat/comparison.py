"""What the comparisons with an original share: what held and what did not, waiting, and bending our own answers.

Not here: the programs under test (daemon.py), what they deliver to (sink.py, graphite.py).
"""

import argparse
import os
import sys
import time


class Failure(Exception):
    """A check did not hold."""


class Checks:
    """Counts what held and prints what did not."""

    def __init__(self):
        self.passed = self.failed = 0

    def that(self, holds, what, *details):
        if holds:
            self.passed += 1
            return
        self.failed += 1
        print(f"DIFFER {what}")
        for detail in details:
            print(f"  {detail}")

    def summary(self, name, more=""):
        """Prints the last line, which `make test` adds up; the exit code."""
        print(f"{name}: {self.passed} passed, {self.failed} failed{more}")
        return 0 if self.passed and not self.failed else 1


class Bends:
    """Ways in which ours could be wrong, `{what: bend}`: a comparison that is any good shows each of them somewhere."""

    def __init__(self, ways):
        self._unseen = dict(ways)

    def hold(self, differs):
        """One comparison: `differs(bend)` is whether it shows our answers bent by `bend`."""
        for what in [what for what, bend in self._unseen.items() if differs(bend)]:
            del self._unseen[what]

    def judge(self, checks):
        """What was never shown counts as failed."""
        for what in self._unseen:
            checks.failed += 1
            print(f"UNSEEN {what}")


def wait_for(what, holds, seconds=10):
    """Waits until `holds()`; the last answer."""
    deadline = time.monotonic() + seconds
    while not (answer := holds()):
        if time.monotonic() > deadline:
            raise Failure(f"waited {seconds} s in vain: {what}")
        time.sleep(0.05)
    return answer


def arguments(doc, **counts):
    """The command line of a comparison of random files: `--self-test`, `--seed`, and how many of what."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--self-test", action="store_true", help="bends our answers, each of which must show")
    parser.add_argument("--seed", type=int, default=1)
    for name, count in counts.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    return parser.parse_args()


def skip(why):
    """Ends the program, which cannot compare anything here: a failure with COMPAT_STRICT=1."""
    print(f"SKIPPED: {why}")
    sys.exit(1 if os.environ.get("COMPAT_STRICT") == "1" else 0)
