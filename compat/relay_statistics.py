#!/usr/bin/env python3
"""What a relay says of itself beside carbon-c-relay: the same names, and the same values where they must be.

    relay_statistics.py     one configuration and the same traffic for both; the first report of each is compared

The original is looked for as original_relay.py says. Without it nothing is compared, and the summary says `SKIPPED`;
with COMPAT_STRICT=1 that is a failure.

Prints `relay_statistics: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import os
import pathlib
import re
import socket
import sys
import tempfile
import time

import original_relay
from comparison import Checks
from daemon import Daemon, DaemonError, free_port, staunch_binary
from sink import Sink

CONFIG = """
cluster a forward 127.0.0.1:{tcp} 127.0.0.1:{udp} proto udp;
cluster f file {folder}/out.d/file;
cluster dead forward 127.0.0.1:{dead};
cluster own forward 127.0.0.1:{own};
listen type linemode 127.0.0.1:{listen} proto tcp;
statistics submit every 2 seconds send to own stop;
match ^drop send to blackhole stop;
match ^dead send to dead stop;
match ^val validate ^[0-9]+\\ [0-9]+$ else drop send to a stop;
match ^vax validate ^[0-9]+\\ [0-9]+$ else drop;
aggregate ^sum every 10 seconds expire after 30 seconds compute sum write to s.sum compute count write to s.count;
match ^file send to f stop;
match ^a send to a stop;
"""

# Kinds of lines with how many of them come.
LINES = {"a": 10, "drop": 3, "nowhere": 4, "sum": 8, "file": 9, "dead": 11}
BAD = {"val.x x {now}": 6, "vax.x x {now}": 7, "bad": 5}

# Where the two may differ: times, our one dispatcher's share of connections that are not clients', and what is on its way.
MEASURED = re.compile(r"(Time_us|^connections|internal\.\w+)$")


def first_report(command):
    """Names and values of the first report."""
    own, tcp, udp = Sink(socket.SOCK_STREAM), Sink(socket.SOCK_STREAM), Sink(socket.SOCK_DGRAM)
    known = {"own": own.port, "tcp": tcp.port, "udp": udp.port, "dead": free_port()}
    listen = free_port()

    def reported():
        return any(b"aggregators.metricsDropped" in line for line in own.got())

    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/out.d")
        conf = pathlib.Path(folder) / "relay.conf"
        conf.write_text(CONFIG.format(folder=folder, listen=listen, **known))
        with Daemon([*command, "-f", conf, "-H", "web1.example", "-w", "1"], cwd=folder) as daemon:
            daemon.wait_tcp(listen)
            send(listen)
            daemon.wait_until(reported, "its first report")
            time.sleep(0.3)
            # At once: what is in its queues is nobody's business any more.
            daemon.stop(0)
    report = {}
    for line in own.got():
        name, value, _ = line.decode().split()
        name = name.removeprefix("carbon.relays.web1_example.").replace(folder.replace("/", "_").replace(".", "_"), "F")
        for word, port in known.items():
            name = name.replace(f"127_0_0_1:{port}", word)
        report.setdefault(name, int(value))
    return report


def send(port):
    now = int(time.time())
    lines = [f"{kind}.{number} 1 {now}" for kind, count in LINES.items() for number in range(count)]
    lines += [line.format(now=now) for line, count in BAD.items() for _ in range(count)]
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall("".join(f"{line}\n" for line in lines).encode())


def main():
    original = original_relay.find_or_skip("relay_statistics")
    theirs, ours = first_report([original]), first_report([staunch_binary(), "relay", "--http", "off"])
    checks = Checks()
    for name, value in theirs.items():
        same = name in ours and (ours[name] == value or MEASURED.search(name))
        checks.that(same, f"{name}: {value} there, {ours.get(name, 'nothing')} here")
    return checks.summary("relay_statistics")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DaemonError, OSError) as error:
        print(f"relay_statistics: {error}", file=sys.stderr)
        sys.exit(2)
