#!/usr/bin/env python3
"""graphite-web's functions beside ours, called directly: no HTTP, no storage.

    render.py [--seed N] [--calls N]
                        every function that graphite-web has, with N random sets of arguments each, over the same series:
                        the same names, times, steps and tags, and values within 1e-9 of each other
    render.py --self-test
                        bends our answers in several ways, each of which must show
    render.py --time    CPU time of some targets over 1,000 series of 360 points, in both

Differences that are meant are in DELIBERATE, each with its reason. A call that graphite-web fails on is not compared: it
answers such a call with status 500, we with a reason. graphite-web is looked for in $GRAPHITE_WEB and
compat/.graphite-web, which .ci/tools makes: a virtual environment with graphite-web 1.1.10. Without it nothing is compared, and
the last line says `SKIPPED`; with COMPAT_STRICT=1 that is a failure. Our side is `cargo build -p graphite --example render_lines`, found in
$RENDER_LINES and the target folder.

Prints `render: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import argparse
import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import time

from comparison import Bends, Checks, skip

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRAPHITE_WEB = pathlib.Path(os.environ.get("GRAPHITE_WEB") or ROOT / "compat/.graphite-web")
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
START = 1710000000

# Functions whose answers differ on purpose.
DELIBERATE = {
    "randomWalk": "random",
    "randomWalkFunction": "random",
    "events": "events come from a database there, from the store here; tests beside the code compare them",
    "seriesByTag": "evaluated by the index; the catalog's tests compare it",
    "delay": "a delay of 0 gives an empty series there, the series itself here",
    "timeSlice": "values are chosen by their own times; there by the start of the request plus their index",
    "hitcount": "an interval of 0 or less is refused",
    "verticalLine": "without a label the name is null there, `verticalLine(TIME)` here",
    "exp": "a result that is too large is null; there the call fails",
}
# Parts of an answer that differ on purpose: function, then the member.
DELIBERATE_PARTS = {
    ("asPercent", "end"): "series of different lengths get a common end",
}
# Functions with a larger absolute error. Sums of squares up to 10^12 cancel in both, and Python's `x ** 2` may differ in the last bit.
ABSOLUTE_ERRORS = {"stdev": 0.05}
# Calls that differ on purpose: function, then a part of the target.
DELIBERATE_CALLS = {
    ("transformNull", "c."): "references of another step are looked up by time; there by index",
    ("weightedAverage", "c."): "series of several steps are multiplied at the same times; there by index",
    ("asPercent", "c."): "series of several steps: there the values have the common step, but the times of each series",
    ("pct", "c."): "another name of asPercent",
}
TEXTS = {
    "operator": ["=", "!=", ">", ">=", "<", "<="],
    "consolidationFunc": ["sum", "average", "avg", "min", "max", "first", "last", "avg_zero"],
    "search": ["a", r"s\.(\w+)", r"(\w)\.(\w)", "x*$"],
    "replace": ["z", r"\1", r"\g<1>-", "q"],
    "pattern": ["a", r"x$", r"[bc]\.", "^s"],
    "newName": ["n", "a longer name"],
    "templateFunction": ["sumSeries(%.*)", "scale(%.x,2)"],
    "reduceFunction": ["sumSeries", "maxSeries"],
    "reduceMatchers": ["a", "b"],
    "system": ["si", "binary"],
    "units": ["b", "req"],
    "valuesTypes": ["avg", "last", "max", "min", "total", "count", "stddev", "nothing"],
    "alignTo": ["minutes", "hours", "days", "weeks", "months", "years", "seconds"],
    "tagExpressions": ["name=w"],
    "stack": ["one", "__DEFAULT__"],
    "theColor": ["red"],
    "color": ["blue"],
    "label": ["limit"],
    "name": ["x"],
    "intervalUnit": ["2min", "90s", "1h"],
}


class Program:
    """A process that answers one line with one line."""

    def __init__(self, command):
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, job):
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            print("render: a program has ended", file=sys.stderr)
            sys.exit(2)
        return json.loads(line)

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def series(chance):
    """Eight series of one step, two of others."""
    def values(count):
        kind = chance.randrange(4)
        make = [lambda at: float(at % 7), lambda at: round(chance.uniform(-50, 50), 3), lambda at: float(5 * at % 40),
                lambda at: chance.uniform(0, 1e6)][kind]
        gaps = chance.choice([0, 0.1, 0.4])
        return [None if chance.random() < gaps else make(at) for at in range(count)]

    names = ["s.a.x", "s.b.x", "s.c.y", "s.d.y", "t.a", "t.b", "w;dc=eu;host=a", "w;dc=us;host=b"]
    made = [{"name": name, "start": START - 6000, "step": 60, "values": values(200)} for name in names]
    for name, step in [("c.one", 120), ("c.two", 300)]:
        made.append({"name": name, "start": START - 6000, "step": step, "values": values(12000 // step)})
    return made


def quoted(text):
    return "'" + text + "'"


class Arguments:
    """Random arguments of a function, from its parameters."""

    def __init__(self, chance, function, has_other_steps):
        self._chance, self._function = chance, function
        self._paths = ["s.*.*", "s.a.x", "t.*", "s.*.x"] + (["c.*", "c.one"] if has_other_steps else [])

    def paths(self):
        path = self._chance.choice(self._paths)
        # Names become parts of paths.
        if self._function in ("applyByNode", "useSeriesAbove", "aliasQuery"):
            return path if self._function == "applyByNode" else "s.a.x"
        wrap = self._chance.choice(["{}", "{}", "{}", "{}", "scale({},2.5)", "keepLastValue({},2)", "absolute({})",
                                    "transformNull({},1)", "derivative({})", "movingAverage({},3)"])
        return wrap.format(path)

    def one(self, name, kind):
        pick = self._chance.choice
        if self._function == "mapSeries" or self._function == "map":
            return "s.*.*" if kind == "seriesList" else pick(["0", "1", "2"])
        if kind == "seriesLists":
            return "mapSeries(s.*.x,2)"
        if kind == "node" and self._function.startswith("reduce"):
            return "1"
        # Percentiles above 100 are an error there, and the largest value here.
        if kind == "float" and "Percentile" in self._function:
            return pick(["0.5", "2", "50", "90", "99.9", "100"])
        if self._function in ("aliasQuery", "useSeriesAbove") and kind == "string":
            return {"search": "'a'", "replace": pick(["'b'", "'a'"]), "newName": pick(["'%d'", "'last %.2f'"])}[name]
        if kind == "string" and name in TEXTS:
            return quoted(pick(TEXTS[name]))
        return {
            "seriesList": self.paths,
            "float": lambda: pick(["0.5", "2", "-3", "50", "90", "0.001", "12345678", "1e3"]),
            "integer": lambda: pick(["1", "2", "3", "5"]),
            "node": lambda: pick(["0", "1", "2"]),
            "nodeOrTag": lambda: pick(["0", "1", "-1", "'dc'", "'name'"]),
            "tag": lambda: pick(["'dc'", "'host'", "'name'"]),
            "string": lambda: "'text'",
            "interval": lambda: pick(["'1min'", "'3min'", "'5min'", "'90s'", "'10min'", "'1h'"]),
            "intOrInterval": lambda: pick(["1", "3", "5", "'3min'", "'5min'", "'10min'"]),
            "intOrInf": lambda: pick(["1", "2", "inf"]),
            "boolean": lambda: pick(["true", "false"]),
            "date": lambda: pick([quoted(str(START + 300)), quoted(str(START + 1800)), "'00:10_20240309'"]),
            "aggFunc": lambda: quoted(pick(AGGREGATIONS)),
            "aggOrSeriesFunc": lambda: quoted(pick(AGGREGATIONS + ["sumSeries", "averageSeries", "countSeries", "sum"])),
            "any": lambda: pick(["none", "20", "2.5", "t.a", "s.a.x"]),
        }[kind]()

    def target(self, parameters):
        args = []
        for name, kind, required, multiple in parameters:
            if not required and self._chance.random() < 0.4:
                break
            count = self._chance.choice([1, 2]) if multiple else 1
            args += [self.one(name, kind) for _ in range(count)]
        return f"{self._function}({','.join(args)})"


AGGREGATIONS = ["average", "median", "sum", "min", "max", "diff", "stddev", "count", "range", "multiply", "last",
                "avg_zero", "avg", "total", "current", "rangeOf"]


def near(a, b, error=0.0):
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return a == b
    return abs(a - b) <= max(error, 1e-9 * max(1.0, abs(a), abs(b)))


def same(a, b):
    """Equal; tags may be numbers that differ in their last digits."""
    def number(text):
        try:
            return float(text)
        except ValueError:
            return text

    if not isinstance(a, dict):
        return a == b
    return a.keys() == b.keys() and all(a[tag] == b[tag] or near(number(a[tag]), number(b[tag])) for tag in a)


def differences(function, ours, theirs):
    """What differs in two lists of series."""
    if len(ours) != len(theirs):
        return [f"{len(ours)} series, not {len(theirs)}"]
    found = []
    for one, other in zip(ours, theirs):
        for part in ["name", "start", "step", "end", "tags"]:
            if not same(one[part], other[part]) and (function, part) not in DELIBERATE_PARTS:
                found.append(f"{part} {one[part]!r}, not {other[part]!r}")
        # A series ends with its last point; nulls after the others' last point are no difference.
        length = max(len(one["values"]), len(other["values"]))
        pad = lambda values: values + [None] * (length - len(values))
        pairs = list(zip(pad(one["values"]), pad(other["values"])))
        error = ABSOLUTE_ERRORS.get(function, 0.0)
        wrong = [at for at, (a, b) in enumerate(pairs) if not near(a, b, error)]
        if wrong:
            found.append(f"value {wrong[0]} is {pairs[wrong[0]][0]}, not {pairs[wrong[0]][1]}")
    return found[:3]


def first_known(change):
    """Changes the first known value of the last series that has one."""
    def bend(results):
        for one in reversed(results):
            for at, value in enumerate(one["values"]):
                if value is not None and not isinstance(value, str):
                    one["values"][at] = change(value)
                    return
    return bend


def part(name, change):
    """Changes a part of the last series."""
    def bend(results):
        if results:
            results[-1][name] = change(results[-1])
    return bend


def first_null(results):
    for one in results:
        if None in one["values"]:
            one["values"][one["values"].index(None)] = 0.0
            return


BENT = {
    "a value that is a millionth too large": first_known(lambda value: value + 1e-6 * max(1.0, abs(value))),
    "a value that is null": first_known(lambda _: None),
    "a null that is 0": first_null,
    "another name": part("name", lambda one: one["name"] + "x"),
    "a later start": part("start", lambda one: one["start"] + one["step"]),
    "another step": part("step", lambda one: one["step"] + 1),
    "an earlier end": part("end", lambda one: one["end"] - one["step"]),
    "a tag that is missing": part("tags", lambda one: dict(list(one["tags"].items())[1:])),
    "a series that is missing": lambda results: results.pop() if results else None,
    "another order of series": lambda results: results.reverse(),
}


def bent(bend, results):
    results = copy.deepcopy(results)
    bend(results)
    return results


def compare(ours, theirs, seed, calls, bends):
    parameters = theirs.ask({"parameters": True})["parameters"]
    checks = Checks()
    refused = 0
    never = []
    for function in sorted(set(parameters) - set(DELIBERATE)):
        before = checks.passed + checks.failed
        for number in range(calls):
            chance = random.Random(f"{seed} {function} {number}")
            target = Arguments(chance, function, number % 3 == 2).target(parameters[function])
            until = START + chance.choice([600, 900, 1800])
            if any(function == name and part in target for name, part in DELIBERATE_CALLS):
                continue
            job = {"series": series(chance), "from": START, "until": until, "now": START + 3600, "targets": [target]}
            expected, got = theirs.ask(job), ours.ask(job)
            if "error" in expected:
                refused += 1
                continue
            found = [got["error"]] if "error" in got else differences(function, got["results"], expected["results"])
            checks.that(not found, f"{target} (call {number})", *found)
            if not found:
                answer = got["results"]
                bends.hold(lambda bend: differences(function, bent(bend, answer), expected["results"]))
        if checks.passed + checks.failed == before:
            never.append(function)
    print(f"render: {refused} calls not compared, because graphite-web fails on them; functions without any: {never}")
    bends.judge(checks)
    return checks.summary("render")


def clock(ours, theirs):
    """CPU seconds of targets over 1,000 series."""
    made = [{"name": f"servers.h{at}.cpu.user", "start": START, "step": 10,
             "values": [float((at * 31 + n * 7) % 100) for n in range(400)]} for at in range(1000)]
    path = "servers.*.cpu.user"
    for target in [path, f"sumSeries({path})", f"movingAverage({path},10)", f"groupByNode({path},1,'sum')",
                   f"highestAverage({path},5)", f"asPercent({path})", f"summarize({path},'1min','avg')"]:
        job = {"series": made, "from": START, "until": START + 3590, "now": START + 4000, "targets": [target]}
        row = [target]
        # Reading and writing JSON is the same for any number of evaluations.
        for program, times in [(ours, 101), (theirs, 4)]:
            spent = []
            for repeated in [1, times]:
                before = program.cpu()
                program.ask({**job, "times": repeated})
                spent.append(program.cpu() - before)
            row.append(f"{1000 * (spent[1] - spent[0]) / (times - 1):.1f} ms")
        print("\t".join(row))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true", help="bends our answers, each of which must show")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument("--time", action="store_true")
    args = parser.parse_args()
    python = GRAPHITE_WEB / "bin/python"
    if not python.exists():
        skip("graphite-web is not installed")
    lines = os.environ.get("RENDER_LINES") or TARGET / ("release" if args.time else "debug") / "examples/render_lines"
    ours = Program([str(lines)])
    theirs = Program([str(python), str(ROOT / "compat/render_original.py")])
    started = time.monotonic()
    bends = Bends(BENT if args.self_test else {})
    code = clock(ours, theirs) if args.time else compare(ours, theirs, args.seed, args.calls, bends)
    ours.close()
    theirs.close()
    print(f"render: {time.monotonic() - started:.0f} s")
    return code or 0


if __name__ == "__main__":
    sys.exit(main())
