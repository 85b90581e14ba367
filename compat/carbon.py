#!/usr/bin/env python3
"""carbon-relay.py and carbon-aggregator.py beside what `staunch import carbon` makes of their files.

    carbon.py [--seed N] [--configs N] [--names N]
                        random carbon.conf files with rule files and random names: carbon's own code (carbon_original.py)
                        and `staunch run` with the imported file send the same points to the same destinations, under the
                        same names; results of aggregations have the same names, times and values
    carbon.py --self-test
                        bends our answers in several ways, each of which must show

Each run also has carbon-relay.py itself between two of ours: it takes our pickles, and we take its own.

carbon is looked for in $CARBON and compat/.carbon, into which .ci/tools installs it. Without it nothing is compared, and the
last line says `SKIPPED`; with COMPAT_STRICT=1 that is a failure.

Prints `carbon: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import pickle
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from carbon_files import Files, name
from comparison import Bends, Checks, arguments, skip
from daemon import COMPAT, Daemon, DaemonError, free_port, staunch_binary

CARBON = pathlib.Path(os.environ.get("CARBON") or COMPAT / ".carbon")
SECONDS_MAX = 30
# Configurations at once: they wait for windows, not for the processor.
AT_ONCE = 8


class Original:
    """carbon's own code, in a process that answers one job after the other."""

    def __init__(self):
        python = CARBON / "bin/python"
        self._lock = threading.Lock()
        self._process = subprocess.Popen([python, COMPAT / "carbon_original.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(SECONDS_MAX)

    def points(self, files, lines):
        job = {"conf": str(files.folder / "carbon.conf"), "program": files.program, "instance": files.instance, "lines": lines}
        with self._lock:
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            text = self._process.stdout.readline()
        if not text:
            raise DaemonError("carbon_original.py ended")
        answer = json.loads(text)
        if "error" in answer or answer["errors"]:
            raise DaemonError(f"carbon does not take it: {answer.get('error') or answer['errors']}")
        return [Point.of(where, name, value, when) for where, name, value, when in answer["points"]]


class Point(collections.namedtuple("Point", "where name value time")):
    """A point at a destination. Floats that differ in their last bits are the same."""

    @staticmethod
    def of(where, name, value, when):
        return Point(where, name, f"{float(value):.9g}", int(float(when)))


class Sink:
    """A destination that takes lines or pickle, and keeps the points."""

    def __init__(self, host, port, is_pickle):
        self.where = f"{host}:{port}"
        self.points = []
        self._is_pickle = is_pickle
        self._readers = []
        self._last = None
        self._socket = socket.create_server((host, port))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while True:
            connection, peer = self._socket.accept()
            if peer == self._last:
                return connection.close()
            reader = threading.Thread(target=self._read, args=(connection,), daemon=True)
            reader.start()
            self._readers.append(reader)

    def _read(self, connection):
        data = b""
        while got := connection.recv(65536):
            data = (self._frames if self._is_pickle else self._lines)(data + got)
        connection.close()

    def _lines(self, data):
        *lines, rest = data.split(b"\n")
        for line in lines:
            self.points.append(Point.of(self.where, *line.decode().split(" ")))
        return rest

    def _frames(self, data):
        while len(data) >= 4 and len(data) - 4 >= (length := struct.unpack(">I", data[:4])[0]):
            body, data = data[4 : 4 + length], data[4 + length :]
            for name, (when, value) in pickle.loads(body, encoding="utf-8"):
                self.points.append(Point.of(self.where, name, value, when))
        return data

    def close(self):
        """Ends when everything has been read that came before the connections ended."""
        last = socket.socket()
        last.bind(("127.0.0.1", 0))
        self._last = last.getsockname()
        # Behind all connections that wait to be accepted.
        last.connect(self._socket.getsockname())
        self._thread.join(SECONDS_MAX)
        last.close()
        self._socket.close()
        for reader in self._readers:
            reader.join(SECONDS_MAX)


def imported_from(conf, section):
    """The native file that `staunch import carbon` makes of a carbon.conf, beside it."""
    ran = subprocess.run([staunch_binary(), "import", "carbon", conf, "--section", section], capture_output=True, text=True,
                         timeout=SECONDS_MAX)
    if not ran.stdout:
        raise DaemonError(f"`staunch import carbon` takes no part of it:\n{ran.stderr}")
    native = conf.parent / "relay.toml"
    native.write_text(ran.stdout)
    return native


def taken_in(http):
    """Lines that the sources have settled."""
    with urllib.request.urlopen(f"http://127.0.0.1:{http}/api/v1/accounts", timeout=5) as reply:
        sources = json.load(reply)["sources"]
    return sum(source["received"] - source["in_flight"] for source in sources)


def ours(files, lines, until):
    """The points that reach the destinations when `staunch run` has the imported file. `until` is the second at which all
    windows are over, if there are any: what a stop finds of them it tells."""
    sinks = [Sink(host, port, files.protocol != "line") for host, port, _ in files.destinations]
    native, http = imported_from(files.folder / "carbon.conf", files.section), free_port()
    try:
        with Daemon([staunch_binary(), "run", native, "--http", f"127.0.0.1:{http}"]) as daemon:
            daemon.wait_http(f"http://127.0.0.1:{http}/ready")
            with socket.create_connection(("127.0.0.1", files.port)) as client:
                client.sendall("".join(f"{line}\n" for line in lines).encode())
            daemon.wait_until(lambda: taken_in(http) >= len(lines), f"{len(lines)} lines to be taken in", SECONDS_MAX)
            daemon.wait_until(lambda: time.time() > until, "windows to be over", SECONDS_MAX)
    finally:
        for sink in sinks:
            sink.close()
    return [point for sink in sinks for point in sink.points]


def difference(theirs, ours):
    """The first points on which both differ, in words; none when they agree."""
    left, right = collections.Counter(theirs), collections.Counter(ours)
    if left == right:
        return None
    only = lambda some, other: [f"    {' '.join(map(str, point))}" for point in sorted((some - other).elements())[:5]]
    return "\n".join(["  carbon alone:", *only(left, right), "  staunch alone:", *only(right, left)])


# Ways in which ours could be wrong: each must show in some configuration.
BENT = {
    "another destination": lambda points: [point._replace(where=points[0].where) for point in points],
    "a copy too many": lambda points: points + points[:1],
    "a copy too few": lambda points: points[1:],
    "a name as it was": lambda points: [point._replace(name=point.name.replace("www.", "web.")) for point in points],
    "tags in order": lambda points: [point._replace(name=ordered(point.name)) for point in points],
    "a sum too high": lambda points: [p._replace(value=f"{float(p.value) + 1:.9g}") if p.name.startswith("agg") else p for p in points],
    "the end of a window": lambda points: [p._replace(time=p.time + 1) if p.name.startswith("agg") else p for p in points],
}


def ordered(text):
    first, *tags = text.split(";")
    return ";".join([first, *sorted(tags)])


def one(original, seed, count):
    """One configuration: what differs, if anything, and what both have sent."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        files = Files(chance, folder, free_port(), free_port)
        names = [name(chance, files) for _ in range(count)]
        windowed = files.program == "aggregator"
        first = int(time.time()) + 1 if windowed else 1_700_000_000
        # A value tells its line, and with halves among them sums and percentiles have something behind the point.
        lines = [f"{text} {number / 2 + 1} {first + chance.randint(0, 1)}" for number, text in enumerate(names)]
        theirs = original.points(files, lines)
        got = ours(files, lines, first + 2 * files.frequency + 1 if windowed else 0)
        shown = "\n".join(f"--- {path.name}\n{path.read_text()}" for path in sorted(files.folder.glob("*.conf")))
        return theirs, got, f"[{files.section}]\n{shown}"


def relayed(seed, count):
    """What is left of lines that go through ours, carbon-relay.py and ours again, as pickle between them."""
    chance = random.Random(seed)
    first, second, third, last = (free_port() for _ in range(4))
    conf = "[relay]\nRELAY_METHOD = consistent-hashing\nCARBON_METRIC_INTERVAL = 0\nLINE_RECEIVER_INTERFACE = 127.0.0.1\n" \
        "PICKLE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {}\nPICKLE_RECEIVER_PORT = {}\n" \
        "DESTINATIONS = 127.0.0.1:{}\nDESTINATION_PROTOCOL = {}\n"
    lines = [f"n{number}.é;b=1;a={number} {chance.uniform(-1e6, 1e6)!r} {1_700_000_000 + number}" for number in range(count)]
    sink = Sink("127.0.0.1", last, False)
    with tempfile.TemporaryDirectory() as folder:
        folders = [pathlib.Path(folder, name) for name in ("before", "carbon", "behind")]
        confs = [conf.format(first, 0, second, "pickle"), conf.format(0, second, third, "pickle"), conf.format(0, third, last, "line")]
        for each, text in zip(folders, confs):
            each.mkdir()
            (each / "carbon.conf").write_text(text)
        (folders[1] / "storage-schemas.conf").write_text("")
        stub = "import runpy, sys, types; sys.modules.setdefault('imp', types.ModuleType('imp')); del sys.argv[0]; " \
            "runpy.run_path(sys.argv[0], run_name='__main__')"
        carbon = [CARBON / "bin/python", "-c", stub, CARBON / "bin/carbon-relay.py", "--nodaemon", "--config", folders[1] / "carbon.conf",
                  "--logdir", folder, "--pidfile", pathlib.Path(folder, "pid"), "start"]
        native = [imported_from(folders[at] / "carbon.conf", "relay") for at in (0, 2)]
        run = lambda native: Daemon([staunch_binary(), "run", native, "--http", "off"])
        with run(native[1]), Daemon(carbon, env={**os.environ, "GRAPHITE_ROOT": folder}) as original, run(native[0]) as before:
            original.wait_tcp(second)
            before.wait_tcp(first)
            with socket.create_connection(("127.0.0.1", first)) as client:
                client.sendall("".join(f"{line}\n" for line in lines).encode())
            original.wait_until(lambda: len(sink.points) >= count, f"{count} points", SECONDS_MAX)
        sink.close()
    return difference([Point.of(sink.where, *line.split(" ")) for line in lines], sink.points)


def main():
    options = arguments(__doc__, configs=32, names=200)
    if not (CARBON / "bin/carbon-relay.py").exists():
        skip("no carbon ($CARBON, or compat/.carbon, which .ci/tools makes)")
    checks, bends = Checks(), Bends(BENT if options.self_test else {})
    seeds = [options.seed * 1_000_000 + number for number in range(options.configs)]
    with Original() as original, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        running = {seed: pool.submit(one, original, seed, options.names) for seed in seeds}
        for seed, result in running.items():
            theirs, got, shown = result.result()
            bends.hold(lambda bend: got and difference(theirs, bend(got)))
            found = difference(theirs, got)
            checks.that(found is None, f"in configuration {seed}:\n{found}\n{shown}")
    found = relayed(options.seed, 500)
    checks.that(found is None, f"behind carbon-relay.py:\n{found}")
    bends.judge(checks)
    return checks.summary("carbon")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DaemonError, OSError, subprocess.TimeoutExpired) as error:
        print(f"carbon: {error}", file=sys.stderr)
        sys.exit(2)
