#!/usr/bin/env python3
"""graphite-web's HTTP API beside ours, over the same whisper files.

    graphite_web.py [--seed N] [--requests N]
                        a tree of random series is made with the Python whisper library. Then the same requests go to
                        graphite-web's views and to a daemon whose store is that tree: /render in every format but images, with
                        random targets, ranges, zones, maxDataPoints and noNullPoints; /metrics/find in every format, with random
                        globs; /metrics/expand, /metrics/index.json, /tags. Values within 1e-9, everything else equal. A daemon without
                        a store, whose peer is graphite-web, has to give the same answers as the daemon with the store
    graphite_web.py --self-test
                        bends our answers in several ways, each of which must show

Differences that are meant are in `meant`, each with its reason. graphite-web is looked for in $GRAPHITE_WEB and compat/.graphite-web, which
.ci/tools makes. Without it nothing is compared, and the last line says `SKIPPED`; with COMPAT_STRICT=1 that is a failure.

Prints `graphite-web: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import base64
import csv
import io
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from comparison import Bends, Checks, arguments, skip, wait_for
from daemon import COMPAT, Daemon, DaemonError, free_port, staunch_binary

GRAPHITE_WEB = pathlib.Path(os.environ.get("GRAPHITE_WEB") or COMPAT / ".graphite-web")
NAMES = ["servers.web1.cpu", "servers.web1.mem", "servers.web2.cpu", "servers.web10.cpu", "servers.db1.cpu", "servers.db1.disk.used",
         "servers.db1.disk.free", "app.hits", "app.hits.count", "app.a-b_c", "x", "y.z"]
TAGGED = ["disk.used;dc=eu;host=web1", "disk.used;dc=us;host=web1", "disk.free;dc=eu;host=web2"]
LAYOUTS = [[(1, 600), (60, 600)], [(10, 360), (60, 1440)], [(60, 1440)]]
GLOBS = ["*", "servers.*", "servers.web*.cpu", "servers.web?.cpu", "servers.{web1,db1}.*", "servers.web[12].cpu", "servers.web1*.cpu",
         "app.*", "x", "none.*", "servers.*.*", "servers.db1.disk.*", "servers.[!d]*.cpu", "app.hits", "servers.{web,db}1.cpu"]
TARGETS = ["{}", "sumSeries({})", "averageSeries({})", "scale({},0.1)", "movingAverage(servers.web1.cpu,3)", "summarize({},'1min','sum')", "alias({},'a,\"b')",
           "groupByNode({},1,'sum')", "highestAverage({},2)", "derivative({})", "countSeries({})", "aliasByNode({},1)", "keepLastValue({})",
           "consolidateBy({},'max')", "transformNull({},-1)", "sortByName({})", "seriesByTag('dc=eu')",
           "sumSeries(seriesByTag('name=disk.used'))", "constantLine(12.5)"]
# A moving window over series of several steps has values at times of the largest step there; render.py compares windows.
FORMATS = ["json", "json", "csv", "raw", "pickle", "msgpack", "dygraph", "rickshaw"]
FIND_FORMATS = ["treejson", "treejson", "completer", "nodelist", "json", "pickle", "msgpack"]


class Original:
    """graphite-web, in a process that answers one job after the other."""

    def __init__(self, storage):
        environment = {**os.environ, "GRAPHITE_STORAGE_DIR": str(storage), "TZ": "UTC"}
        self._process = subprocess.Popen([GRAPHITE_WEB / "bin/python", COMPAT / "graphite_web_original.py"], env=environment,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, job):
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            # Django prints now and then.
            if line.startswith("{"):
                return json.loads(line)
        raise DaemonError("graphite_web_original.py ended")

    def close(self):
        self._process.stdin.close()
        self._process.wait(30)


def files(chance, now):
    """What is in the tree."""
    found = []
    for name in NAMES:
        layout = chance.choice(LAYOUTS)
        step = layout[0][0]
        times = range(now - 580, now, step)
        points = [(when, chance.choice([1, 2.5, -3.25, 0.1, 1000, 12.125]) * chance.randint(1, 9)) for when in times if chance.random() < 0.8]
        found.append({"path": name.replace(".", "/") + ".wsp", "archives": layout, "points": points, "factor": chance.choice([0, 0.5]),
                      "method": chance.choice(["average", "sum", "max", "last"])})
    return found


def send_tagged(port, now):
    """Tagged series have hashed paths, which we make: both read them."""
    import socket
    lines = "".join(f"{name} {number + 1} {now - 60 * age}\n" for age in range(5) for number, name in enumerate(TAGGED))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(lines.encode())


def request(chance, now):
    """A path with its query, and its format."""
    kind = chance.choice(["render"] * 6 + ["find"] * 4 + ["expand", "index", "tags"])
    if kind == "render":
        form = chance.choice(FORMATS)
        query = [("target", chance.choice(TARGETS).format(chance.choice(GLOBS))) for _ in range(chance.choice([1, 1, 2]))]
        query += [("from", now - chance.choice([120, 300, 500, 4000])), ("until", now - chance.choice([0, 60])), ("now", now), ("format", form)]
        if chance.random() < 0.3:
            query.append(("maxDataPoints", chance.choice([1, 5, 10, 1000])))
        if chance.random() < 0.2:
            query.append(("noNullPoints", "true"))
        if chance.random() < 0.3:
            query.append(("tz", chance.choice(["Europe/Berlin", "America/New_York", "Asia/Kolkata"])))
        return "/render?" + urllib.parse.urlencode(query + [("noCache", 1)]), form
    if kind == "find":
        form = chance.choice(FIND_FORMATS)
        query = [("query", chance.choice(GLOBS)), ("format", form)]
        if chance.random() < 0.3:
            query.append(("wildcards", 1))
        if chance.random() < 0.3:
            query.append(("leavesOnly", chance.choice([0, 1])))
        if form == "nodelist":
            query.append(("position", chance.choice([0, 1])))
        return "/metrics/find?" + urllib.parse.urlencode(query), form
    if kind == "expand":
        query = [("query", chance.choice(GLOBS)) for _ in range(chance.choice([1, 2]))]
        return "/metrics/expand?" + urllib.parse.urlencode(query + [("leavesOnly", chance.choice([0, 1])), ("groupByExpr", chance.choice([0, 1]))]), "json"
    if kind == "index":
        return "/metrics/index.json", "index"
    return chance.choice(["/tags/findSeries?expr=dc=eu", "/tags/findSeries?expr=host=~web", "/tags/autoComplete/tags", "/tags/autoComplete/tags?expr=dc=eu",
                          "/tags/autoComplete/values?tag=host", "/tags/autoComplete/values?tag=dc&expr=host=web1"]), "json"


def fetched(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read()


def decoded(original, form, body):
    """An answer as values that can be compared."""
    if form in ("pickle", "msgpack"):
        answer = original.ask({"decode": form, "body": base64.b64encode(body).decode()})
        if "error" in answer:
            raise DaemonError(f"{form}: {answer['error']}")
        return meant(form, answer["value"])
    text = body.decode()
    if form == "csv":
        return [[name, when, float(value) if value else None] for name, when, value in csv.reader(io.StringIO(text))]
    if form == "raw":
        return [[line.split("|")[0], [None if value == "None" else float(value) for value in line.split("|")[1].split(",") if value]]
                for line in text.splitlines()]
    return meant(form, json.loads(text))


def meant(form, value):
    """Without what differs on purpose."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        for one in value:
            # Of files only; ours counts points that are in memory.
            one.pop("intervals", None)
    if form in ("pickle", "msgpack") or form == "completer":
        # Of one folder in the order of a hash there, sorted here.
        names = value["metrics"] if isinstance(value, dict) else value
        names.sort(key=lambda one: (one.get("path") or one.get("name", ""), str(one.get("is_leaf"))))
    if form == "index":
        # Tagged series are there by the names of their files, here only with `tagged=1` and by their own.
        return [name for name in value if not name.startswith("_tagged.")]
    if form in ("treejson", "completer", "json", "nodelist", "pickle", "msgpack") and isinstance(value, (list, dict)):
        return without_tagged(value)
    return value


def without_tagged(value):
    """The folder of tagged series is a name there, and hidden here."""
    hidden = lambda one: one == "_tagged" or isinstance(one, dict) and "_tagged" in (one.get("text"), one.get("name"), one.get("path"), one.get("path", "")[:7])
    if isinstance(value, dict):
        return {key: without_tagged(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_tagged(one) if isinstance(one, (dict, list)) else one for one in value if not hidden(one)]
    return value


def equal(theirs, ours):
    if isinstance(theirs, (int, float)) and isinstance(ours, (int, float)) and not isinstance(theirs, bool):
        return math.isclose(theirs, ours, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(equal, theirs, ours))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(equal(theirs[key], ours[key]) for key in theirs)
    return theirs == ours


def first_number(value, change):
    """The value with its first number changed; none if it has none."""
    if isinstance(value, float):
        return change(value)
    if isinstance(value, (list, dict)):
        keys = range(len(value)) if isinstance(value, list) else list(value)
        for key in keys:
            changed = first_number(value[key], change)
            if changed is not None:
                copy = list(value) if isinstance(value, list) else dict(value)
                copy[key] = changed
                return copy
    return None


BENDS = {
    "a value that is a little larger": lambda value: first_number(value, lambda number: number * (1 + 1e-6) + 1e-6),
    "an answer without its first element": lambda value: value[1:] if isinstance(value, list) and value else None,
    "another answer": lambda value: [] if value else None,
}


def of_peer(peer_base, path, form, original):
    """The answer of the daemon that asks graphite-web. Without it being asked, that would be a status other than 200."""
    request = urllib.request.Request(peer_base + path)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return decoded(original, form, answer.read()), answer.headers.get("X-Staunch-Missing")


def compare(original, bases, chance, now, count, checks, bends):
    base, peer_base = bases
    for _ in range(count):
        path, form = request(chance, now)
        theirs = original.ask({"get": path})
        status, kind, body = fetched(base + path)
        if "error" in theirs or theirs["status"] >= 500:
            continue
        if theirs["status"] != 200 or status != 200:
            checks.that(theirs["status"] == status, f"status of {path}", theirs["status"], status)
            continue
        same_kind = theirs["type"].split(";")[0] == kind.split(";")[0]
        checks.that(same_kind, f"type of {path}", theirs["type"], kind)
        wanted, found = decoded(original, form, base64.b64decode(theirs["body"])), decoded(original, form, body)
        checks.that(equal(wanted, found), path, wanted, found)
        if form != "index":
            by_peer, missing = of_peer(peer_base, path, form, original)
            checks.that(equal(found, by_peer) and missing is None, f"through a peer: {path}", found, (by_peer, missing))
        if bends:
            bends.hold(lambda bend: (bent := bend(found)) is not None and not equal(wanted, bent))


def main():
    given = arguments(__doc__, requests=300)
    if not (GRAPHITE_WEB / "bin/python").exists():
        skip("graphite-web is not there: .ci/tools installs it into compat/.graphite-web")
    checks, bends = Checks(), Bends(BENDS) if given.self_test else None
    chance, now = random.Random(given.seed), int(time.time()) // 60 * 60
    with tempfile.TemporaryDirectory() as folder:
        storage = pathlib.Path(folder)
        original = Original(storage)
        made = original.ask({"create": files(chance, now), "now": now})
        if "error" in made:
            raise DaemonError(made["error"])
        port, lines = free_port(), free_port()
        config = storage / "staunch.toml"
        config.write_text(f'data_dir = "{storage}/data"\n[http]\nlisten = "127.0.0.1:{port}"\n[sources.lines]\ntype = "graphite"\n'
                          f'listen = ["tcp://127.0.0.1:{lines}"]\n[outputs.store]\ntype = "whisper"\nfrom = ["lines"]\n'
                          f'path = "{storage}/whisper"\nwrite_after = "1s"\nschemas = [{{ pattern = "", retentions = "60s:1d" }}]\n')
        base = f"http://127.0.0.1:{port}"
        peer_port, peer_config = free_port(), storage / "peer.toml"
        peer_config.write_text(f'data_dir = "{storage}/peer-data"\n[http]\nlisten = "127.0.0.1:{peer_port}"\n[sources.lines]\n'
                               f'type = "graphite"\nlisten = ["tcp://127.0.0.1:0"]\n[outputs.out]\ntype = "graphite_file"\nfrom = ["lines"]\npath = "{storage}/lines"\n'
                               f'[graphite_api]\npeers = ["http://127.0.0.1:{original.ask({"serve": True})["port"]}"]\n')
        peer_base = f"http://127.0.0.1:{peer_port}"
        with Daemon([staunch_binary(), "run", config]) as daemon, Daemon([staunch_binary(), "run", peer_config]) as peer:
            peer.wait_http(f"{peer_base}/ready")
            daemon.wait_http(f"{base}/ready")
            send_tagged(lines, now)
            written = lambda: len(list((storage / "whisper").rglob("_tagged/*/*/*.wsp"))) == len(TAGGED)
            wait_for("the tagged series to be written", written, 30)
            found = lambda: b"y.z" in fetched(f"{base}/metrics/index.json")[2]
            wait_for("the files to be found", found, 30)
            original.ask({"tag": TAGGED})
            compare(original, (base, peer_base), chance, now, given.requests, checks, bends)
        original.close()
    if bends:
        bends.judge(checks)
    return checks.summary("graphite-web")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DaemonError as error:
        print(f"graphite_web.py: {error}", file=sys.stderr)
        sys.exit(2)
