#!/usr/bin/env python3
"""Random calls of the Python whisper library beside the same calls of ours: files must stay equal byte for byte.

    whisper.py [--seed N] [--sequences N] [--calls N]
                        each sequence creates files with a random layout and calls update, update_many, fetch, merge,
                        diff, setAggregationMethod, setXFilesFactor and the resize tool on them; after each call both
                        sides have the same answer and the same files. Retention texts, paths of names, and expressions
                        of rules are compared too
    whisper.py --self-test
                        bends our answers in several ways, each of which must show

The original is looked for in $CARBON and compat/.carbon, into which .ci/tools installs it (whisper 1.1.10). Ours is the
example `whisper_calls` of crates/graphite, in $WHISPER_CALLS or beside the binary that $STAUNCH names. Without the
original nothing is compared, and the last line says `SKIPPED`; with COMPAT_STRICT=1 that is a failure.

Prints `whisper: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

from comparison import Bends, Checks, arguments, skip
from daemon import COMPAT, DaemonError, staunch_binary

CARBON = pathlib.Path(os.environ.get("CARBON") or COMPAT / ".carbon")
METHODS = ["average", "sum", "last", "max", "min", "avg_zero", "absmax", "absmin"]
UNITS = ["", "s", "m", "h", "d", "w", "y", "sec", "min", "hour", "days", "weeks", "years", "mo", "x", "S"]


class Side:
    """One of both programs, which answers command after command on files in a folder of its own."""

    def __init__(self, command, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self._process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(30)

    def ask(self, command):
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise DaemonError(f"{self.folder.name} ended at {command}")
        return answer.rstrip("\n")

    def files(self):
        return {path.name: path.read_bytes() for path in sorted(self.folder.iterdir())}


def layout(chance):
    """Archives that are valid nine times in ten."""
    step, archives = chance.choice([1, 1, 2, 5, 10, 60]), []
    for _ in range(chance.choice([1, 2, 2, 2, 3, 3, 4])):
        points = chance.randint(2, 40)
        if archives:
            fine_step, fine_points = archives[-1]
            step = fine_step * chance.randint(2, min(8, max(2, fine_points)))
            points = fine_step * fine_points // step + chance.randint(1, 12)
        archives.append((step, points))
    if chance.random() < 0.1:
        at = chance.randrange(len(archives))
        step, points = archives[at]
        archives[at] = chance.choice([(step + 1, points), (step, 1), (step * 2, points)])
    return archives


def value(chance):
    kind = chance.random()
    if kind < 0.05:
        number = chance.choice([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1.7e308, -1.7e308])
    elif kind < 0.4:
        number = float(chance.randint(-5, 5))
    else:
        number = chance.uniform(-1e3, 1e3)
    return struct.pack(">d", number).hex()


class Sequence:
    """Random commands on a few files."""

    def __init__(self, chance):
        self._chance = chance
        self._now = 1_700_000_000 + chance.randint(0, 100_000)
        self._archives = layout(chance)
        self._names = ["a.wsp", "b.wsp"]
        self._resized = False

    def _settings(self, archives):
        chance = self._chance
        factor = chance.choice(["0", "0.1", "0.3", "0.5", "0.6", "1", f"{chance.random():.6f}"])
        return f"{chance.choice(METHODS)} {factor} {','.join(f'{step}:{points}' for step, points in archives)}"

    def start(self):
        """Files with the same archives, which can be merged."""
        return [f"create {name} {self._chance.choice(['zeros', 'sparse', 'allocate'])} {self._settings(self._archives)}"
                for name in self._names]

    def next(self):
        chance = self._chance
        self._now += chance.choice([0, 1, 1, chance.randint(1, 60), chance.randint(1, self._covered() // 4 + 1)])
        name, now = chance.choice(self._names), self._now
        kind = chance.choice(["update", *["many"] * 4, "fetch", "fetch", "merge", "diff", "setting", "resize"])
        if kind == "update":
            return f"update {name} {now} {now - chance.randint(-1, self._covered() + 1)} {value(chance)}"
        if kind == "many":
            times = self._times()
            # Without duplicates and future points both of our behaviours are that of the original.
            plain = len(set(times)) == len(times) and all(when <= now for when in times)
            mode = chance.choice(["original", "ours"]) if plain else "original"
            return f"many {name} {now} {mode} {','.join(f'{when}={value(chance)}' for when in times)}"
        if kind == "fetch":
            start, until = self._range()
            if chance.random() < 0.8 or self._resized:
                return f"fetch {name} {now} {start} {until}"
            # The original leaves out values of an archive that does not cover the range.
            step, points = chance.choice(self._archives)
            return f"fetch {name} {now} {max(start, now - step * points)} {max(until, now - step * points)} {step}"
        # The original copies nearly nothing when the range goes beyond now.
        times = [str(min(when, now)) if chance.random() < 0.6 else "-" for when in self._range()]
        if kind == "merge":
            return f"merge {' '.join(chance.sample(self._names, 2))} {now} {' '.join(times)}"
        if kind == "diff":
            # Of archives that begin after the end of the range, the original compares times outside the range.
            step, points = self._archives[0]
            until = "-" if times[1] == "-" else str(max(int(times[1]), now - step * points))
            return f"diff {' '.join(self._names)} {now} {until} {chance.choice(['both', 'any'])}"
        if kind == "setting":
            factor = chance.choice(["0", "0.25", "1", "1.5"])
            return chance.choice([f"method {name} {chance.choice(METHODS)}", f"factor {name} {factor}"])
        # Rarely, as afterwards the files can no longer be merged.
        if chance.random() < 0.2:
            self._resized = True
            return f"resize {name} {now} {self._settings(layout(chance))}"
        return f"fetch {name} {now} {now - self._covered()} {now}"

    def _covered(self):
        step, points = self._archives[-1]
        return step * points

    def _range(self):
        start, until = (self._now - self._chance.randint(-5, self._covered() + 20) for _ in range(2))
        return (start, until) if self._chance.random() < 0.05 else (min(start, until), max(start, until))

    def _times(self):
        chance, (step, points) = self._chance, self._archives[0]
        oldest = chance.choice([step, step * points, self._covered(), self._covered() + 50])
        if chance.random() < 0.5:
            # Neighbours, as a daemon writes them.
            first = self._now - chance.randint(0, oldest)
            times = [first + index * step for index in range(chance.randint(1, points))]
            times = [when for when in times if when <= self._now]
        else:
            times = [self._now - chance.randint(0, oldest) for _ in range(chance.randint(0, 30))]
        if times and chance.random() < 0.3:
            times += chance.choices(times, k=3)
        if chance.random() < 0.1 and not self._resized:
            # Alone: of more neighbours than the archive has, the original writes the rest into the next archive.
            times.append(self._now + chance.randint(2 * step, 2 * step + step * points * 3))
        if chance.random() < 0.3:
            chance.shuffle(times)
        return times


def pattern(chance, name):
    """An expression as in storage-schemas.conf, most often made of pieces of the name; some are invalid."""
    piece = lambda: name[(at := chance.randrange(len(name))) : at + chance.randint(1, 4)]
    letters = lambda: "".join(chance.choices("abc0-]^[&~.\\-", k=chance.randint(1, 5)))
    fixed = [".", ".*", "[^.]+", "\\d", "\\w+", "\\.", "\\b", "(?:x)?", "(?i)a", *"{}*+?", "{1}", "a{,2}", "b{1,}"]
    kinds = [piece, piece, piece, lambda: re.escape(piece()), lambda: f"[{letters()}]",
             lambda: f"({piece()}|{piece()})", lambda: chance.choice(fixed)]
    text = "".join(chance.choice(kinds)() for _ in range(chance.randint(1, 4)))
    return chance.choice(["", "", "^"]) + text + chance.choice(["", "", "$", "\\Z"])


def texts(chance):
    """A retention text, a name whose path is compared, and expressions that are or are not found in a name."""
    number = lambda: str(chance.choice([0, 1, 10, 60, 300, 86400, chance.randint(0, 10**6)]))
    text = f"{number()}{chance.choice(UNITS)}:{number()}{chance.choice(UNITS)}"
    part = lambda: "".join(chance.choices("abcXYZ019-_:%é", k=chance.randint(1, 6)))
    name = ".".join(part() for _ in range(chance.randint(1, 5)))
    tags = sorted({part(): part() for _ in range(chance.choice([0, 0, 1, 3]))}.items())
    plain = "".join(letter for letter in name if letter.isascii())
    patterns = [f"pattern {plain} {pattern(chance, plain)}" for _ in range(20)] if plain else []
    return [f"retention {text}", "path " + ";".join([name, *(f"{key}={tag}" for key, tag in tags)]), *patterns]


def answered(side, command):
    """What must be the same on both sides: the answer, without the words of an error or counts, and all files."""
    answer = side.ask(command)
    kind = command.split(" ")[0]
    if answer.startswith("error") or kind in ("update", "many", "merge", "resize", "create"):
        answer = answer.split(" ")[0]
    elif kind == "factor":
        answer = f"{float(answer.split(' ')[1]):.6g}"
    return answer, side.files()


def changed(files, at):
    """The files with one byte changed."""
    bend = lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] if len(data) > at >= 0 else data
    return {name: bend(data) for name, data in files.items()}


# Ways in which ours could be wrong: each must show in some sequence.
BENT = {
    "the lowest bit of a value": lambda answer, files: (answer, changed(files, 51)),
    "the maximum retention": lambda answer, files: (answer, changed(files, 7)),
    "an accepted mistake": lambda answer, files: ("ok" if answer == "error" else answer, files),
    "a rejected call": lambda answer, files: ("error", files),
    "a value too many": lambda answer, files: (answer + " -" if answer.count(" ") > 3 else answer, files),
    "a file too many": lambda answer, files: (answer, {**files, "c.wsp": b""}),
    "a byte too many": lambda answer, files: (answer, {name: data + b"\0" for name, data in files.items()}),
}


def sequence(seed, calls, checks, bends, sides):
    """One sequence of calls; ends at the first difference."""
    chance = random.Random(seed)
    run = Sequence(chance)
    commands = texts(chance) + run.start()
    for side in sides:
        for path in side.folder.iterdir():
            path.unlink()
    for index in range(len(commands) + calls):
        command = commands[index] if index < len(commands) else run.next()
        theirs, ours = (answered(side, command) for side in sides)
        # We reject expressions that need backtracking (`a++`).
        if command.startswith("pattern ") and re.search(r"[*+?}]\+", command):
            continue
        bends.hold(lambda bend: theirs != bend(*ours))
        if theirs != ours:
            differ = [name for name in theirs[1].keys() | ours[1].keys() if theirs[1].get(name) != ours[1].get(name)]
            hexes = [f"{who} {name} {files.get(name, b'').hex()}" for name in differ
                     for who, files in (("whisper", theirs[1]), ("staunch", ours[1]))]
            what = f"in sequence {seed}, call {index}: {command[:2000]}"
            details = [f"whisper: {theirs[0]}", f"staunch: {ours[0]}", *(line[:4000] for line in hexes)]
            return checks.that(False, what, *details)
        if theirs[0] == "error" and command.startswith("create"):
            return checks.that(True, "")
    return checks.that(True, "")


def calls_binary():
    given = os.environ.get("WHISPER_CALLS")
    binary = pathlib.Path(given) if given else pathlib.Path(staunch_binary()).parent / "examples/whisper_calls"
    if not binary.exists():
        raise DaemonError(f"{binary} is missing: cargo build --package graphite --example whisper_calls")
    return binary.resolve()


def main():
    options = arguments(__doc__, sequences=200, calls=40)
    if not (CARBON / "bin/whisper-info.py").exists():
        skip("no whisper ($CARBON, or compat/.carbon, which .ci/tools makes)")
    checks, bends = Checks(), Bends(BENT if options.self_test else {})
    original = [(CARBON / "bin/python").absolute(), "-I", COMPAT / "whisper_original.py"]
    with tempfile.TemporaryDirectory() as folder:
        with Side(original, f"{folder}/original") as theirs, Side([calls_binary()], f"{folder}/staunch") as ours:
            for number in range(options.sequences):
                sequence(options.seed * 1_000_000 + number, options.calls, checks, bends, (theirs, ours))
    bends.judge(checks)
    return checks.summary("whisper")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DaemonError, OSError, subprocess.TimeoutExpired) as error:
        print(f"whisper: {error}", file=sys.stderr)
        sys.exit(2)
