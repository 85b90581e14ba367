#!/usr/bin/env python3
"""The original node StatsD and Staunch beside each other: same configuration file, same traffic, same points?

Each case starts both daemons on one configuration (ports apart), sends both the same seeded random traffic, good and
bad, only between flushes, and compares what each flush brings to its own Graphite listener: the same set of series
with bit-identical number texts. Series that tell the time (see `Case.restless`) must be there; their values are free.

    side_by_side.py                       about 30 seconds, all cases at once
    side_by_side.py --seconds 600         the long form
    side_by_side.py --seed 7 --case tcp   one case again
    side_by_side.py --self-test           is the harness itself any good? node against node must agree, and node
                                          against node with one option changed must not

A round is judged only when each side says (by its own `metrics_received`) that it got all of it in this flush. On a
busy machine a flush may cut a round in two: such a round is thrown away and both sides are left alone until they are
at rest again. Lines that Staunch never counts are a difference; when the original loses some, both begin anew.
"""

import argparse
import collections
import json
import math
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

from daemon import Daemon, DaemonError, free_port, node_statsd, staunch_binary
from graphite import FormError, Listener
from traffic import JS_SPACE, Traffic, key_of, survivable

HISTOGRAM = [{"metric": "histo.small", "bins": []}, {"metric": "a", "bins": [0.01, 10, 100, 1000, "inf"]}]
HISTOGRAM += [{"metric": "", "bins": [1, 5.5, 50]}]


# What the configuration files of the form `environment` look for.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "COMPAT_UNSET"} | {"COMPAT_SET": "1"}


# Fewer compared rounds than these are no verdict.
ROUNDS_MIN = 3


class Difference(Exception):
    """The two sides disagree."""


class OriginalLost(Exception):
    """The original, which reads with the kernel's small default buffer, lost datagrams: its state says nothing now."""


class Case:
    """A configuration, without its ports."""

    def __init__(self, name, interval_ms=1000, *, ascii_only=False, tcp=False, written="json", imported=False,
                 quirks=False, drawn=False, **options):  # fmt: skip
        self.name = name
        # Drawn at random: `import` may warn, and what was drawn is told with a difference.
        self.drawn = drawn
        # Ours runs with `compat_quirks`, and the traffic has what it promises to be the same then.
        self.quirks = quirks
        # How the file is written: a form of FORMS.
        self.written = written
        # Ours runs what `staunch import` made of the file, when `staunch check` finds it good.
        self.imported = imported or quirks
        self.interval_ms = interval_ms
        self.ascii_only = ascii_only
        self.tcp = tcp
        self.options = options
        self.pickle = options.get("graphiteProtocol") == "pickle"
        graphite = options.get("graphite", {})
        self._suffix = "." + graphite["globalSuffix"] if "globalSuffix" in graphite else ""
        self._own = options.get("prefixStats", "statsd")
        self._legacy = graphite.get("legacyNamespace", True)
        self._prefix = graphite.get("globalPrefix", "stats")
        self._counters = graphite.get("prefixCounter", "counters")
        self._gauges = graphite.get("prefixGauge", "gauges")

    def _name(self, *parts):
        return (".".join(part for part in parts if part) + self._suffix).encode()

    def end_of_flush(self):
        """The point that ends each flush."""
        return self._name("stats" if self._legacy else self._prefix, self._own, "graphiteStats.flush_length")

    def own_rate(self, counter):
        """Rate of a counter that the daemon keeps about itself."""
        if self._legacy:
            return self._name("stats", self._own, counter)
        return self._name(self._prefix, self._counters, self._own, counter, "rate")

    def restless(self):
        """Series whose values tell the time, or how a flush was written: they differ from run to run."""
        stats = "stats" if self._legacy else self._prefix
        gauges = "gauges" if self._legacy else self._gauges
        about = ["processing_time"]
        about += [f"graphiteStats.{what}" for what in ("calculationtime", "last_exception", "last_flush", "flush_time")]
        about += ["graphiteStats.flush_length"]
        names = {self._name(stats, self._own, what) for what in about}
        names.add(self._name(stats, gauges, self._own, "timestamp_lag"))
        if self.tcp:
            # Over TCP it counts reads, and how the kernel cuts a stream is nobody's promise.
            names.add(self.own_rate("packets_received"))
            names.add(self._name("stats_counts", self._own, "packets_received"))
        return names



def environment(config):
    """The file as fleets write it that are configured by environment variables."""
    lines = []
    for key, value in config.items():
        match value:
            case bool():
                lines.append(f"{key}: process.env.COMPAT_UNSET === 'yes' || {json.dumps(value)}")
            case int():
                lines.append(f"'{key}': parseInt(process.env.COMPAT_UNSET || '{value}', 10)")
            case str():
                lines.append(f"{key}: process.env['COMPAT_SET'] ? {json.dumps(value)} : 'not set'")
            case _:
                lines.append(f"{key}: {json.dumps(value)}")
    return "{\n  " + "\n, ".join(lines) + ",\n}\n"


def function(config):
    """The file as a function that is called at once."""
    ports = "".join(f"var {key} = {value} - 1;\n" for key, value in config.items() if key.endswith("ort"))
    fields = [f"{key}: {f'{key} + 1' if key.endswith('ort') else json.dumps(value)}" for key, value in config.items()]
    return f"(function() {{\n'use strict';\n{ports}return {{ {', '.join(fields)} }};\n}})();\n"


FORMS = {
    "json": lambda config: json.dumps(config, indent=2) + "\n",
    "environment": environment,
    "function": function,
}

CASES = [
    Case("defaults"),
    Case(
        "percentiles",
        interval_ms=700,
        written="environment",
        percentThreshold=[90, 50, -25, 99.9, "75", 1, 100],
        histogram=HISTOGRAM,
    ),
    Case(
        "namespace",
        imported=True,
        graphite={
            "legacyNamespace": False, "globalPrefix": "gp", "prefixCounter": "C", "prefixTimer": "",
            "prefixSet": "S", "globalSuffix": "h1",
        },
        percentThreshold=[95, -10],
        histogram=HISTOGRAM,
        prefixStats="own.stats",
    ),  # fmt: skip
    Case(
        "pickle",
        interval_ms=1300,
        written="function",
        imported=True,
        graphiteProtocol="pickle",
        graphite={"legacyNamespace": False, "globalPrefix": "", "prefixGauge": ""},
    ),
    Case("idle-deleted", deleteIdleStats=True),
    Case("idle-mixed", imported=True, deleteIdleStats=True, deleteCounters=False, deleteTimers=False, gaugesMaxTTL=2),
    Case("idle-gauges", deleteGauges=True, gaugesMaxTTL=3, deleteSets=True),
    Case("idle-kept", deleteIdleStats=True, deleteGauges=False, deleteSets=False, flush_counts=False),
    Case("raw-names", imported=True, keyNameSanitize=False),
    Case(
        "chosen-aggregates",
        written="function",
        percentThreshold=[75, 90, -10],
        calculatedTimerMetrics=["count", "upper_percent", "mean_top10", "mean", "histogram", "sum_squares_percent"],
        histogram=HISTOGRAM,
        graphite={"globalSuffix": "suffix"},
    ),
    Case("quirks", quirks=True, percentThreshold=[90, -25], histogram=HISTOGRAM, deleteGauges=True, gaugesMaxTTL=4),
    Case("tcp", imported=True, server="./servers/tcp", ascii_only=True, tcp=True, deleteTimers=True),
]



def random_case(seed, number):
    """A configuration drawn from what the files of fleets have in them; the same seed and number give the same one."""
    rng = random.Random(f"{seed}/configuration/{number}")
    options = {}

    def maybe(name, *values, into=options):
        if rng.random() < 0.6:
            into[name] = rng.choice(values)

    # A negative threshold under -74 takes all of two values: there the original computes NaN, and Staunch does not.
    some = rng.choices([90, 99.9, 0.5, 50, 100, 1, "75", 33.3333, -10, -74, -0.5, -33.25], k=rng.randint(1, 5))
    maybe("percentThreshold", 90, 0, "95", -25, 12.5, [], some)
    for name in ("deleteIdleStats", "deleteCounters", "deleteTimers", "deleteSets", "deleteGauges"):
        maybe(name, True, False, True, False, 0, 1, "false", "", None)
    maybe("gaugesMaxTTL", 1, 2, 3, 5, 0, -1, 1.5, "2")
    maybe("flush_counts", True, False, 0, "false", None)
    maybe("keyNameSanitize", True, False, 1, 0)
    maybe("prefixStats", "own", "own.stats")
    texts = [{"metric": "", "bins": [2e-7, "5", 100, "inf"]}]
    maybe("histogram", HISTOGRAM, HISTOGRAM[:1], HISTOGRAM[1:], [], texts)
    aggregates = ["count", "count_ps", "mean", "median", "std", "sum", "sum_squares", "upper", "lower", "histogram"]
    aggregates += [f"{name}_percent" for name in ("count", "mean", "upper", "lower", "sum", "sum_squares")]
    maybe("calculatedTimerMetrics", [], rng.sample(aggregates, rng.randint(1, 8)))
    if options.get("calculatedTimerMetrics"):
        # Labels with a fraction can never be listed there.
        options["percentThreshold"] = [90, -10, "75", 1]
    graphite = {}
    maybe("legacyNamespace", True, False, False, into=graphite)
    maybe("globalPrefix", "", "gp", "a.b", into=graphite)
    for name in ("prefixCounter", "prefixTimer", "prefixGauge", "prefixSet"):
        maybe(name, "", "p", "x.y", into=graphite)
    maybe("globalSuffix", "h1", "host.domain", into=graphite)
    maybe("graphite", graphite)
    # Names that are not sanitised and pickle do not go together there: its frames are too short for what is not ASCII.
    if options.get("keyNameSanitize", True):
        maybe("graphiteProtocol", "text", "pickle")
    how = {"written": rng.choice(list(FORMS)), "imported": rng.random() < 0.5}
    return Case(f"random-{number}", interval_ms=rng.choice([500, 800, 1000, 1100]), drawn=True, **how, **options)


# Options that a second copy of the original is given in the self-test, each a difference that must be found.
MUTATIONS = {
    "defaults": {"percentThreshold": 91},
    "idle-deleted": {"deleteGauges": False},
    "namespace": {"histogram": HISTOGRAM[:1]},
    "idle-gauges": {"gaugesMaxTTL": 2},
    "raw-names": {"keyNameSanitize": True},
    "tcp": {"deleteTimers": False},
}


class Side:
    """One daemon, its configuration file, its Graphite listener, and the socket that feeds it."""

    def __init__(self, name, command, case, folder, extra=()):
        self.name = name
        self.case = case
        self.port, self.management = free_port(), free_port()
        self.listener = Listener(pickle=case.pickle, last=case.end_of_flush())
        config = {
            "port": self.port,
            "address": "127.0.0.1",
            "mgmt_port": self.management,
            "mgmt_address": "127.0.0.1",
            "graphiteHost": "127.0.0.1",
            "graphitePicklePort" if case.pickle else "graphitePort": self.listener.port,
            "backends": ["./backends/graphite"],
            "flushInterval": str(case.interval_ms) if case.drawn else case.interval_ms,
            "automaticConfigReload": False,
            **case.options,
        }
        for key, value in dict(extra).items():
            config[key] = value
        path = pathlib.Path(folder) / f"{case.name}-{name}.js"
        path.write_text(f"// {case.name}\n" + FORMS[case.written](config))
        try:
            self.daemon = Daemon(self._words(command, path), name=name, cwd=folder, env=ENVIRONMENT)
        except OSError as error:
            self.listener.close()
            raise DaemonError(f"cannot start {command[0]}: {error}") from error
        self._socket = None

    def _words(self, command, path):
        """The command line that runs the file, or what `staunch import` makes of it."""
        if command[0] == "node":
            return [*command, str(path)]
        if not self.case.imported:
            return [command[0], "statsd", str(path), "--http", "off"]
        native = path.with_suffix(".toml")
        # Warnings make `import` end with 1: fine for options that were drawn at random, a difference for the others.
        text = self._run([command[0], "import", "statsd", str(path)], (0, 1) if self.case.drawn else (0,))
        if self.case.quirks:
            text = text.replace('dialect = "etsy"', 'dialect = "etsy"\ncompat_quirks = true')
            text = text.replace('type = "aggregate"', 'type = "aggregate"\nallow_non_finite = true')
        native.write_text(text)
        self._run([command[0], "check", str(native)])
        return [command[0], "run", str(native), "--http", "off"]

    def _run(self, words, good=(0,)):
        done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=20)
        if done.returncode not in good or "error[" in done.stderr:
            self.listener.close()
            raise Difference(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def ready(self):
        """Waits for the daemon and connects to it."""
        self.daemon.wait_tcp(self.management)
        kind = socket.SOCK_STREAM if self.case.tcp else socket.SOCK_DGRAM
        if self.case.tcp:
            self.daemon.wait_tcp(self.port)
        self._socket = socket.socket(socket.AF_INET, kind)
        self._socket.connect(("127.0.0.1", self.port))

    def send(self, datagrams):
        for number, datagram in enumerate(datagrams):
            if self.case.tcp:
                self._socket.sendall(datagram.rstrip(b"\n") + b"\n")
            else:
                self._socket.send(datagram)
            # Node reads with the kernel's default buffer, which is small.
            if number % 16 == 15:
                time.sleep(0.002)

    def close(self):
        if self._socket:
            self._socket.close()
        self.daemon.stop()
        self.listener.close()


class Pair:
    """Both sides of a case, and the rounds between them."""

    def __init__(self, case, commands, seed, folder, mutation=()):
        self.case = case
        self._rng = random.Random(f"{seed}/{case.name}")
        self._traffic = Traffic(self._rng, ascii_only=case.ascii_only, quirks=case.quirks)
        self._interval_s = case.interval_ms / 1000
        self._restless = case.restless()
        self._history = collections.deque(maxlen=4)
        self.compared, self.thrown_away, self.lines, self.series = 0, 0, 0, 0
        self.sides = self._start(commands, folder, mutation)

    def _start(self, commands, folder, mutation):
        # Both lay their flushes on a grid that hangs on the whole second nearest to their start: start them just
        # behind a half second, and look whether they came out equal.
        for _ in range(6):
            time.sleep((0.52 - time.time()) % 1)
            sides = []
            try:
                names = ("original", "ours")
                for name, command, extra in zip(names, commands, ((), mutation)):
                    sides.append(Side(name, command, self.case, folder, extra))
                for side in sides:
                    side.ready()
                self.sides = sides
                self._wait_flush()
                self._wait_flush()
                apart = abs(sides[0].listener.last_arrival() - sides[1].listener.last_arrival())
                if apart < 0.2 * self._interval_s:
                    return sides
            except BaseException:
                for side in sides:
                    side.close()
                raise
            for side in sides:
                side.close()
        raise DaemonError(f"{self.case.name}: the two sides never flushed at the same time")

    def close(self):
        for side in self.sides:
            side.close()

    def _wait_flush(self):
        """Waits until each side has flushed; the flushes of each side."""
        deadline = time.monotonic() + 5 * self._interval_s + 10
        for side in self.sides:
            while side.listener.flushes() == 0:
                if not side.daemon.running():
                    raise Difference(f"{side.name} ended:\n{side.daemon.output()[-2000:]}")
                if time.monotonic() > deadline:
                    raise Difference(f"{side.name} did not flush ({self.case.end_of_flush().decode()} did not come)")
                time.sleep(0.01)
        # The other side, too, was waited for: whatever came in the meantime belongs to this round.
        return [side.listener.take_flushes() for side in self.sides]

    def round(self):
        """Sends one round and compares what the flush brings."""
        datagrams = self._traffic.round()
        if self.case.tcp:
            datagrams = [datagram for datagram in datagrams if datagram.strip(b"\n")]
        sent = sum(1 for datagram in datagrams for line in datagram.split(b"\n") if line)
        if time.monotonic() - max(side.listener.last_arrival() for side in self.sides) > 0.25 * self._interval_s:
            # Too late in this window to get all of it in: let it pass, idle series are worth a look as well.
            flushes = self._wait_flush()
            if all(len(several) == 1 for several in flushes):
                self._compare(flushes[0][0], flushes[1][0])
        self._history.append(datagrams)
        for side in self.sides:
            side.send(datagrams)
        flushes = self._wait_flush()
        received = [self._lines_received(several) for several in flushes]
        if received != [sent, sent] or any(len(several) != 1 for several in flushes):
            self._settle(sent, received)
            return
        self._compare(flushes[0][0], flushes[1][0])
        self.compared += 1
        self.lines += sent

    def _settle(self, sent, received):
        """A round that was cut in two: waits until all of it is counted and both sides have forgotten it alike."""
        self.thrown_away += 1
        # Flushes that were on their way, then more of them than the longest `gaugesMaxTTL` of a case.
        patience, idle = time.monotonic() + 20, 0
        while idle < 6 and time.monotonic() < patience:
            flushes = self._wait_flush()
            received = [now + self._lines_received(several) for now, several in zip(received, flushes)]
            idle = idle + 1 if received == [sent, sent] else 0
        if received == [sent, sent]:
            return
        text = f"{sent} lines were sent; the original counted {received[0]}, ours {received[1]}"
        if received[0] < sent:
            raise OriginalLost(text)
        raise Difference(text)

    def _lines_received(self, flushes):
        rate = self.case.own_rate("metrics_received")
        # A rate times the interval is a whole number but for the last bits.
        values = [float(point.value) for points in flushes for point in points if point.name == rate]
        return sum(round(value * self._interval_s) for value in values)

    def _compare(self, original, ours):
        left, right = self._by_name(original), self._by_name(ours)
        for name in sorted(left.keys() | right.keys()):
            if left.get(name) != right.get(name):
                raise Difference(self._explain(name, left.get(name), right.get(name)))
        self.series += len(left)
        low, high = time.time() - 3 * self._interval_s - 5, time.time() + 5
        for name, points in (("original", original), ("ours", ours)):
            for point in points:
                if not low < point.time < high:
                    raise Difference(f"{name}: {point.name!r} carries the time {point.time}, now is {time.time():.0f}")

    def _by_name(self, points):
        series = collections.defaultdict(list)
        for point in points:
            if not graphite_reads(point.name):
                continue
            # The original sends these words, which no Graphite server takes; Staunch counts and drops them.
            if self.case.quirks and point.value in (b"Infinity", b"-Infinity", b"NaN"):
                continue
            series[point.name].append(b"any" if point.name in self._restless else point.value)
        # Names that differ before sanitising may come out equal: then a name has several values.
        return {name: sorted(values) for name, values in series.items()}

    def _explain(self, name, left, right):
        text = [f"series {name!r}", f"  original {left}", f"  ours     {right}"]
        for age, datagrams in enumerate(reversed(self._history)):
            touching = [datagram for datagram in datagrams if any(touches(line, name) for line in datagram.split(b"\n"))]
            text += [f"  sent {age} flushes before: {datagram!r}" for datagram in touching[:12]]
            if len(touching) > 12:
                text.append(f"  and {len(touching) - 12} more")
        return "\n".join(text)


def graphite_reads(name):
    """Whether a Graphite server can make anything of the name. The original sends the point either way, and nobody
    ever sees it again; Staunch counts it as dropped, reason `unsafe_name`, and does not send it."""
    text = name.decode("utf-8", "replace").rstrip(JS_SPACE.replace("\ufeff", "") + "\x85")
    if not text.split(";")[0]:
        return False
    return not any(c.isspace() or c in JS_SPACE or unicodedata.category(c) == "Cc" for c in text)


def touches(line, name):
    """Whether a line may be behind a series, by its key without tags."""
    key = key_of(line).split(";")[0] if line else None
    bare = name.decode("utf-8", "replace").split(";")[0]
    return key is not None and (f".{key}." in f".{bare}.")


def run_case(case, commands, args, folder, results, mutation=()):
    """Runs one case and puts `(case, verdict, text)` into `results`; the verdict is True, False or None (no answer)."""
    pair, lost, begin = None, 0, time.monotonic()
    try:
        pair = Pair(case, commands, args.seed, folder, mutation)
        # On a busy machine rounds miss flushes: then there are fewer of them, and not more seconds.
        wanted = args.flushes or math.floor((args.seconds - 4) / (case.interval_ms / 1000))
        least = args.flushes or ROUNDS_MIN
        enough = math.inf if args.flushes else begin + args.seconds
        hopeless = begin + 40 + 6 * max(wanted, least) * case.interval_ms / 1000
        while pair.compared < max(wanted, least) and time.monotonic() < hopeless:
            if pair.compared >= least and time.monotonic() >= enough:
                break
            try:
                pair.round()
            except OriginalLost:
                lost += 1
                pair.close()
                compared, lines, series = pair.compared, pair.lines, pair.series
                pair = Pair(case, commands, f"{args.seed}/{lost}", folder, mutation)
                pair.compared, pair.lines, pair.series = compared, lines, series
        counts = f"{pair.compared} flushes, {pair.lines} lines, {pair.series} points"
        if pair.thrown_away:
            counts += f", {pair.thrown_away} rounds cut in two and thrown away"
        if lost:
            counts += f", begun anew {lost} times since the original lost datagrams"
        if pair.compared < least:
            results.append((case.name, None, f"only {counts}: this machine is too busy to judge"))
        else:
            results.append((case.name, True, counts))
    except (Difference, FormError) as difference:
        drawn = f"{json.dumps(case.options)}: " if case.drawn else ""
        results.append((case.name, False, f"seed {args.seed}: {drawn}{difference}"))
    except (DaemonError, OSError) as error:
        results.append((case.name, None, str(error)))
    finally:
        if pair:
            pair.close()


def run_all(cases, commands, args, mutations=None):
    results = []
    with tempfile.TemporaryDirectory(prefix="side-by-side-") as folder:
        threads = []
        for case in cases:
            mutation = (mutations or {}).get(case.name, ())
            arguments = (case, commands, args, folder, results, mutation)
            threads.append(threading.Thread(target=run_case, args=arguments))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return results


def self_test(args):
    """Node against node must agree; node against a changed node must not."""
    original = node_statsd()
    mutated = [case for case in CASES if case.name in MUTATIONS]
    with ThreadPoolExecutor(1) as pool:
        equal = pool.submit(run_all, CASES, (original, original), args)
        changed = run_all(mutated, (original, original), args, MUTATIONS)
        equal = equal.result()
    verdicts = [(name, good, f"equal: {text}") for name, good, text in equal]
    for name, good, text in changed:
        found = {False: True, True: False, None: None}[good]
        first = text.splitlines()[0]
        verdicts.append((name, found, f"{MUTATIONS[name]} {'found' if found else 'NOT FOUND'}: {first}"))
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30, help="about how long (default 30)")
    parser.add_argument("--flushes", type=int, help="flushes to compare per case, instead of --seconds")
    parser.add_argument("--seed", default="1", help="of the traffic (default 1)")
    parser.add_argument("--case", action="append", help="only this case")
    parser.add_argument("--random", type=int, default=2, help="configurations drawn at random (default 2)")
    parser.add_argument("--self-test", action="store_true", help="test the harness with the original on both sides")
    args = parser.parse_args()
    assert not survivable(b"constructor:1|ms"), "the traffic would kill the original"
    try:
        if args.self_test:
            args.flushes = args.flushes or 5
            results = self_test(args)
        else:
            cases = CASES + [random_case(args.seed, number) for number in range(args.random)]
            if args.case and not set(args.case) <= {case.name for case in cases}:
                parser.error(f"cases are: {' '.join(case.name for case in cases)}")
            cases = [case for case in cases if not args.case or case.name in args.case]
            results = run_all(cases, (node_statsd(), [staunch_binary()]), args)
    except DaemonError as error:
        print(f"side by side: {error}", file=sys.stderr)
        return 2
    for name, good, text in sorted(results, key=lambda result: result[0]):
        print(f"{ {True: 'ok    ', False: 'DIFFER', None: 'FAILED'}[good] } {name}: {text}")
    passed = sum(1 for _, good, _ in results if good)
    print(f"side by side: {passed} passed, {len(results) - passed} failed")
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
