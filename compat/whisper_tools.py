#!/usr/bin/env python3
"""The scripts of Python's whisper library beside `staunch whisper`, started by links with the scripts' names.

    whisper_tools.py [--seed N] [--files N]
                        random files, and each script with random options on copies of them: the same exit code, the same output and
                        the same file afterwards
    whisper_tools.py --self-test
                        bends our answers in several ways, each of which must show

Differences that are meant are in `meant`, each with its reason. The scripts are looked for in $CARBON and compat/.carbon, into which .ci/tools
installs them (whisper 1.1.10). Without them nothing is compared, and the last line says `SKIPPED`; with COMPAT_STRICT=1 that is a failure.

Prints `whisper-tools: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from comparison import Bends, Checks, arguments, skip
from daemon import COMPAT, DaemonError, staunch_binary

CARBON = pathlib.Path(os.environ.get("CARBON") or COMPAT / ".carbon")
SCRIPTS = ["create", "info", "fetch", "dump", "update", "resize", "merge", "fill", "diff", "set-aggregation-method", "set-xfilesfactor"]
LAYOUTS = [["1s:1m", "10s:10m"], ["10s:1h"], ["60:60", "5m:1d"], ["1m:1h", "15m:8h", "1h:7d"]]
METHODS = ["average", "sum", "last", "max", "min", "avg_zero", "absmax", "absmin"]
VALUES = [0, 1, -2.5, 0.1, 1e-7, 1e22, 3.3333, 12345.678]


def run(command, folder, stdin=""):
    environment = {"PATH": os.environ["PATH"], "TZ": "EST5EDT,M3.2.0,M11.1.0", "LC_ALL": "C"}
    done = subprocess.run(command, cwd=folder, env=environment, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


class Side:
    """The scripts of one of both, and its copies of the files."""

    def __init__(self, folder, original):
        self.folder, self._original = pathlib.Path(folder), original
        self.folder.mkdir()
        (self.folder / "bin").mkdir()
        for script in SCRIPTS:
            if not original:
                (self.folder / f"bin/whisper-{script}.py").symlink_to(os.path.abspath(staunch_binary()))

    def run(self, script, words, stdin=""):
        if self._original:
            command = [CARBON / "bin/python", "-W", "ignore", CARBON / f"bin/whisper-{script}.py"]
        else:
            command = [self.folder / f"bin/whisper-{script}.py"]
        return run([*command, *words], self.folder, stdin)

    def files(self):
        return {path.name: path.read_bytes() for path in sorted(self.folder.glob("*.wsp*"))}

    def restore(self, files):
        for path in self.folder.glob("*.wsp*"):
            path.unlink()
        for name, data in files.items():
            (self.folder / name).write_bytes(data)


def call(chance, now, names):
    """A script, its words, and stdin."""
    name = chance.choice(names)
    script = chance.choice(SCRIPTS + ["fetch", "info", "update", "diff"])
    words, stdin = [name], ""
    if script == "create":
        words = [f"new{chance.randint(0, 3)}.wsp", *chance.choice(LAYOUTS)]
        words += chance.choice([[], ["--xFilesFactor=0.3"], ["--aggregationMethod=max"], ["--sparse"], ["--overwrite"], ["--fallocate"]])
        if chance.random() < 0.3:
            words = ["--estimate", *chance.choice(LAYOUTS)]
    elif script == "info":
        words += chance.choice([[], [], ["--json"], ["maxRetention"], ["xFilesFactor"], ["archives"], ["aggregationMethod"], ["fileSize"], ["nothing"]])
    elif script == "fetch":
        words += [f"--from={now - chance.choice([30, 300, 3000, 90000])}", f"--until={now - chance.choice([0, 20])}"]
        words += chance.choice([[], ["--json"], ["--pretty"], ["--pretty", "-t", "%Y-%m-%d %H:%M"]])
    elif script == "dump":
        words += chance.choice([[], ["--raw"], ["--pretty"], ["--pretty", "-t", "%d %b %H"]])
    elif script == "update":
        points = [f"{now - chance.randint(0, 50)}:{chance.choice(VALUES)}" for _ in range(chance.choice([1, 2, 5]))]
        if chance.random() < 0.5:
            words += points
        else:
            stdin = "".join(point + "\n" for point in points)
    elif script == "resize":
        words += chance.choice(LAYOUTS) + chance.choice([[], ["--nobackup"], ["--xFilesFactor=0.1"], ["--aggregationMethod=sum"], ["--newfile=resized.wsp"]])
    elif script in ("merge", "fill", "diff"):
        words.append(chance.choice(names))
        if script == "diff":
            words += chance.choice([[], ["--summary"], ["--json"], ["--columns"], ["--no-headers", "--columns"], ["--summary", "--json"],
                                    ["--summary", "--columns"], ["--ignore-empty"]])
    elif script == "set-aggregation-method":
        words += [chance.choice(METHODS + ["nonsense"])] + chance.choice([[], ["0.25"]])
    else:
        words.append(chance.choice(["0", "0.5", "1", "0.1", "7"]))
    return script, words, stdin


def meant(script, words, answer):
    """Without what differs on purpose: what is printed about mistakes, and for people."""
    code, out, err = answer
    if code:
        # Messages name the path and what to do; the script prints its help or a trace of Python.
        return 1, "", ""
    if script == "resize":
        # The script says each step.
        out = ""
    return code, out, ""


def is_meant(script, words, theirs, ours):
    """Calls whose results differ on purpose, or of which the script makes nothing."""
    # Python's error without a message for people: the script has no check there.
    if "Traceback" in theirs[2]:
        return True
    # resize on a file that has these archives already: nothing to do; the script writes a copy and a backup.
    if script == "resize" and "has these archives already" in ours[1]:
        return True
    # fill: the script asks for gaps by truth, so that a value of 0 is a gap, and leaves single gaps; compat/whisper.py compares merge.
    return script == "fill"


def make(chance, now, sides):
    """The files, made by the original."""
    names = []
    for number in range(5):
        name = f"f{number}.wsp"
        layout = LAYOUTS[number % 4] if number < 4 else LAYOUTS[0]
        original = sides[0]
        code, out, err = original.run("create", [name, *layout, f"--xFilesFactor={chance.choice([0, 0.5])}", f"--aggregationMethod={chance.choice(METHODS)}"])
        if code:
            raise DaemonError(out + err)
        points = "".join(f"{now - age}:{chance.choice(VALUES)}\n" for age in sorted(chance.sample(range(55), 20), reverse=True))
        original.run("update", [name], points)
        shutil.copy(original.folder / name, sides[1].folder / name)
        names.append(name)
    for bad, data in [("empty.wsp", b""), ("foreign.wsp", b"these are not the bytes of a whisper file at all")]:
        for side in sides:
            (side.folder / bad).write_bytes(data)
    return names + ["missing.wsp", "empty.wsp", "foreign.wsp"]


ATTEMPTS_MAX = 8


def in_one_second(sides, script, words, stdin):
    """Both answers, of calls in the same second, as what is too old depends on it. None if the machine is too busy for that."""
    before = [side.files() for side in sides]
    for _ in range(ATTEMPTS_MAX):
        while time.time() % 1 > 0.3:
            time.sleep(0.02)
        second = int(time.time())
        answers = [side.run(script, words, stdin) for side in sides]
        if int(time.time()) == second:
            return answers
        for side, files in zip(sides, before):
            side.restore(files)
    return None


def main():
    given = arguments(__doc__, files=120)
    if not (CARBON / "bin/whisper-info.py").exists():
        skip("whisper is not there: .ci/tools installs it into compat/.carbon")
    checks, bends = Checks(), Bends(BENDS) if given.self_test else None
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        sides = [Side(pathlib.Path(folder) / "theirs", True), Side(pathlib.Path(folder) / "ours", False)]
        names = make(chance, int(time.time()), sides)
        for _ in range(given.files):
            script, words, stdin = call(chance, int(time.time()), names)
            answers = in_one_second(sides, script, words, stdin)
            if answers is None:
                continue
            theirs, ours = answers
            if is_meant(script, words, theirs, ours):
                for path in sides[0].folder.glob("*.wsp*"):
                    shutil.copy(path, sides[1].folder / path.name)
                for path in sides[1].folder.glob("*.wsp*"):
                    if not (sides[0].folder / path.name).exists():
                        path.unlink()
                continue
            wanted, found = meant(script, words, theirs), meant(script, words, ours)
            what = f"{script} {' '.join(words)}"
            checks.that(wanted == found, what, *shown(wanted, found), theirs[2][-300:], ours[2][-300:])
            if "--nobackup" in words:
                # An older backup goes with it there, and stays here.
                for side in sides:
                    for path in side.folder.glob("*.bak"):
                        path.unlink()
            files = [side.files() for side in sides]
            differ = [name for name in files[0].keys() | files[1].keys() if files[0].get(name) != files[1].get(name)]
            checks.that(not differ, f"files after {what}", differ)
            if bends:
                bends.hold(lambda bend: (bent := bend(found)) is not None and bent != wanted)
    if bends:
        bends.judge(checks)
    return checks.summary("whisper-tools")


def shown(theirs, ours):
    """The first line that differs."""
    for one, other in zip(theirs[1].splitlines(), ours[1].splitlines()):
        if one != other:
            return one, other
    return theirs[:2] if len(theirs[1]) < 500 else len(theirs[1]), ours[:2] if len(ours[1]) < 500 else len(ours[1])


BENDS = {
    "another exit code": lambda answer: (1 - answer[0], *answer[1:]),
    "another number": lambda answer: (answer[0], bent, answer[2]) if (bent := re.sub(r"\d", "7", answer[1], count=1)) != answer[1] else None,
    "nothing printed": lambda answer: (answer[0], "", answer[2]) if answer[1] else None,
}

if __name__ == "__main__":
    try:
        sys.exit(main())
    except DaemonError as error:
        print(f"whisper_tools.py: {error}", file=sys.stderr)
        sys.exit(2)
