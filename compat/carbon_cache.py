#!/usr/bin/env python3
"""carbon-cache.py beside a link of that name to staunch: the same carbon.conf, the same traffic, equal trees.

    carbon_cache.py [--seed N] [--rounds N]
                        each round writes a carbon.conf with random options, schemas, aggregations and lists, starts both
                        with the same command line, sends the same points as lines, datagrams and pickles, asks both by
                        CarbonLink, stops both with `stop`, and compares the trees: the same files with the same headers
                        and the same points in every archive
    carbon_cache.py --self-test
                        changes our trees and answers in several ways, each of which must show

Files are equal byte for byte where carbon wrote a file in one go. Otherwise its archives may begin at another slot; the points
are the same. The last line says how many files were equal to the byte.

The original is looked for in $CARBON and compat/.carbon, into which .ci/tools installs it (carbon 1.1.10). Without it nothing is
compared, and the last line says `SKIPPED`; with COMPAT_STRICT=1 that is a failure.

Prints `carbon-cache: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import os
import pathlib
import pickle
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time

from comparison import Bends, Checks, arguments, skip, wait_for
from daemon import COMPAT, DaemonError, free_port, staunch_binary

CARBON = pathlib.Path(os.environ.get("CARBON") or COMPAT / ".carbon")
WORDS = ["web", "db", "app", "host1", "cpu", "load", "hits", "count", "upper_90", "p-1", "a_b", "x", "mean", "min"]
SCHEMAS = ["1s:10m,10s:1h", "10s:1h", "5s:10m,30s:2h,5m:1d", "60s:1d", "10s:6h,1m:7d,10m:1y"]
METHODS = ["average", "sum", "last", "max", "min"]
# Without protobuf: carbon has it only with a library that it does not ask for.
CHANNELS = ["lines", "datagrams", "pickle"]
MARKERS = [f"marker.{channel}" for channel in CHANNELS]
SECONDS_MAX = 40


class Round:
    """One configuration and its traffic."""

    def __init__(self, chance):
        self.options = {
            "WHISPER_SPARSE_CREATE": chance.random() < 0.5,
            "WHISPER_FALLOCATE_CREATE": chance.random() < 0.3,
            "WHISPER_LOCK_WRITES": chance.random() < 0.3,
            "TAG_HASH_FILENAMES": chance.random() < 0.7,
            "USE_WHITELIST": chance.random() < 0.5,
            "CACHE_WRITE_STRATEGY": chance.choice(["sorted", "max", "naive"]),
        }
        self.instance = chance.choice(["a", "b"])
        self.files = {
            "storage-schemas.conf": self._schemas(chance),
            "storage-aggregation.conf": self._aggregations(chance),
            "blacklist.conf": "# comment\n\\.secret$\n^host1\\.db\n",
            "whitelist.conf": "^(web|db|app|host1|marker|p-1|x|t)\n",
        }
        if chance.random() < 0.2:
            del self.files["storage-aggregation.conf"]
        self.traffic = self._traffic(chance)

    @staticmethod
    def _schemas(chance):
        text = "[carbon]\npattern = ^carbon\\.\nretentions = 60:90d\n"
        for number, pattern in enumerate(chance.sample([r"\.cpu$", r"^web\.", r"host\d", r";dc=", r"^db\.[a-z]+"], 3)):
            text += f"[s{number}]\npattern = {pattern}\nretentions = {chance.choice(SCHEMAS)}\n"
        if chance.random() < 0.7:
            text += f"[default]\npattern = .*\nretentions = {chance.choice(SCHEMAS)}\n"
        return text

    @staticmethod
    def _aggregations(chance):
        text = ""
        for number, pattern in enumerate(chance.sample([r"\.count$", r"\.min$", r"^web", r"upper", r"host1"], 3)):
            text += f"[a{number}]\npattern = {pattern}\n"
            if chance.random() < 0.8:
                text += f"xFilesFactor = {chance.choice([0, 0.1, 0.5, 1])}\n"
            if chance.random() < 0.8:
                text += f"aggregationMethod = {chance.choice(METHODS)}\n"
        return text

    @staticmethod
    def _name(chance):
        name = ".".join(chance.choice(WORDS) for _ in range(chance.randint(1, 4)))
        if chance.random() < 0.1:
            name += ".secret"
        if chance.random() < 0.25:
            name = f"t.{name};dc={chance.choice(['eu', 'us'])};a={chance.randint(1, 3)}"
        return name

    def _traffic(self, chance):
        """(channel, [(name, time, value)]): times rise, and all are in the finest archive while this runs."""
        now = int(time.time())
        found = []
        for name in sorted({self._name(chance) for _ in range(60)}):
            times = sorted(now - chance.randint(0, 400) for _ in range(chance.choice([1, 1, 2, 5, 30])))
            points = [(name, when, chance.choice([1, -2.5, 0.1, 1e300, 1e-300, 7, 3.0, 12345678901])) for when in times]
            found.append((chance.choice(CHANNELS), points))
        return found

    @property
    def names(self):
        return [points[0][0] for _, points in self.traffic]


class Side:
    """One of both programs, in a root of its own."""

    def __init__(self, folder, program, a_round, more):
        self.root = pathlib.Path(folder)
        self.program, self.round = program, a_round
        self.ports = {what: free_port() for what in ["lines", "datagrams", "pickle", "queries"]}
        (self.root / "conf").mkdir(parents=True)
        keys = {
            "STORAGE_DIR": self.root / "storage",
            "LINE_RECEIVER_PORT": self.ports["lines"],
            "ENABLE_UDP_LISTENER": True,
            "UDP_RECEIVER_PORT": self.ports["datagrams"],
            "PICKLE_RECEIVER_PORT": self.ports["pickle"],
            "CACHE_QUERY_PORT": self.ports["queries"],
            "MAX_UPDATES_PER_SECOND": "inf",
            "MAX_CREATES_PER_MINUTE": "inf",
            "CARBON_METRIC_INTERVAL": 0,
            "LOG_UPDATES": False,
            **a_round.options,
        }
        for what in ["LINE_RECEIVER", "UDP_RECEIVER", "PICKLE_RECEIVER", "CACHE_QUERY"]:
            keys[f"{what}_INTERFACE"] = "127.0.0.1"
        section = "[cache]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
        (self.root / "conf/carbon.conf").write_text(section + "[cache:b]\nLOG_CREATES = False\n")
        for name, text in a_round.files.items():
            (self.root / "conf" / name).write_text(text)
        self._more = more

    def run(self, action, *more):
        words = [*self.program, "--config", self.root / "conf/carbon.conf", "--instance", self.round.instance, *more, action]
        environment = {"PATH": os.environ["PATH"], "GRAPHITE_ROOT": str(self.root)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        said = done.stdout.replace(str(self.root), "ROOT")
        return done.returncode, "".join(c for c in said if not c.isdigit()), done.stdout + done.stderr

    def start(self):
        code, _, said = self.run("start", *self._more)
        if code:
            raise DaemonError(f"{self.program} did not start: {said}")
        wait_for("it to listen", self._listens, SECONDS_MAX)

    def _listens(self):
        try:
            return all(socket.create_connection(("127.0.0.1", self.ports[what])).close() is None
                       for what in ["lines", "pickle", "queries"])
        except OSError:
            return False

    def stop(self):
        code, said, _ = self.run("stop")
        wait_for("it to end", lambda: self.run("status")[0] == 1, SECONDS_MAX)
        return code, said

    def send(self):
        """All points, and at the end of each channel a marker; a channel is read in order."""
        now = int(time.time())
        traffic = self.round.traffic + [(what, [(f"marker.{what}", now, 1)]) for what in CHANNELS]
        open_to = {what: socket.create_connection(("127.0.0.1", self.ports[what])) for what in ["lines", "pickle"]}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            for what, points in traffic:
                if what == "datagrams":
                    # All of a series in one: carbon's socket has room for few.
                    datagrams.sendto(message("lines", points), ("127.0.0.1", self.ports[what]))
                else:
                    open_to[what].sendall(message(what, points))
        for connection in open_to.values():
            connection.close()
        for what in CHANNELS:
            wait_for(f"{what} of {self.root.name} to be read", lambda what=what: self.has(f"marker.{what}"), SECONDS_MAX)

    def points(self, name):
        return self.ask({"type": "cache-query", "metric": name})["datapoints"]

    def has(self, name):
        return bool(self.points(name)) or name in self.tree_names()

    def tree_names(self):
        return {".".join(path.relative_to(self.tree).with_suffix("").parts) for path in self.tree.rglob("*.wsp")}

    @property
    def tree(self):
        return self.root / "storage/whisper"

    def ask(self, request):
        with socket.create_connection(("127.0.0.1", self.ports["queries"])) as link:
            packed = pickle.dumps(request, protocol=-1)
            link.sendall(struct.pack("!L", len(packed)) + packed)
            (length,) = struct.unpack("!L", exactly(link, 4))
            return pickle.loads(exactly(link, length))


def exactly(link, length):
    data = b""
    while len(data) < length:
        more = link.recv(length - len(data))
        if not more:
            raise DaemonError("CarbonLink ended in a reply")
        data += more
    return data


def message(what, points):
    """Points on the wire of a channel."""
    if what == "lines":
        return "".join(f"{name} {value!r} {when}\n" for name, when, value in points).encode()
    body = pickle.dumps([(name, (when, value)) for name, when, value in points], protocol=2)
    return struct.pack("!L", len(body)) + body


def content(data):
    """A whisper file as its header and the points of each archive."""
    method, retention, factor, count = struct.unpack(">LLfL", data[:16])
    archives = []
    for number in range(count):
        offset, step, points = struct.unpack(">LLL", data[16 + 12 * number : 28 + 12 * number])
        slots = [struct.unpack(">Ld", data[at : at + 12]) for at in range(offset, offset + 12 * points, 12)]
        archives.append((step, points, sorted(slot for slot in slots if slot[0])))
    return method, retention, factor, archives


def trees(original, ours):
    """What differs between two trees: {file: (theirs, ours)}, and how many are equal to the byte."""
    files = lambda tree: {str(path.relative_to(tree)): path.read_bytes() for path in sorted(tree.rglob("*.wsp"))}
    theirs, mine = files(original), files(ours)
    differ = {name: (name in theirs, name in mine) for name in theirs.keys() ^ mine.keys()}
    equal = 0
    for name in theirs.keys() & mine.keys():
        equal += theirs[name] == mine[name]
        if content(theirs[name]) != content(mine[name]):
            differ[name] = content(theirs[name]), content(mine[name])
    return differ, equal, len(theirs)


def play(a_round, folder, checks, bends=None):
    """Both sides once; (files equal to the byte, files)."""
    link = pathlib.Path(folder) / "carbon-cache.py"
    link.symlink_to(os.path.abspath(staunch_binary()))
    original = Side(pathlib.Path(folder) / "original", [CARBON / "bin/python", CARBON / "bin/carbon-cache.py"], a_round, [])
    ours = Side(pathlib.Path(folder) / "ours", [link], a_round, ["--http", f"127.0.0.1:{free_port()}"])
    sides = [original, ours]
    said = [side.run("status")[:2] for side in sides]
    checks.that(said[0] == said[1], "status before the start", *said)
    try:
        for side in sides:
            side.start()
        again = [side.run("start")[:2] for side in sides]
        checks.that(again[0] == again[1], "a second start", *again)
        for side in sides:
            side.send()
        # What theirs still has in memory ours has as well, with equal values; what theirs has written is in its file.
        replies = [side.ask({"type": "cache-query-bulk", "metrics": a_round.names})["datapointsByMetric"] for side in sides]
        for name in a_round.names:
            theirs, mine = (sorted(dict(reply[name]).items()) for reply in replies)
            checks.that(not theirs or theirs == mine, f"CarbonLink {name}", theirs, mine)
        requests = [{"type": "nonsense"}, {"type": "get-metadata", "metric": "marker.lines", "key": "nonsense"}]
        for request in requests:
            theirs, mine = (side.ask(request) for side in sides)
            checks.that(theirs.keys() == mine.keys(), f"CarbonLink {request}", theirs, mine)
        # A stop in the second in which carbon's writer sleeps loses what is in memory.
        wait_for("carbon to write", lambda: not any(original.points(name) for name in a_round.names + MARKERS), SECONDS_MAX)
        stopped = [side.stop() for side in sides]
        checks.that(stopped[0] == stopped[1], "stop", *stopped)
    finally:
        for side in sides:
            side.run("stop")
    differ, equal, files = trees(original.tree, ours.tree)
    for name, (theirs, mine) in sorted(differ.items()):
        checks.that(False, f"{name} in {folder}", theirs, mine)
    checks.passed += files - len(differ)
    checks.that(files > 20, "there are files", files)
    if bends:
        bends.hold(lambda bend: bend(original.tree, ours.tree))
    return equal, files


def bent(change):
    """A way to change one of our files; whether the comparison shows it."""

    def shows(original, ours):
        for path in sorted(ours.rglob("*.wsp")):
            data = path.read_bytes()
            changed = change(bytearray(data))
            if changed is not None:
                path.write_bytes(changed)
                differs = bool(trees(original, ours)[0])
                path.write_bytes(data)
                return differs
        return False

    return shows


def without_points(data):
    first = struct.unpack(">L", data[16:20])[0]
    data[first:] = bytes(len(data) - first)
    return data


def other_method(data):
    data[3] ^= 3
    return data


def other_value(data):
    first = struct.unpack(">L", data[16:20])[0]
    for at in range(first, len(data), 12):
        if data[at : at + 4] != b"\0\0\0\0":
            data[at + 5] ^= 1
            return data
    return None


def removed(original, ours):
    path = next(ours.rglob("*.wsp"))
    data = path.read_bytes()
    path.unlink()
    differs = bool(trees(original, ours)[0])
    path.write_bytes(data)
    return differs


BENDS = {
    "a file without points": bent(without_points),
    "another method": bent(other_method),
    "another value": bent(other_value),
    "a file that is missing": removed,
}


def main():
    given = arguments(__doc__, rounds=3)
    if not (CARBON / "bin/carbon-cache.py").exists():
        skip("carbon is not there: .ci/tools installs it into compat/.carbon")
    checks, bends = Checks(), Bends(BENDS) if given.self_test else None
    equal = files = 0
    for number in range(1 if given.self_test else given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            a_round = Round(random.Random(f"{given.seed} {number}"))
            more_equal, more = play(a_round, folder, checks, bends)
            equal, files = equal + more_equal, files + more
    if bends:
        bends.judge(checks)
    return checks.summary("carbon-cache", f"; {equal} of {files} files equal to the byte")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DaemonError as error:
        print(f"carbon_cache.py: {error}", file=sys.stderr)
        sys.exit(2)
