#!/usr/bin/env python3
"""The Python whisper library as a process that obeys the commands of crates/graphite/examples/whisper_calls.rs; used by
whisper.py. Runs with `python -I`, so that `import whisper` finds the library and not the script of that name.
"""

import contextlib
import io
import os
import re
import runpy
import struct
import sys
import time
import warnings

import whisper
from carbon.util import TaggedSeries

# Where the original accepts what no file can have, and we do not.
PART_MAX = 2**32 - 1


def value(digits):
    return struct.unpack(">d", bytes.fromhex(digits))[0]


def shown(number):
    return "-" if number is None else struct.pack(">d", number).hex()


def optional(word):
    return None if word == "-" else int(word)


def archives(text):
    return [tuple(map(int, part.split(":"))) for part in text.split(",")]


def fetched(answer):
    if answer is None:
        return "none"
    (start, end, step), values = answer
    return " ".join(map(str, [start, end, step, *map(shown, values)]))


def create(path, space, method, factor, layout):
    try:
        whisper.create(path, archives(layout), float(factor), method, space == "sparse", space == "allocate")
    except Exception:
        # The original leaves an empty file when it finds a mistake late.
        if os.path.exists(path) and os.path.getsize(path) < 16:
            os.remove(path)
        raise
    return ""


def update(path, now, when, digits):
    whisper.update(path, value(digits), int(when), int(now))


def many(path, now, _mode, pairs):
    split = [pair.split("=") for pair in pairs.split(",") if pair]
    whisper.update_many(path, [(int(when), value(digits)) for when, digits in split], int(now))


def fetch(path, now, start, until, step=None):
    return fetched(whisper.fetch(path, int(start), int(until), int(now), step))


def merge(source, target, now, start, until):
    whisper.merge(source, target, optional(start), optional(until), int(now))


def diff(left, right, now, until, which):
    answer = whisper.diff(left, right, which == "both", optional(until), int(now))
    shown_all = lambda found: "".join(f"{when}={shown(one)}={shown(other)}," for when, one, other in found)
    return " ".join(f"{count}:{shown_all(found)}" for _, found, count in answer)


def method(path, name):
    return whisper.setAggregationMethod(path, name)


def factor(path, number):
    return f"{whisper.setXFilesFactor(path, float(number)):g}"


def resize(path, now, name, number, layout):
    script = os.path.join(os.path.dirname(sys.executable), "whisper-resize.py")
    before, argv = time.time, sys.argv
    time.time = lambda: int(now)
    sys.argv = [script, "--nobackup", "--xFilesFactor", number, "--aggregationMethod", name, path, *layout.split(",")]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(script, run_name="__main__")
    finally:
        time.time, sys.argv = before, argv


def retention(text):
    step, points = whisper.parseRetentionDef(text)
    if not 0 < step <= PART_MAX or not 0 < points <= PART_MAX:
        raise ValueError("no file can have it")
    return f"{step}:{points}"


def path(name):
    return TaggedSeries.encode(name, os.sep, hash_only=True).lstrip("/") + ".wsp"


def pattern(rest):
    name, _, expression = rest.partition(" ")
    return str(int(re.search(expression, name) is not None))


COMMANDS = {each.__name__: each for each in (create, update, many, fetch, merge, diff, method, factor, resize)}
# Their argument is the rest of the line.
WHOLE = {each.__name__: each for each in (retention, path, pattern)}


def answer(line):
    command, _, rest = line.partition(" ")
    try:
        text = WHOLE[command](rest) if command in WHOLE else COMMANDS[command](*rest.split(" "))
        return f"ok {text or ''}"
    except (Exception, SystemExit) as error:
        return f"error {type(error).__name__} {error}".replace("\n", " ")


warnings.simplefilter("ignore")
for line in sys.stdin:
    print(answer(line.rstrip("\n")), flush=True)
