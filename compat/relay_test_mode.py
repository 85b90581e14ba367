#!/usr/bin/env python3
"""The test mode beside carbon-c-relay's: `-t` with the same flags, file and names prints the same.

    relay_test_mode.py [--seed N] [--files N] [--names N]
                            random configurations, flags and names are given to `carbon-c-relay -t` and to `staunch relay -t`;
                            what both print on stdout is the same text, byte by byte, but for the first line
    relay_test_mode.py --self-test
                            bends our answers in several ways, each of which must show

What differs on purpose is in KNOWN, with the reason: either never written into a configuration here, or made equal before
the texts are compared. The original is looked for as original_relay.py says; without it the summary says `SKIPPED`.

Prints `relay_test_mode: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import difflib
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import original_relay
import relay
from comparison import Bends, Checks, arguments
from daemon import DaemonError, staunch_binary

KNOWN = {
    # Made equal: see `same`.
    "version": "the first line has another version and process id",
    "stub": "hidden rules are called by addresses in memory",
    "result": "3.9 writes what stands behind the name after a result without groups as well, 3.7.3 does not",
    # Not written here.
    "match * route using": "3.7.3 expands it over the last name's match; ours takes the whole name",
    "groups": "a regular expression without groups is replaced where it stands; 3.7.3 puts the replacement in front",
    "tags": "in test mode the original takes tags for a part of the name, other than when it relays; ours never does",
    "results -d": "with -d the original ends a name's way at the first aggregation; ours goes on",
    "results in names": "where a result keeps what stands before the match, the original puts its hidden rule's prefix in the "
                        "middle of the name, prints what is left of it, and lets it out",
    "useall": "the original crashes where a name has no address; ours keeps the name",
    "ssl": "3.7.3 prints two spaces where a `plain` is left out",
    "omitted groups": "where more than ten aggregations are left out, the original leaves out whatever stands in a group",
    "-T": "below 250 ms 3.9 takes 600 ms",
    "-U": "the original prints what the system granted, which is twice as much",
}

FLAGS = [["-H", "a.b.c"], ["-p", "2103"], ["-w", "3"], ["-b", "100"], ["-q", "30000"], ["-L", "0"], ["-B", "7"], ["-T", "1000"], ["-E"],
         ["-c", "-_:"], ["-m", "100"], ["-M", "2000"], ["-M", "32768"], ["-s"], ["-O", "0"], ["-O", "5"], ["-O-1"]]


# Expressions by whose words the original groups rules, if there are enough of them.
GROUPED = [r"x\.load", r"^a.*\.load$", r"load\.(x|y)", r"^z\.disk", r"c[a-z]+\.disk", r"q\.load\)", r"z.ab", r"disk", r"load[0-9]+", r"xyz_load"]


def config(chance, debug):
    """Statements, in an order that the original takes."""
    pick = chance.choice
    base = relay.Config(chance)
    mark = base.theirs.index(f"match * send to {relay.MARK};")
    clusters, rules = base.theirs[:mark], base.theirs[mark + 1:]
    names = [*base.names, relay.MARK]
    if chance.random() < 0.4:
        clusters.append(f"cluster logs file{pick(['', ' ip'])} /tmp/a {pick(['/tmp/b', chr(34) + '/tmp/c d' + chr(34)])};")
        names.append("logs")
    if chance.random() < 0.3:
        clusters.append("cluster six forward [::1]:4 [fe80::1] 10.9.9.9:5 proto udp 10.9.9.8 type syslog;")
        names.append("six")
    if chance.random() < 0.2:
        clusters.append(f"cluster all {pick(['forward', 'any_of', 'failover'])} useall localhost:7 10.9.9.7:7;")
        names.append("all")
    for _ in range(pick([0, 0, 1, 3, 12])):
        text, result = relay.replaced(chance)
        texts = [text] + ([relay.plain(chance)] if chance.random() < 0.3 and "\\" not in result else [])
        kinds = pick([["sum"], ["cnt", "avg"], ["median", "percentile95"], ["min", "maximum", "stddev", "variance"]])
        computes = " ".join(f"compute {kind} write to {number}.{result}" for number, kind in enumerate(kinds))
        to = f"send to {' '.join(chance.sample(names, pick([1, 1, 2]) if len(names) > 1 else 1))}" if chance.random() < 0.5 else ""
        if to and text in (*relay.ONE_GROUP, *relay.TWO_GROUPS) and not text.startswith("^"):
            to = ""
        stop = " stop" if to and chance.random() < 0.3 else ""
        stamp = pick(["", "timestamp at start of bucket", "timestamp at middle of bucket"])
        rules.insert(chance.randint(0, len(rules)), f"aggregate {' '.join(texts)} every 10 seconds expire after 30 seconds {stamp} {computes} {to}{stop};")
    for _ in range(pick([0, 0, 3, 6])):
        stop = pick(["", "", "", " stop"])
        rules.insert(chance.randint(0, len(rules)), f"match {' '.join(chance.choices(GROUPED, k=pick([1, 1, 2])))} send to {pick(names)}{stop};")
    statistics = pick(["", "", "statistics submit every 5 seconds;", "statistics reset counters after interval;", "statistics prefix with x.\\2.y;",
                       'statistics prefix with "a=b\\\\1";', f"statistics send to {pick(names)};", f"statistics send to {pick(names)} stop;"])
    listen = pick(["", "", "listen type linemode 2005 proto tcp 127.0.0.1:2006 proto udp;", "listen type linemode /tmp/s proto unix [::1]:3 proto tcp;"])
    if chance.random() < 0.3:
        rules.append("match *" + pick([" send to blackhole;", f" send to {pick(names)} stop;", " validate ^[0-9] else drop;"]))
    # With -d names are only asked about where nothing is aggregated.
    if debug and chance.random() < 0.7:
        rules = [rule for rule in rules if not rule.startswith("aggregate")]
    follows = debug and any("aggregate" in rule for rule in rules)
    return "\n".join([listen, *clusters, statistics, *rules]) + "\n", follows


def ran(binary, words, path, names):
    done = subprocess.run([*binary, *words, "-t", "-f", path], input="\n".join(names) + "\n", capture_output=True, text=True, timeout=60)
    if done.returncode < 0:
        return None
    # In order of their words: the time in front may differ from one to the next.
    warnings = sorted(line[line.index("warning"):] for line in done.stderr.splitlines(True) if "warning" in line)
    return f"exit {done.returncode}\n" + done.stdout + "".join(warnings)


RESULT = re.compile(r"^(    (?:sum|count|max|min|average|median|percentile[0-9]+|variance|stddev) -> \S*).*$", re.M)


def same(text):
    """A text without what differs in it on purpose."""
    text = re.sub(r"\[[-0-9]* [:0-9]*\] ", "", text)
    text = re.sub(r"^starting carbon-c-relay v.*\n", "", text, count=1, flags=re.M)
    text = re.sub(r"_stub_0x[0-9a-f]*__", "_stub_0x0__", text)
    return RESULT.sub(r"\1", text)


BENT = {
    "no blank line": lambda ours: ours.replace("\n\n", "\n", 3),
    "a stop": lambda ours: ours.replace("\n    stop", "", 1),
    "a member": lambda ours: re.sub(r"(\n        10\.[0-9.]*):", r"\1:9", ours),
    "a class": lambda ours: ours.replace("strncmp", "strstr"),
    "a setting": lambda ours: ours.replace("listen backlog = ", "listen backlog = 1"),
    "a position": lambda ours: re.sub(r"hash_pos\((\d)", r"hash_pos(\g<1>1", ours),
    "a point": lambda ours: re.sub(r"\n( *\d+)@", r"\n\g<1>1@", ours),
    "a group": lambda ours: ours.replace("# end of group", "# the end of group"),
    "nothing": lambda ours: ours.replace("nothing matched", "nothing met"),
    "omitted": lambda ours: ours.replace(" omitted for brevity", ""),
    "exit code": lambda ours: ours.replace("exit 0", "exit 1"),
}


def main():
    options = arguments(__doc__, files=200, names=40)
    original, own = original_relay.find_or_skip(), staunch_binary()
    checks, bends = Checks(), Bends(BENT if options.self_test else {})
    crashed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/relay.conf"
        for number in range(options.files):
            seed = options.seed * 1_000_000 + number
            chance = random.Random(seed)
            flags = sum(chance.sample(FLAGS, chance.choice([0, 1, 1, 2, 4])), ["-H", "host"])
            debug = chance.choice([[], [], [], ["-d"], ["-d"], ["-dd"], ["-ddd"]])
            flags += debug
            text, follows = config(chance, debug in (["-d"], ["-ddd"]))
            if text.count("\naggregate ") > 10:
                flags += ["-O-1"]
            names = [] if follows else [relay.name(chance) for _ in range(options.names)]
            pathlib.Path(path).write_text(text)
            theirs, ours = ran([original], flags, path, names), ran([own, "relay"], flags, path, names)
            if theirs is None:
                crashed += 1
                continue
            if ours is None:
                raise DaemonError(f"ours crashes on {seed}: {' '.join(flags)}\n{text}")
            theirs = same(theirs)
            bends.hold(lambda bend: same(bend(ours)) != theirs)
            lines = difflib.unified_diff(theirs.splitlines(), same(ours).splitlines(), "original", "ours", lineterm="", n=4)
            checks.that(same(ours) == theirs, f"in {seed}, flags {' '.join(flags)}", *list(lines)[:40])
    bends.judge(checks)
    return checks.summary("relay_test_mode", f" (the original crashed on {crashed})")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DaemonError, subprocess.TimeoutExpired) as error:
        print(f"relay_test_mode: {error}", file=sys.stderr)
        sys.exit(2)
