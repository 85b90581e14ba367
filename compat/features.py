#!/usr/bin/env python3
"""What the side-by-side traffic does not reach, on the original and on Staunch alike: same input, same output?

Repeaters over UDP and TCP, several servers in one file, the unix stream socket, lines cut over segments, the console's
documents and the log of busy keys. Each check names what it compares; times are left out of the comparison.

    features.py                 about five seconds, all checks at once
    features.py --self-test     the original in Staunch's place
"""

import argparse
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from comparison import Checks, Failure, wait_for
from daemon import Daemon, DaemonError, free_port, node_statsd, staunch_binary
from graphite import Listener
from management import converse, dump, send
from sink import Sink

# Good and bad, several lines in one, none, raw bytes: what repeaters forward as it came.
PACKETS = [b"a:1|c", b"a:1|c\nb:2|ms\n", b"junk", b"\n", b"x y/z:3|g|#k:v", b"caf\xc3\xa9:1|c\xff", b"s:m|s\r\n"]
PACKETS += [b"n" * 2000 + b":1|c"]

SAMPLES = [b"hits:1|c\nhits:2|c|@0.5\nb c:7|c", b"lat:20|ms\nlat:10|ms|@0.1\n", b"temp:2.5|g\ntemp:-1|g"]
SAMPLES += [b"uid:x|s\nuid:y y|s", b"busy:1|c\nbusy:1|c\nbusy:x|c\nbusy:1|ms"]


class Side:
    """A daemon on a configuration of its own."""

    def __init__(self, name, command, folder, **options):
        self.management = free_port()
        config = {
            "address": "127.0.0.1",
            "mgmt_port": self.management,
            "mgmt_address": "127.0.0.1",
            "flushInterval": 600_000,
            "automaticConfigReload": False,
            "backends": [],
            **options,
        }
        path = pathlib.Path(folder) / f"{name}.js"
        path.write_text(json.dumps(config))
        argv = [*command, str(path)] if command[0] == "node" else [command[0], "statsd", str(path), "--http", "off"]
        self.daemon = Daemon(argv, name=name, cwd=folder)
        self.daemon.wait_tcp(self.management)

    def dumped(self, command):
        return dump(converse(self.management, [command.encode()]).decode())[0]


def on_both(commands, folder, what):
    """`what(name, command, folder)` for the original and for ours; both answers."""
    names = (f"{what.__name__}-original", f"{what.__name__}-ours")
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(what, names, commands, (folder, folder)))


def udp_repeater(name, command, folder):
    """Datagrams as they came, in order, at two targets; and aggregated beside it."""
    port, sinks = free_port(), [Sink(socket.SOCK_DGRAM), Sink(socket.SOCK_DGRAM)]
    targets = [{"host": "127.0.0.1", "port": sink.port} for sink in sinks]
    options = {"backends": ["./backends/repeater"], "repeater": targets, "repeaterProtocol": "udp4", "port": port}
    side = Side(name, command, folder, **options)
    try:
        for packet in PACKETS:
            send(port, packet)
            # The original resolves the address for each datagram, which may change their order.
            time.sleep(0.01)
        for sink in sinks:
            wait_for(f"{name}: {len(PACKETS)} datagrams at a target", lambda: len(sink.got()) >= len(PACKETS), seconds=5)
        return [sink.got() for sink in sinks], side.dumped("counters")
    finally:
        side.daemon.stop()


def tcp_repeater(name, command, folder):
    """Each packet with an LF behind it. The original decodes packets on this way; ours are as they came."""
    port, sink = free_port(), Sink(socket.SOCK_STREAM)
    options = {"backends": ["./backends/repeater"], "repeater": [{"host": "127.0.0.1", "port": sink.port}]}
    side = Side(name, command, folder, port=port, repeaterProtocol="tcp", **options)
    try:
        for packet in PACKETS:
            send(port, packet)
            time.sleep(0.01)
        want = sum(1 for packet in PACKETS for line in packet.split(b"\n") if line)
        # Node spreads its packets over several connections, and puts empty lines between them.
        lines = wait_for(f"{name}: {want} lines at the target", lambda: whole if len(whole := full(sink)) >= want else None, seconds=5)
        return [line.decode("utf-8", "replace") for line in lines]
    finally:
        side.daemon.stop()


def full(sink):
    """The lines that are not empty, sorted."""
    return sorted(line for line in sink.got() if line != b"\n")


def several_servers(name, command, folder):
    """UDP, TCP and a unix stream socket feed one state; lines may come in pieces, and the last may have no end."""
    udp, tcp, path = free_port(), free_port(), str(pathlib.Path(folder) / f"{name}.sock")
    servers = [
        {"server": "./servers/udp", "address": "127.0.0.1", "port": udp},
        {"server": "./servers/tcp", "address": "127.0.0.1", "port": tcp},
        {"server": "./servers/tcp", "socket": path},
    ]
    side = Side(name, command, folder, servers=servers)
    try:
        side.daemon.wait_tcp(tcp)
        for packet in SAMPLES:
            send(udp, packet)
        for family, place in ((socket.AF_INET, ("127.0.0.1", tcp)), (socket.AF_UNIX, path)):
            with socket.socket(family, socket.SOCK_STREAM) as stream:
                stream.connect(place)
                for piece in (b"stream:1|c\nstr", b"eam:2|c", b"\r\nother:1|c\n\nstream:4|c\n"):
                    stream.sendall(piece)
                    time.sleep(0.05)
        wait_for(f"{name}: samples of all servers", lambda: side.dumped("counters").get("stream") == "14", seconds=5)
        counters = side.dumped("counters")
        # How many reads a stream takes is the kernel's business.
        counters.pop("statsd.packets_received")
        return counters, side.dumped("timers"), side.dumped("gauges"), pathlib.Path(path).is_socket()
    finally:
        side.daemon.stop()


def console(name, command, folder):
    """The documents of two flushes, as values: the original's form is no JSON."""
    port = free_port()
    histogram = [{"metric": "", "bins": [15, "inf"]}]
    options = {"backends": ["./backends/console"], "flushInterval": 1000, "percentThreshold": [90, -50]}
    side = Side(name, command, folder, port=port, histogram=histogram, **options)
    try:
        for packet in SAMPLES:
            send(port, packet)
        wait_for(f"{name}: two flushes", lambda: side.daemon.output().count("pctThreshold") >= 2, seconds=8)
    finally:
        side.daemon.stop()
    return documents(side.daemon.output())[:2]


def documents(text):
    """The objects behind each `Flushing stats at`, whether node or JSON wrote them."""
    script = r"""
        const text = require('fs').readFileSync(0, 'utf8');
        const blocks = text.split(/^Flushing stats at  \w{3} \w{3} \d\d \d{4} \d\d:\d\d:\d\d GMT.*$/m).slice(1);
        const values = blocks.map((block) => {
          const end = block.search(/^\}$/m);
          const own = end < 0 ? block.trim().split('\n')[0] : block.slice(0, end + 1);
          return eval(`(${own.replace(/\[Object\]/g, '"cut"')})`);
        });
        console.log(JSON.stringify(values));
    """
    done = subprocess.run(["node", "-e", script], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"no documents in {text[:2000]!r}: {done.stderr[-500:]}")
    found = json.loads(done.stdout)
    for document in found:
        # When the second flush comes is a matter of the clock; histograms are cut away in the original's output.
        document["gauges"].pop("statsd.timestamp_lag", None)
        for data in document["timer_data"].values():
            data.pop("histogram", None)
        document["sets"] = {key: sorted(members) for key, members in document["sets"].items()}
    return found


def busy_keys(name, command, folder):
    """The log of keyFlush: the busier half of the keys, busiest first."""
    port, log = free_port(), pathlib.Path(folder) / f"{name}.log"
    side = Side(name, command, folder, port=port, keyFlush={"interval": 700, "percent": 50, "log": str(log)})
    try:
        for packet in SAMPLES:
            send(port, packet)
        wait_for(f"{name}: the log", lambda: log.exists() and log.read_text().endswith("\n"), seconds=5)
    finally:
        side.daemon.stop()
    date = r"\w{3} \w{3} \d\d \d{4} \d\d:\d\d:\d\d GMT[+-]\d{4} \(.*?\)"
    lines = [re.sub(f"^{date} ", "DATE ", line) for line in log.read_text().splitlines()]
    # Keys with the same count come in any order.
    return lines[0], len(lines), sorted(line.split(" key=")[0] for line in lines)


FEATURES = [udp_repeater, tcp_repeater, several_servers, console, busy_keys]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true", help="the original in Staunch's place")
    args = parser.parse_args()
    checks = Checks()
    try:
        commands = (node_statsd(), node_statsd() if args.self_test else [staunch_binary()])
        with tempfile.TemporaryDirectory(prefix="features-") as folder, ThreadPoolExecutor(len(FEATURES)) as pool:
            running = [(what, pool.submit(on_both, commands, folder, what)) for what in FEATURES]
            for what, both in running:
                try:
                    original, ours = both.result()
                    checks.that(original == ours, what.__name__, f"original {original!r}", f"ours     {ours!r}")
                except (Failure, OSError) as failure:
                    checks.that(False, what.__name__, str(failure))
    except DaemonError as error:
        print(f"features: {error}", file=sys.stderr)
        return 2
    return checks.summary("features")


if __name__ == "__main__":
    sys.exit(main())
