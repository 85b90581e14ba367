#!/usr/bin/env python3
"""What a relay says of itself beside carbon-c-relay: the same names, and the same values where they must be.

    relay_statistics.py     one configuration and the same traffic for both; the first report of each is compared

The original is looked for as original_relay.py says. Without it nothing is compared, and the summary says `SKIPPED`;
with COMPAT_STRICT=1 that is a failure. Ours is $STAUNCH, or the one that was built last for debugging.

Prints `relay_statistics: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import original_relay

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
OURS = os.environ.get("STAUNCH") or str(TARGET / "debug/staunch")

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


class Sink:
    """Takes lines over TCP."""

    def __init__(self, stream):
        self.lines, self.stream = [], stream
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.stream.accept()
            except OSError:
                return
            threading.Thread(target=self.read, args=(client,), daemon=True).start()

    def read(self, client):
        with client, client.makefile("r", newline="\n") as lines:
            self.lines.extend(line for line in lines if line.endswith("\n"))


def bound(kind):
    one = socket.socket(socket.AF_INET, kind)
    one.bind(("127.0.0.1", 0))
    if kind == socket.SOCK_STREAM:
        one.listen()
    return one, one.getsockname()[1]


def free_port():
    one, port = bound(socket.SOCK_STREAM)
    one.close()
    return port


def first_report(command):
    """Names and values of the first report."""
    (tcp, tcp_port), (own, own_port) = bound(socket.SOCK_STREAM), bound(socket.SOCK_STREAM)
    udp, udp_port = bound(socket.SOCK_DGRAM)
    sink, _ = Sink(own), Sink(tcp)
    ports = {"tcp": tcp_port, "udp": udp_port, "own": own_port, "dead": free_port(), "listen": free_port()}
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/out.d")
        conf = pathlib.Path(folder) / "relay.conf"
        conf.write_text(CONFIG.format(folder=folder, **ports))
        words = [*command, "-f", str(conf), "-H", "web1.example", "-w", "1"]
        with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                send(ports["listen"], process)
                until = time.monotonic() + 20
                while not any("aggregators.metricsDropped" in line for line in sink.lines):
                    if time.monotonic() > until or process.poll() is not None:
                        raise RuntimeError(f"{command[0]} gave no report: {sink.lines}")
                    time.sleep(0.05)
                time.sleep(0.3)
            finally:
                process.send_signal(signal.SIGKILL)
    for one in (tcp, own, udp):
        one.close()
    known = {"dead": ports["dead"], "own": own_port, "tcp": tcp_port, "udp": udp_port}
    report = {}
    for line in sink.lines:
        name, value, _ = line.split()
        name = name.removeprefix("carbon.relays.web1_example.").replace(folder.replace("/", "_").replace(".", "_"), "F")
        for word, port in known.items():
            name = name.replace(f"127_0_0_1:{port}", word)
        report.setdefault(name, int(value))
    return report


def send(port, process):
    now = int(time.time())
    lines = [f"{kind}.{number} 1 {now}" for kind, count in LINES.items() for number in range(count)]
    lines += [line.format(now=now) for line, count in BAD.items() for _ in range(count)]
    until = time.monotonic() + 20
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall("".join(f"{line}\n" for line in lines).encode())
                return
        except OSError:
            if time.monotonic() > until or process.poll() is not None:
                raise
            time.sleep(0.02)


def main():
    original = original_relay.find()
    if not original:
        print(f"relay_statistics: SKIPPED: {original_relay.MISSING}")
        return 1 if os.environ.get("COMPAT_STRICT") == "1" else 0
    theirs, ours = first_report([original]), first_report([OURS, "relay", "--http", "off"])
    failures = [f"{name} is missing" for name in theirs if name not in ours]
    passed = len(theirs) - len(failures)
    for name, value in theirs.items():
        if MEASURED.search(name) or name not in ours:
            continue
        passed += 1
        if ours[name] != value:
            passed -= 1
            failures.append(f"{name}: {value} there, {ours[name]} here")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"relay_statistics: {passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError) as error:
        print(f"relay_statistics: {error}")
        sys.exit(2)
