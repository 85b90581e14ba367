#!/usr/bin/env python3
"""The configuration language beside carbon-c-relay: the same random files are taken or refused, and printed alike.

    relay_language.py [--seed N] [--files N]
                            files of random statements, most of them with a word changed, left out or put elsewhere, are
                            given to `carbon-c-relay -t` and to ours (crates/import/examples/relay_conf.rs); both take a
                            file or both refuse it, and what they take they print byte by byte alike
    relay_language.py --self-test
                            bends our answers in several ways, each of which must show

What differs on purpose is in KNOWN, with the reason; such files are counted apart. The original is looked for as
original_relay.py says; without it the summary says `SKIPPED`.

Prints `relay_language: N passed, M failed, K differ on purpose`; the exit code is 1 if anything failed.
"""

import pathlib
import random
import re
import subprocess
import sys
import tempfile

import original_relay
from comparison import Bends, Checks, arguments
from daemon import DaemonError, example

# What is right first, what is wrong or odd behind it: `pick` takes the latter now and then.
EXPRESSIONS = (["a", "^a\\.b", "b$", "^c$", "a.*b", "(x|y)z", "[a-c]+", "a{2}", "[[:alpha:]].", "a\\ b", '"a b"', '"a=b"', "a:b",
                "a**", "x|", "()", "a]", "^", '"q\\"r"', "(a)(b)", ".", "a\\-b", "\\^a", '"a\\\\.b"', "a&b", "a{,3}", "(a|)+", "(a)\\1"],
               ["stop", "into", "send", "every", "a(", "*a", "[z-a]x", "a{2,1}", "*", "a)", "a{", "[a", "a{x}", "^*", "(a)\\2", "\\1a"])
NAMES = (["a", "b"], ["c-1", "forward", "match", '"x y"', "blackhole", "tcp", "nope"])
NEW = (["c", "d-1", "e_2", '"x y"', "forward", "match", "a.b"], ["a", "tcp", "blackhole", "stop"])
HOSTS = (["10.0.0.1", "10.0.0.2=x", "10.0.0.3 proto udp", "10.0.0.4 type syslog", "[::1]", "[::2]:2005", "h.invalid",
          "10.0.0.7 proto tcp type linemode", "10.0.0.8:2103", "fe80::1:2003", '"10.0.0.9"', '10.0.0.10:2003="i j"'],
         ["10.0.0.1:2003", "10.0.0.2:2003=y", "10.1.0.1", "10.0.0.5:0", "10.0.0.6:x", "10.0.0.4", "[::1", "10.0.0.7:"])
RECEPTORS = (["2003 proto tcp", "2003 proto udp", "127.0.0.1:2004 proto tcp", "/tmp/s proto unix", "[::1]:2005 proto tcp"],
             ["0 proto tcp", "2004 proto tcp", "/tmp/s proto tcp", "2006"])
WORDS = ["stop", "send", "to", "proto", "udp", "match", "cluster", "a", "10", ";", "*", "=", '"w"', "else", "useall",
         "replication", "dynamic", "validate", "every", "compute"]

# What our message or the file must have in it, and why we differ. `None` as the first: whatever we say.
KNOWN = [
    (None, r'#', "the original takes a quoted `#` for a comment when a line ends behind it"),
    ("closes nothing", r"\)", "the C library takes a `)` that closes nothing for itself, PCRE2 refuses it"),
    ("is no port", r":(\+|0*65536)", "the original takes `+2003`, spaces before digits and ports past 65535"),
    ("the next statement begins", "", "the original takes the next statement's words for hosts or names"),
    ("more than one colon", "", "the original takes `::1` for host `:` and port 1"),
    (None, r"statistics[^;]*send to[^;]*;(?s:.*)cluster", "the original wants clusters before the statistics, and prints them behind"),
    (None, r"(?m)^(statistics|aggregate|match)(?:(?!send to).)*\bstop\b", "the original takes `stop` only behind `send to`"),
    ("a rewrite needs an expression", "", "the original reads a rewrite of `*` as a regular expression that is none"),
]
# Files that the original takes and prints, but not so that it could be compared.
UNPRINTED = re.compile(r"[\x80-\xff]")


def some(chance, kinds, count=1):
    """So many different ones, of which hardly any is wrong."""
    right, wrong = kinds
    found = chance.sample(right, min(count, len(right)))
    if chance.random() < 0.06:
        found[0] = chance.choice(wrong)
    return " ".join(found)


def statement(chance):
    pick = chance.choice

    def send():
        return "send to " + some(chance, NAMES, pick([1, 1, 2])) + pick(["", "", " stop"])

    kind = chance.choices(["cluster", "match", "rewrite", "aggregate", "statistics", "listen"], [5, 5, 2, 2, 1, 1])[0]
    if kind == "cluster":
        head = pick(["forward", "any_of", "failover", "carbon_ch", "fnv1a_ch", "jump_fnv1a_ch", "carbon_ch replication 2",
                     "fnv1a_ch dynamic", "carbon_ch replication 1 dynamic"])
        head = pick(["carbon_ch replication 0", "lbx"]) if chance.random() < 0.05 else head
        return f"cluster {some(chance, NEW)} {head} {some(chance, HOSTS, pick([2, 2, 3, 5]))};"
    if kind == "match":
        check = pick(["", "", ' validate "^[0-9]+ " else drop', " validate x else log"])
        using = pick(["", "", " route using \\1"])
        where = pick([send(), send(), "send to blackhole", ""])
        return f"match {pick([some(chance, EXPRESSIONS, pick([1, 1, 2, 5])), '*'])}{check}{using} {where};"
    if kind == "rewrite":
        into = pick(["r", "r.\\1", '"r s"', '"\\\\1"'])
        return f"rewrite {some(chance, EXPRESSIONS)} into {into};"
    if kind == "aggregate":
        types = (["sum", "cnt", "max", "minimum", "avg", "percentile95", "median", "stddev", "variance", "summary"],
                 ["percentile0", "medium"])
        computes = " ".join(f"compute {some(chance, types)} write to r{number}" for number in range(pick([1, 1, 2])))
        stamp = pick(["", " timestamp at middle of bucket", " timestamp at start of bucket"])
        times = f"every {pick([10, 60])} seconds expire after {pick([90, 90, 90, 60])} seconds"
        return f"aggregate {some(chance, EXPRESSIONS, pick([1, 2]))} {times}{stamp} {computes} {pick(['', send()])};"
    if kind == "statistics":
        return pick(["statistics submit every 30 seconds;", "statistics reset counters after interval;", "statistics;",
                     "statistics prefix with p.\\1;", "statistics prefix with \\_2;", f"statistics {send()};",
                     f"send statistics to {some(chance, NAMES)};"])
    return f"listen type linemode {some(chance, RECEPTORS, pick([1, 2, 3]))};"


def file(chance):
    """A file: statements, and now and then a word that is not in its place."""
    lines = ["cluster a forward 10.1.0.1;", "cluster b carbon_ch 10.2.0.1 10.2.0.2;"] if chance.random() < 0.8 else []
    lines += [statement(chance) for _ in range(chance.choice([1, 1, 2, 3]))]
    if chance.random() < 0.25:
        at = chance.randrange(len(lines))
        words = lines[at].replace(";", " ;").split(" ")
        place = chance.randrange(len(words))
        how = chance.choice(["out", "in", "other", "swap"])
        if how == "out":
            del words[place]
        elif how == "in":
            words.insert(place, chance.choice(WORDS))
        elif how == "other":
            words[place] = chance.choice(WORDS)
        else:
            other = chance.randrange(len(words))
            words[place], words[other] = words[other], words[place]
        lines[at] = " ".join(words)
    return "\n".join(lines) + "\n"


def answer_of_the_original(binary, path):
    """The canonical form, `refused` and the message, or none when it crashed."""
    ran = subprocess.run([binary, "-t", "-O", "-1", "-H", "Web1.example", "-f", path], input="", capture_output=True, text=True,
                         errors="replace", timeout=20)
    if ran.returncode < 0:
        return None
    if ran.returncode != 0:
        said = re.search(r"conf:[0-9:]+ (.*)", ran.stderr)
        return "refused\n" + (said.group(1) if said else ran.stderr[:200])
    return ran.stdout.split("parsed configuration follows:\n", 1)[1].strip()


def answers_of_ours(binary, paths):
    ran = subprocess.run([binary, *paths], capture_output=True, text=True, check=True, timeout=120)
    return [part.split("\n", 1)[1].strip() for part in ("\n" + ran.stdout).split("\n== ")[1:]]


def verdict(text, theirs, ours):
    """`passed`, `known` or what differs."""
    if UNPRINTED.search(text) or (theirs.startswith("refused") and ours.startswith("refused")) or theirs == ours:
        return "passed"
    for said, written, _ in KNOWN:
        if (said is None or said in ours) and re.search(written, text):
            return "known"
    return f"{text}\n  original: {theirs}\n  ours:     {ours}"


BENT = {
    "takes everything": lambda ours: "listen" if ours.startswith("refused") else ours,
    "refuses everything": lambda ours: "refused",
    "no stop": lambda ours: ours.replace("\n    stop", ""),
    "quotes": lambda ours: ours.replace('"', ""),
    "replication": lambda ours: ours.replace("replication 1", "replication 2"),
}


def main():
    options = arguments(__doc__, files=300)
    original, own = original_relay.find_or_skip(), example("import", "relay_conf")
    chance = random.Random(options.seed)
    texts = [file(chance) for _ in range(options.files)]
    checks, bends = Checks(), Bends(BENT if options.self_test else {})
    known = taken = crashed = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{number}.conf" for number in range(len(texts))]
        for path, text in zip(paths, texts):
            pathlib.Path(path).write_text(text)
        for path, text, ours in zip(paths, texts, answers_of_ours(own, paths)):
            theirs = answer_of_the_original(original, path)
            if theirs is None:
                crashed += 1
                continue
            taken += not theirs.startswith("refused")
            bends.hold(lambda bend: verdict(text, theirs, bend(ours)) not in ("passed", "known"))
            found = verdict(text, theirs, ours)
            if found == "known":
                known += 1
            else:
                checks.that(found == "passed", found)
    bends.judge(checks)
    return checks.summary("relay_language", f", {known} differ on purpose ({taken} taken by the original, which crashed on {crashed})")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DaemonError, subprocess.SubprocessError) as error:
        print(f"relay_language: {error}", file=sys.stderr)
        sys.exit(2)
