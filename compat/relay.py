#!/usr/bin/env python3
"""Statements and clusters beside carbon-c-relay: the same names under the same random configurations.

    relay.py [--seed N] [--configs N] [--names N]
                            each configuration is given to `carbon-c-relay -t` and, in another form, to ours
                            (crates/process/examples/relay.rs); for each name both say which rules it meets, under which
                            name, how validation ends, which members get it, what is aggregated, and where it stops
    relay.py --self-test    bends our answers in several ways, each of which must show

The original is looked for as original_relay.py says. Without it nothing is compared, and the summary says `SKIPPED`;
with COMPAT_STRICT=1 that is a failure.

Prints `relay: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
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

# Of every name the first thing that is printed: so the answers come apart.
MARK = "mark"

# Expressions with one group or two, whose first and longest matches are the same: POSIX wants the longest, we take the
# first. A replacement names no group that is not there: the original then reads what an earlier name has left.
ONE_GROUP = [r"\.([^.]*)$", r"^web([0-9]{1,2})", r"([a-c]+)\.", r"^([^.]+)", r"(ab*)c?", r"([[:upper:]][a-z]*)",
             r"([a-c])\1", r"^([a-z]+)\.\1"]
TWO_GROUPS = [r"^([a-c]+)\.(.*)$", r"^([^.]+)\.([^.]+)", r"([a-z]+)([0-9]+)", r"^(x|yy|z)(.)", r"([a-c])(q)?\.",
              r"^(([a-c]*)\.)?web[0-9]", r"(\.)([A-Z][a-z]*)", r"^(.)(.?)"]
UNGROUPED = [r"a.c", r"[a-c]+x", r"^a.*z$", r"b+\.", r"(a|b)c", r"^[^.]*$", r"web[0-9]{2}", r"x?y", r"[[:digit:]]\.", r"[]a-]b", r"(b)\1"]
PLAIN = ["a", "abc", "web", ".", "cpu", "x", "-", "_"]
FOR_ONE = [r"r.\1", r"r\_1", r"r\.1", r"\^.1_r", r"\\1r", r"\1r\1", "r"]
FOR_TWO = FOR_ONE + [r"\2r\1", r"r\_1.\^2", r"r.\_.2x", r"\\2.\02r"]
WORDS = ["a", "b", "c", "abc", "web1", "web07", "xy", "yy", "z9", "Cpu", "cpu", "q", "aXb", "load-1", "m_x", ""]
CHECKS = [r"^[0-9.]+\ [0-9]+$", r"^1", "5"]
REST = ["", " 1 2", " 1.5 1700000000", " x 2", " nan"]


def plain(chance):
    """An expression that is text with anchors."""
    text = chance.choice(PLAIN + ["".join(chance.choices("abc.", k=2))]).replace(".", r"\.")
    return ("^" if chance.random() < 0.4 else "") + text + ("$" if chance.random() < 0.3 else "")


def expression(chance):
    return chance.choice([plain(chance), plain(chance), chance.choice(UNGROUPED), chance.choice(ONE_GROUP + TWO_GROUPS)])


def replaced(chance):
    """An expression, and a replacement for it. Without groups only plain text: the original puts the replacement for what
    a regular expression without groups matches in front of the name."""
    kind = chance.random()
    if kind < 0.2:
        return plain(chance), chance.choice(["r", "r.", "rr"])
    expressions, replacements = (ONE_GROUP, FOR_ONE) if kind < 0.5 else (TWO_GROUPS, FOR_TWO)
    return chance.choice(expressions), chance.choice(replacements)


class Config:
    """One configuration in both forms."""

    def __init__(self, chance):
        self.theirs = [f"cluster {MARK} forward 127.9.9.9:2003;", f"match * send to {MARK};"]
        clusters = [self.cluster(chance, number) for number in range(chance.randint(1, 5))]
        self.ours = [f"cluster\t{MARK}\tforward\t1\t-\t127.9.9.9:2003", *(ours for _, ours, _ in clusters)]
        self.ours.append(f"match\t{MARK}\t-\t-\t-\t-")
        self.theirs[1:1] = [theirs for theirs, _, _ in clusters]
        self.names = [name for _, _, name in clusters]
        for _ in range(chance.randint(1, 9)):
            chance.choices([self.match, self.rewrite, self.aggregate], [6, 2, 1])[0](chance)

    @staticmethod
    def cluster(chance, number):
        form = chance.choice(["forward", "failover", "any_of", "carbon_ch", "fnv1a_ch", "jump_fnv1a_ch"])
        members = []
        instances = chance.choice([None, "0123456789", "abcdef-0"])
        for member in range(chance.randint(1, 6)):
            label = f"10.{number}.{chance.randint(0, 20)}.{member}:{chance.choice([2003, 2103 + member])}"
            if instances:
                # No leading zeros: the original takes digits for a number, and loses them.
                text = chance.choice(instances.replace("0", "")) + "".join(chance.choices(instances, k=chance.randint(0, 6)))
                label += f"={text}{member}"
            members.append(label)
        hashed = form.endswith("_ch")
        replication = chance.randint(1, len(members)) if hashed else 1
        dynamic = hashed and chance.random() < 0.3
        name = f"c{number}"
        head = f"cluster {name} {form}"
        head += f" replication {replication}" if hashed else ""
        theirs = f"{head}{' dynamic' if dynamic else ''} {' '.join(members)};"
        ours = ["cluster", name, form, str(replication), "dynamic" if dynamic else "-", *members]
        return theirs, "\t".join(ours), name

    def match(self, chance):
        to = ",".join(chance.sample(self.names, chance.randint(1, len(self.names))))
        check = chance.choice(CHECKS) if chance.random() < 0.25 else None
        to = chance.choices([to, "blackhole", "-"], [8, 1, 1 if check else 0])[0]
        clusters = to not in ("-", "blackhole")
        texts, key = [expression(chance) for _ in range(chance.choice([1, 1, 1, 2, 3]))], None
        if chance.random() < 0.1:
            texts = []
        elif clusters and not check and chance.random() < 0.3:
            # Without validation, whose match the original takes for the name's.
            text, key = replaced(chance)
            texts = [text]
        stop = clusters and chance.random() < 0.25
        fail = chance.choice(["log", "drop"])
        words = ["match", *(texts or ["*"])]
        words += ["validate", check, "else", fail] if check else []
        words += ["route using", key] if key else []
        words += ["send to", to.replace(",", " ")] if to != "-" else []
        words += ["stop"] if stop else []
        self.theirs.append(" ".join(words) + ";")
        self.ours.append("\t".join(["match", to, "stop" if stop else "-", key or "-", check or "-", fail, *texts]))

    def rewrite(self, chance):
        text, into = replaced(chance)
        self.theirs.append(f"rewrite {text} into {into};")
        self.ours.append("\t".join(["rewrite", text, into]))

    def aggregate(self, chance):
        text, result = replaced(chance)
        results = [f"s.{result}", f"t{result}"][: chance.randint(1, 2)]
        computes = " ".join(f"compute sum write to {result}" for result in results)
        self.theirs.append(f"aggregate {text} every 10 seconds expire after 20 seconds {computes};")
        self.ours.append("\t".join(["aggregate", "-", "-", text, *results]))


def name(chance):
    words = chance.choices(WORDS, k=chance.randint(1, 4))
    text = ".".join(words).strip(".") or "a"
    return re.sub(r"\.+", ".", text) + chance.choice(REST)


def answers_of_the_original(binary, config, names, folder):
    path = pathlib.Path(folder) / "relay.conf"
    path.write_text("\n".join(config.theirs) + "\n")
    # Without its optimiser, which changes the order of rules.
    ran = subprocess.run([binary, "-t", "-O", "-1", "-H", "host", "-f", path], input="\n".join(names) + "\n",
                         capture_output=True, text=True, timeout=60)
    if ran.returncode:
        raise DaemonError(f"carbon-c-relay ends with {ran.returncode}:\n{path.read_text()}\n{ran.stdout[-2000:]}{ran.stderr}")
    # What comes behind the configuration, which ends with an empty line.
    names = []
    for event in events(ran.stdout.split("\n\n")[-1].splitlines()):
        if event[1:2] == [f"{MARK}: 127.9.9.9:2003"]:
            names.append([])
        names[-1] += event
    return names


CLUSTER = re.compile(r"    (?:forward|failover|any_of|carbon_ch|fnv1a_ch|jump_fnv1a_ch)\((.*)\)$")
MEMBER = re.compile(r"        ([0-9.]+:[0-9]+)(?:=.*)?$")


def events(lines):
    """The original's test output in our words: a list of lines for each rule that a name meets."""
    found = []
    for line in lines:
        said = line.rsplit(" -> ", 1)[-1]
        if line in ("match", "rewrite", "aggregation"):
            found.append([])
        elif not found[-1]:
            # The text behind a class may have an arrow of its own; the name is on the next line then.
            if not line.endswith("]"):
                found[-1].append(f"met {said}")
        elif cluster := CLUSTER.match(line):
            found[-1].append(f"{cluster[1]}:")
        elif member := MEMBER.match(line):
            found[-1][-1] += f" {member[1]}"
        elif line == "        match":
            found[-1].append("valid")
        elif line.startswith("        fail -> "):
            found[-1].append("invalid")
        elif line.startswith("    into("):
            found[-1].append(f"into {said}")
        elif line.startswith(("    sum(", "    sum -> ")):
            found[-1].append("feeds " + said.split(" ")[0])
        elif line in ("    stop", "    blackholed"):
            found[-1].append(line.strip())
    return found


def answers_of_ours(binary, config, names):
    ran = subprocess.run([binary], input="\n".join([*config.ours, "names", *names]) + "\n", capture_output=True, text=True, timeout=60)
    if ran.returncode:
        raise DaemonError(f"ours ends with {ran.returncode}: {ran.stderr}\n" + "\n".join(config.ours))
    return [block.splitlines() for block in ran.stdout.split("\n\n")[:-1]]


def difference(config, names, theirs, ours):
    """The first name on which the two differ, in words; none when they agree."""
    if len(theirs) != len(names) or len(ours) != len(names):
        return f"{len(names)} names, {len(theirs)} answers of the original, {len(ours)} of ours"
    for name, their, our in zip(names, theirs, ours):
        if their != our:
            return "\n".join([f"name {name!r}", "  original: " + "; ".join(their), "  ours:     " + "; ".join(our), *config.theirs])
    return None


# Ways in which ours could be wrong: each must show in some configuration.
BENT = {
    "another member": lambda lines: [re.sub(r"^(c\d+: .*):2003$", r"\1:2004", line) for line in lines],
    "members in another order": lambda lines: [re.sub(r"^(c\d+:) (\S+) (\S+)$", r"\1 \3 \2", line) for line in lines],
    "a stop that is none": lambda lines: [line for line in lines if line != "stop"],
    "validation that lets all through": lambda lines: ["valid" if line == "invalid" else line for line in lines],
    "case of a group": lambda lines: [line.lower() if line.startswith("into") else line for line in lines],
    "a result too few": lambda lines: [line for line in lines if not line.startswith("feeds")],
    "no blackhole": lambda lines: [line for line in lines if line != "blackholed"],
}


def main():
    options = arguments(__doc__, configs=150, names=120)
    original, own = original_relay.find_or_skip(), example("process", "relay")
    checks, bends = Checks(), Bends(BENT if options.self_test else {})
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.configs):
            seed = options.seed * 1_000_000 + number
            chance = random.Random(seed)
            config = Config(chance)
            names = [name(chance) for _ in range(options.names)]
            theirs, ours = answers_of_the_original(original, config, names, folder), answers_of_ours(own, config, names)
            bends.hold(lambda bend: difference(config, names, theirs, [bend(lines) for lines in ours]))
            found = difference(config, names, theirs, ours)
            checks.that(found is None, f"in configuration {seed}: {found}")
    bends.judge(checks)
    return checks.summary("relay")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DaemonError, subprocess.TimeoutExpired) as error:
        print(f"relay: {error}", file=sys.stderr)
        sys.exit(2)
