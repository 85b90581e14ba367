#!/usr/bin/env python3
"""The management port beside the original's, and the original's cluster proxy with Staunch as its node.

Transcript: the same commands to both daemons, each holding the same samples. Where Staunch promises the original's
bytes they are compared as they are; `stats` with its numbers blanked; the dumps, which the original prints through
node's inspect, by what they say (ours: one entry per line, always quoted, nothing cut). What only Staunch does (lines
assembled, several commands in a segment) is checked against the text it promises.

Proxy: node's proxy.js with one original and one Staunch behind it polls `health` on both, spreads samples over both,
takes Staunch out of its ring when told `health down` and back in after `health up`.

    management.py               transcript and proxy
    management.py --self-test   the same with the original in Staunch's place, but for what only Staunch does
"""

import argparse
import json
import pathlib
import re
import socket
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from comparison import Checks, Failure, wait_for
from daemon import Daemon, DaemonError, free_port, node_statsd, staunch_binary
from graphite import Listener

SAMPLES = b"""hits:3|c
hits:2|c|@0.5
a.b.one:1|c
a.b.two:2.5|c
a.c:7|c
odd name/x:1|c
tagged:1|c|#env:prod
lat:10|ms
lat:20|ms|@0.1
lat.other:0.5|ms
temp:21.5|g
temp:-1.5|g
a.g:1e21|g
uid:7|s
junk
"""

# (what is sent, how the replies are compared)
TRANSCRIPT = [
    ("help", "bytes"),
    ("health", "bytes"),
    ("health DOWN", "bytes"),
    ("health", "bytes"),
    ("health sideways", "bytes"),
    ("health up", "bytes"),
    ("counters", "dump"),
    ("timers", "dump"),
    ("gauges", "dump"),
    ("stats", "numbers"),
    ("", "bytes"),
    ("nonsense", "bytes"),
    ("HELP", "bytes"),
    ("  help  ", "bytes"),
    ("delcounters", "bytes"),
    ("delcounters hits nobody", "bytes"),
    ("delcounters hits", "bytes"),
    ("delcounters a.b.*", "sorted"),
    ("delcounters a.*.c *", "bytes"),
    ("delcounters tagged;env=prod", "bytes"),
    ("delcounters a.c  nobody", "bytes"),
    ("deltimers lat", "bytes"),
    ("deltimers lat", "bytes"),
    ("delgauges temp.* temp", "bytes"),
    ("counters", "dump"),
    ("timers", "dump"),
    ("gauges", "dump"),
    ("config", "config"),
]

# What only Staunch does: (segments sent with a pause between them, seconds of the pause, expected bytes).
OWN = [
    ([b"health\nhealth\n"], 0, b"health: up\nhealth: up\n"),
    ([b"hea", b"lth\n"], 0.01, b"health: up\n"),
    ([b"health"], 0, b"health: up\n"),
    ([b"nonsense\r\nhealth\r\n"], 0, b"ERROR\nhealth: up\n"),
]

_ENTRY = re.compile(r"(?:'((?:[^'\\]|\\.)*)'|([A-Za-z_$][\w$]*)): (\[[^\]]*\]|-?[\d.]+(?:e[+-]\d+)?)")


def converse(port, segments, pause=0.0, quiet=0.15):
    """Sends segments to a port and returns all that comes back until it is quiet, or the end.

    No answer at all is waited for longer: a busy machine is not a silent daemon."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for segment in segments:
            connection.sendall(segment)
            time.sleep(pause)
        reply = b""
        connection.settimeout(2)
        while True:
            try:
                piece = connection.recv(1 << 16)
            except TimeoutError:
                return reply
            if not piece:
                return reply
            reply += piece
            connection.settimeout(quiet)


def dump(text):
    """The entries of an object dump, whatever its layout, and the lines behind it."""
    body, end, tail = text.rpartition("}")
    entries = {}
    for quoted, bare, value in _ENTRY.findall(body):
        entries[quoted or bare] = re.sub(r"\s+", "", value)
    return entries, end + tail


def config_lines(text, given):
    """Of a `config` reply, the lines that the configuration file answers for."""
    names = [f"{key}: " for key in given] + [f"{key} > " for key in given]
    lines = [line for line in text.split("\n") if any(line.startswith(name) for name in names)]
    return text[:1], sorted(line for line in lines if "ort: " not in line)


COMPARE = {
    "bytes": lambda text, _: text,
    "sorted": lambda text, _: sorted(text.split("\n")),
    "numbers": lambda text, _: re.sub(r": -?\d+\n", ": N\n", text),
    "dump": lambda text, _: dump(text),
    "names": lambda text, _: sorted(dump(text)[0]),
    "config": config_lines,
}


class Instance:
    """A daemon with a configuration of its own, fed over UDP."""

    def __init__(self, command, folder, name, **options):
        self.port, self.management = free_port(), free_port()
        # Only so that the last flush finds somebody who takes it.
        self._listener = Listener()
        self.config = {
            "port": self.port,
            "address": "127.0.0.1",
            "mgmt_port": self.management,
            "mgmt_address": "127.0.0.1",
            "backends": ["./backends/graphite"],
            "graphiteHost": "127.0.0.1",
            "graphitePort": self._listener.port,
            "flushInterval": 600_000,
            "percentThreshold": [90, 95],
            "graphite": {"legacyNamespace": False},
            "automaticConfigReload": False,
            **options,
        }
        path = pathlib.Path(folder) / f"{name}.js"
        path.write_text(json.dumps(self.config))
        argv = [*command, str(path)] if command[0] == "node" else [command[0], "statsd", str(path), "--http", "off"]
        self.daemon = Daemon(argv, name=name)
        self.daemon.wait_tcp(self.management)

    def ask(self, command):
        return converse(self.management, [command.encode() + b"\n"]).decode()

    def ask_all(self, commands):
        """One after the other, each on a connection of its own."""
        return [self.ask(command) for command in commands]

    def counters(self):
        return self.dumped("counters")

    def dumped(self, command):
        return dump(self.ask(command))[0]

    def close(self):
        self.daemon.stop()
        self._listener.close()


def send(port, data):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.sendto(data, ("127.0.0.1", port))


def transcript(checks, command, folder, own):
    """The same conversation with both."""
    sides = []
    try:
        sides = [Instance(node_statsd(), folder, "original"), Instance(command, folder, "ours")]
        for side in sides:
            send(side.port, SAMPLES)
            wait_for("the samples to be counted", lambda: "hits" in side.counters())
        with ThreadPoolExecutor(2) as pool:
            replies = pool.map(lambda side: side.ask_all([line for line, _ in TRANSCRIPT]), sides)
        for (line, how), *said in zip(TRANSCRIPT, *replies):
            left, right = [COMPARE[how](text, sides[0].config) for text in said]
            checks.that(left == right, f"`{line}`", f"original {left!r}", f"ours     {right!r}")
        for side in sides:
            checks.that(converse(side.management, [b"quit\n"]) == b"", f"`quit` closes ({side.daemon.name})")
        for segments, pause, want in OWN if own else []:
            got = converse(sides[1].management, segments, pause)
            checks.that(got == want, f"{segments!r}", f"expected {want!r}", f"ours     {got!r}")
        for side in sides:
            checks.that(side.daemon.running(), f"{side.daemon.name} still runs", side.daemon.output()[-500:])
    finally:
        for side in sides:
            side.close()


def after_flushes(checks, command, folder):
    """What is said when flushes have been: figures of both backends, and what the original adds to `config`."""
    options = {
        "backends": ["./backends/graphite", "./backends/console"],
        "flushInterval": 400,
        "deleteIdleStats": True,
        "deleteGauges": False,
        "keyFlush": {"interval": 0},
    }
    sides = []
    try:
        for name, start in (("original-flushing", node_statsd()), ("ours-flushing", command)):
            sides.append(Instance(start, folder, name, **options))
        for side in sides:
            send(side.port, b"idle:1|c\nstays:3|g\nlat:3|ms\nuid:x|s\n")
            wait_for("the samples to be counted", lambda: "stays" in side.dumped("gauges"))
            wait_for("idle series to be deleted", lambda: "idle" not in side.counters())
        added = ["gaugesMaxTTL", "deleteCounters", "deleteTimers", "deleteSets"]
        given = dict(sides[0].config) | dict.fromkeys(added)
        for line, how in (("stats", "numbers"), ("counters", "names"), ("timers", "dump"), ("config", "config")):
            left, right = [COMPARE[how](side.ask(line), given) for side in sides]
            checks.that(left == right, f"`{line}` after flushes", f"original {left!r}", f"ours     {right!r}")
        for side in sides:
            said = side.ask("stats")
            checks.that(re.search(r"console\.lastFlush: 1\d{9}\n", said), "the console tells Unix seconds", said)
    finally:
        for side in sides:
            side.close()


def proxy(checks, command, folder):
    """node's proxy.js with the original and ours as its nodes."""
    nodes, running = [], None
    try:
        nodes = [Instance(node_statsd(), folder, "proxied-original"), Instance(command, folder, "proxied-ours")]
        listed = [{"host": "127.0.0.1", "port": node.port, "adminport": node.management} for node in nodes]
        port, management = free_port(), free_port()
        path = pathlib.Path(folder) / "proxy.js"
        settings = {"nodes": listed, "server": "./servers/udp", "host": "127.0.0.1", "port": port}
        settings |= {"mgmt_port": management, "mgmt_address": "127.0.0.1", "checkInterval": 300, "forkCount": 0}
        path.write_text(json.dumps(settings | {"automaticConfigReload": False}))
        running = Daemon([*node_statsd("proxy.js"), str(path)], name="proxy")
        running.wait_tcp(management)

        def ring():
            status = converse(management, [b"status\n"]).decode()
            return sorted(int(place.split(":")[1]) for place in re.findall(r"127\.0\.0\.1:\d+", status))

        original, ours = nodes
        both = sorted([original.port, ours.port])
        wait_for("both nodes to be in the ring", lambda: ring() == both)
        time.sleep(1)
        checks.that(ring() == both, "health checks keep both nodes in the ring", ring())

        spread(port, "first")
        counted = wait_for("200 samples behind the proxy", lambda: placed(nodes, "first", 200))
        checks.that(min(counted) > 0, "samples reach both nodes", counted)

        ours.ask("health down")
        wait_for("ours to leave the ring", lambda: ring() == [original.port])
        spread(port, "second")
        counted = wait_for("200 samples with one node out", lambda: placed(nodes, "second", 200))
        checks.that(counted[1] == 0, "a node that is down gets nothing", counted)

        ours.ask("health up")
        wait_for("ours to come back", lambda: ring() == both)
        spread(port, "third")
        counted = wait_for("200 samples with both nodes again", lambda: placed(nodes, "third", 200))
        checks.that(min(counted) > 0, "samples reach both nodes again", counted)
    finally:
        if running:
            running.stop()
        for node in nodes:
            node.close()


def spread(port, prefix):
    for number in range(200):
        send(port, f"{prefix}.{number}:1|c".encode())
        if number % 16 == 15:
            time.sleep(0.002)


def placed(nodes, prefix, total):
    """How many of the counters are on each node; None while some are still missing."""
    counts = [sum(1 for name in node.counters() if name.startswith(f"{prefix}.")) for node in nodes]
    return counts if sum(counts) == total else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true", help="the original in Staunch's place")
    args = parser.parse_args()
    checks = Checks()
    try:
        command = node_statsd() if args.self_test else [staunch_binary()]
        with tempfile.TemporaryDirectory(prefix="management-") as folder:
            parts = [
                lambda: transcript(checks, command, folder, not args.self_test),
                lambda: after_flushes(checks, command, folder),
                lambda: proxy(checks, command, folder),
            ]
            with ThreadPoolExecutor(len(parts)) as pool:
                for part in [pool.submit(part) for part in parts]:
                    try:
                        part.result()
                    except (Failure, OSError) as failure:
                        checks.that(False, str(failure))
    except DaemonError as error:
        print(f"management: {error}", file=sys.stderr)
        return 2
    return checks.summary("management")


if __name__ == "__main__":
    sys.exit(main())
