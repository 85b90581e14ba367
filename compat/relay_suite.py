#!/usr/bin/env python3
"""carbon-c-relay's own test suite, through its own script, with the original and with `staunch relay` in its place.

    relay_suite.py [--jobs N] [--only CASE…]
                            each case of the suite of 3.7.3 is run by its run-test.sh, once with the original and once with ours:
                            ours passes, or does not pass in the same words as the original
    relay_suite.py --self-test
                            bends our answers in several ways, each of which must make a case fail

The suite, the original with every transport, and its helper `sendmetric` come from Debian's source package, which .ci/tools
unpacks and builds in compat/.relay/source; nothing of it is kept here. The suite's clock stands at the first of February 1981:
instead of its own library, which knows one of the ways to ask for the time, both run under Debian's faketime. Cases that are
known to fail are in KNOWN, with the reason. Ours is $STAUNCH or target/debug/staunch.

Prints a table with `--table`, and `relay_suite: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did
not run. Without the source or faketime the summary says `SKIPPED`; with COMPAT_STRICT=1 that is a failure.
"""

import argparse
import concurrent.futures
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from comparison import Checks, skip
from daemon import DaemonError, free_port, staunch_binary
from original_relay import SOURCE, built_or_skip

CLOCK = "/usr/lib*/*/faketime/libfaketimeMT.so.1"

# Cases that do not pass, each with whose fault it is and why.
KNOWN = {
    "issue263-c0": "a mistake in an included file: the original crashes behind it, and a crash is what the case expects",
}

# The longest that a share of the cases may take, in seconds.
SHARE_MAX = 240

# A relay may say something between a case's name and its verdict.
VERDICT = re.compile(r"^(?!relay )([\w.-]+): .*?(PASS|FAIL|SKIP)$", re.M | re.S)


class Suite:
    """A copy of the suite's folder for a run beside others: they write their payloads next to the cases, and use one port."""

    def __init__(self, folder, binary, bend=None):
        self.folder = pathlib.Path(folder)
        shutil.copytree(SOURCE / "test", self.folder / "test", symlinks=True)
        (self.folder / "issues").symlink_to(SOURCE / "issues")
        (self.folder / "sendmetric").symlink_to(SOURCE / "sendmetric")
        (self.folder / ".libs").mkdir()
        (self.folder / ".libs/libfaketime.so").symlink_to(glob.glob(CLOCK)[0])
        (self.folder / "tmp").mkdir()
        # A case that the script makes no payload for; that of its packed form is the same.
        for ending in ("payload", "payloadout"):
            (self.folder / f"test/dual-large.{ending}").symlink_to(f"dual-large-compress.{ending}")
        if bend is None:
            (self.folder / "relay").symlink_to(binary)
        else:
            (self.folder / "bin").mkdir()
            (self.folder / "bin/relay").symlink_to(binary)
            (self.folder / "relay").write_text(f"#!/bin/bash\nreal=../bin/relay\n{bend}\n")
            (self.folder / "relay").chmod(0o755)
        # Each run has two ports.
        port, above = free_port(), free_port()
        while above != port + 1:
            port, above = above, free_port()
        script = self.folder / "test/run-test.sh"
        script.write_text(script.read_text().replace("lastport=3020", f"lastport={port}"))

    def run(self, cases):
        """What the script says: the verdict of each case, with its words; those that it did not get to are missing."""
        environment = {**os.environ, "TZ": "UTC", "FAKETIME": "@1981-01-31 23:00:00", "TMPDIR": str(self.folder / "tmp"),
                       "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DISABLE_SHM": "1"}
        done = subprocess.Popen(["./run-test.sh", *cases], cwd=self.folder / "test", env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            said, _ = done.communicate(timeout=SHARE_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(done.pid, signal.SIGKILL)
            said, _ = done.communicate()
            said += "\n(took too long)"
        finally:
            self.end_what_is_left()
        return said

    def end_what_is_left(self):
        """Relays that the script did not end: they are in the background, and their process ids in files."""
        for file in (self.folder / "tmp").glob("*/pidfile-*"):
            try:
                os.kill(int(file.read_text()), signal.SIGKILL)
            except (OSError, ValueError):
                pass


def cases():
    """Names of the configuration cases, and of those with servers: what the script is called with."""
    folder = SOURCE / "test"
    texts = sorted(path.stem for path in folder.iterdir() if path.suffix in (".tst", ".dbg"))
    servers = {path.name.split(".")[0] for path in folder.glob("*.stst")}
    return texts, sorted(name for name in servers if not name.endswith("-2"))


def verdicts(said):
    """Case to verdict and words, and the last of the words."""
    found, rest = {}, said
    for match in VERDICT.finditer(said):
        until = VERDICT.search(said, match.end())
        found[match.group(1)] = (match.group(2), said[match.start():until.start() if until else len(said)])
        rest = said[match.start():]
    return found, rest


def run_all(binaries, shares, jobs):
    """For each binary the verdicts of all cases."""
    results = {name: {} for name in binaries}
    with tempfile.TemporaryDirectory(prefix="suite") as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {}
        for name, binary in binaries.items():
            for number, share in enumerate(shares):
                suite = Suite(pathlib.Path(folder, f"{name}-{number}"), binary)
                running[pool.submit(suite.run, share)] = (name, share)
        for done in concurrent.futures.as_completed(running):
            name, share = running[done]
            found, rest = verdicts(done.result())
            results[name].update(found)
            if not re.search(r"^Ran \d+ tests", rest, re.M):
                results[name][f"{share[0]} …"] = ("FAIL", f"the script did not end in order:\n{rest}")
    return results


# What stands between the script and our program, the case that must fail for it, and how it is bent.
BENT = [
    ("a word of the output", "issue10", '"$real" "$@" | sed "s/every 60 seconds/every 61 seconds/"'),
    ("a line that is lost", "large", '[ "$1" = -v ] || sed -i "s/^match . send/match ^foo.bar.77$ send to blackhole stop; &/" "$5"; exec "$real" "$@"'),
    ("an error in the log", "metriclimits", '"$real" "$@" || exit; [ "$1" = -v ] || echo "[x] (ERR) y" >>"${10}"'),
    ("a clock of its own", "basic", 'unset LD_PRELOAD\nexec "$real" "$@"'),
    ("authorities of its own", "dual-ssl", '[ "$1" = -v ] || set -- "${@:1:$#-2}"\nexec "$real" "$@"'),
    ("a relay that does not start", "dual-tcp", '[ "$1" = -v ] || exit 1; exec "$real" "$@"'),
]


def self_test(binary, jobs, checks):
    """Each bend is one check: its case fails."""
    with tempfile.TemporaryDirectory(prefix="suite") as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        suites = [Suite(pathlib.Path(folder, str(number)), binary, bend) for number, (_, _, bend) in enumerate(BENT)]
        ran = pool.map(lambda suite, bent: verdicts(suite.run([bent[1]]))[0], suites, BENT)
        for (what, case, _), found in zip(BENT, ran):
            checks.that(found.get(case, ("FAIL", ""))[0] == "FAIL", f"UNSEEN {what}")


def compare(original, ours, only, jobs, table, checks):
    texts, servers = cases()
    if only:
        texts, servers = [case for case in texts if case in only], [case for case in servers if case in only]
    shares = [share for share in [texts, *(servers[at::jobs] for at in range(jobs))] if share]
    results = run_all({"original": original, "ours": ours}, shares, jobs)
    for case in sorted(results["original"] | results["ours"]):
        theirs, their_words = results["original"].get(case, ("-", ""))
        verdict, words = results["ours"].get(case, ("-", "the script did not get to it"))
        # Some cases expect what an older version said: the original does not pass them either, and ours says what it says.
        as_theirs = verdict == theirs == "FAIL" and words.split() == their_words.split()
        if table:
            print(f"{case:28} original {theirs:5} ours {verdict:5} {'in the same words' if as_theirs else KNOWN.get(case, '')}")
        if case in KNOWN:
            checks.that(verdict == "FAIL", f"{case} is in KNOWN and does not fail: {verdict}")
        else:
            checks.that(verdict == "PASS" or as_theirs, f"{case}: original {theirs}, ours {verdict}", *words.splitlines()[:60])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--jobs", type=int, default=8)
    arguments.add_argument("--only", nargs="*", default=[])
    arguments.add_argument("--table", action="store_true")
    arguments.add_argument("--self-test", action="store_true")
    options = arguments.parse_args()
    original = built_or_skip()
    if not glob.glob(CLOCK):
        skip("no faketime (Debian: `apt install faketime`)")
    if not shutil.which("ps"):
        skip("no ps (Debian: `apt install procps`)")
    ours, checks = pathlib.Path(staunch_binary()).resolve(), Checks()
    if options.self_test:
        self_test(ours, options.jobs, checks)
    else:
        compare(pathlib.Path(original), ours, options.only, options.jobs, options.table, checks)
    return checks.summary("relay_suite")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DaemonError as error:
        print(f"relay_suite: {error}", file=sys.stderr)
        sys.exit(2)
