#!/usr/bin/env python3
"""What a relay says of itself beside carbon-c-relay: the same names, and the same values where they must be; what it
says in its log when it starts, is reloaded and stops: the same lines.

    relay_statistics.py              one configuration and the same traffic for both; the first report of each is
                                     compared, and with `reset counters after interval` three of them
    relay_statistics.py --self-test  bends our answers in several ways, each of which must show

The original is looked for as original_relay.py says. Without it nothing is compared, and the summary says `SKIPPED`;
with COMPAT_STRICT=1 that is a failure. Ours is $STAUNCH, or the one that was built last for debugging.

Prints `relay_statistics: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import argparse
import copy
import difflib
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
statistics submit every {every} seconds {reset} send to own stop;
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

# With `reset counters after interval`: reports that are added up, and what neither their own number nor the names that
# only we have can change. The original's first metricsDiscarded is memory that nobody has set.
REPORTS = 3
RESET = re.compile(
    r"^(destinations\.(tcp|udp-udp|dead|F.*)\.(sent|dropped|queued)|(dispatcher1\.)?metricsBlackholed"
    r"|aggregators\.metrics(Received|Dropped)|disconnects)$"
)

# Lines of the log that only one of them has, or that depend on the machine or the number of threads. At a reload nothing
# of ours is interrupted, and no aggregation expired that goes on; and we connect before there is something to send.
UNCOMPARED = re.compile(
    r"^(reloading collector|interrupting workers|expiring aggregations|reloading workers"
    r"|failed to connect|starting carbon|stopped carbon|    workers = |starting \d+ workers|stopped worker|listening on http|---|\+\+\+"
    r"|stopping: |stopped$|source `|output `|from |to |and |no line was read|warning: |try it|curl |nothing was read)"
)


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


def reports(command, every, reset, count):
    """Names and values of the first reports."""
    (tcp, tcp_port), (own, own_port) = bound(socket.SOCK_STREAM), bound(socket.SOCK_STREAM)
    udp, udp_port = bound(socket.SOCK_DGRAM)
    sink, _ = Sink(own), Sink(tcp)
    ports = {"tcp": tcp_port, "udp": udp_port, "own": own_port, "dead": free_port(), "listen": free_port()}
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/out.d")
        conf = pathlib.Path(folder) / "relay.conf"
        reset = "reset counters after interval" if reset else ""
        conf.write_text(CONFIG.format(folder=folder, every=every, reset=reset, **ports))
        words = [*command, "-f", str(conf), "-H", "web1.example", "-w", "1"]
        with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                send(ports["listen"], process)
                until = time.monotonic() + 20 + every * count
                while sum("aggregators.metricsDropped" in line for line in sink.lines) < count:
                    if time.monotonic() > until or process.poll() is not None:
                        raise RuntimeError(f"{command[0]} gave no report: {sink.lines}")
                    time.sleep(0.05)
                time.sleep(0.3)
            finally:
                process.send_signal(signal.SIGKILL)
    for one in (tcp, own, udp):
        one.close()
    known = {"dead": ports["dead"], "own": own_port, "tcp": tcp_port, "udp": udp_port}
    told = {}
    for line in sink.lines:
        name, value, _ = line.split()
        name = name.removeprefix("carbon.relays.web1_example.").replace(folder.replace("/", "_").replace(".", "_"), "F")
        for word, port in known.items():
            name = name.replace(f"127_0_0_1:{port}", word)
        told.setdefault(name, []).append(int(value))
    return [{name: values[at] for name, values in told.items() if len(values) > at} for at in range(count)]


def log_of(command):
    """Lines of the log over a start, a reload with a change, one without, one of a bad file, and a stop."""
    with tempfile.TemporaryDirectory() as folder:
        conf, log, port = pathlib.Path(folder) / "relay.conf", pathlib.Path(folder) / "relay.log", free_port()
        text = (
            f"cluster a any_of 127.0.0.1:{free_port()} 127.0.0.1:{free_port()};\ncluster f file {folder}/out;\n"
            f"listen type linemode 127.0.0.1:{port} proto tcp 127.0.0.1:{port} proto udp;\n"
            "aggregate ^s every 1 seconds expire after 2 seconds compute sum write to r.sum send to f;\n"
            "match ^a send to a stop;\nmatch ^b send to f stop;\n"
        )
        conf.write_text(text)
        words = [*command, "-f", str(conf), "-H", "web1.example", "-w", "1", "-l", str(log)]
        with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                wait_line(process, log, "startup sequence complete", 1)
                changed = text.replace("^b", "^c").replace("any_of", "failover")
                for at, now in enumerate([changed, changed]):
                    conf.write_text(now)
                    process.send_signal(signal.SIGHUP)
                    wait_line(process, log, "SIGHUP handler complete", at + 1)
                conf.write_text(changed + "match x send to nowhere;\n")
                process.send_signal(signal.SIGHUP)
                wait_line(process, log, "aborting reload", 1)
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=30)
            finally:
                process.kill()
        lines = log.read_text().replace(folder, "F").replace(str(port), "PORT").splitlines()
    return [re.sub(r"\b\d{5}\b", "N", re.sub(r"^\[[-0-9 :]{19}\] ", "[TIME] ", line)) for line in lines]


def wait_line(process, log, text, count):
    until = time.monotonic() + 30
    while not log.exists() or log.read_text().count(text) < count:
        if time.monotonic() > until or process.poll() is not None:
            raise RuntimeError(f"no {text!r} in {log.read_text() if log.exists() else 'no log'}")
        time.sleep(0.02)


def compared_log(lines):
    """What must be the same, in order."""
    compared, ours = [], False
    for line in lines:
        text = re.sub(r"^\[TIME\] \((MSG|ERR)\) ", "", line)
        # With its mistakes below it, which have no time in front.
        ours = text.startswith("reload refused") or (ours and text == line)
        if not ours and not UNCOMPARED.search(text):
            compared.append(line)
    return compared


def everything(command):
    """All that is compared of a program."""
    return {
        "first": reports(command, 2, False, 1)[0],
        "reset": reports(command, 1, True, REPORTS),
        "log": log_of(command),
    }


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


def failures(theirs, ours):
    """How much was compared, and what is wrong."""
    count, wrong = len(theirs["first"]), [f"{name} is missing" for name in theirs["first"] if name not in ours["first"]]
    for name, value in theirs["first"].items():
        if MEASURED.search(name) or name not in ours["first"]:
            continue
        count += 1
        if ours["first"][name] != value:
            wrong.append(f"{name}: {value} there, {ours['first'][name]} here")
    for name in filter(RESET.search, theirs["reset"][-1]):
        count += 1
        # The lines may have come before the first report or behind it.
        added = [sum(report.get(name, 0) for report in one["reset"][:-1]) for one in (theirs, ours)]
        last = [one["reset"][-1].get(name) for one in (theirs, ours)]
        if name == "disconnects" or name.endswith("queued"):
            added = [None, None]
        if added[0] != added[1] or last[0] != last[1]:
            wrong.append(f"reset {name}: {added[0]} and then {last[0]} there, {added[1]} and then {last[1]} here")
    there, here = compared_log(theirs["log"]), compared_log(ours["log"])
    count += len(there)
    if there != here:
        diff = difflib.unified_diff(there, here, "there", "here", lineterm="", n=1)
        wrong.append("the log:\n  " + "\n  ".join(diff))
    return count, wrong


def line_of(lines, text):
    return next(at for at, line in enumerate(lines) if text in line)


def self_test(ours):
    def without(text):
        return lambda bent: bent["log"].pop(line_of(bent["log"], text))

    bends = {
        "a name missing": lambda bent: bent["first"].pop("metricsDropped"),
        "one too many": lambda bent: bent["first"].update(metricsBlackholed=bent["first"]["metricsBlackholed"] + 1),
        "one lost": lambda bent: bent["first"].update({"destinations.tcp.sent": bent["first"]["destinations.tcp.sent"] - 1}),
        "counters that go on": lambda bent: bent["reset"][-1].update(metricsBlackholed=20),
        "a report that is empty": lambda bent: [report.update({"destinations.tcp.sent": 0}) for report in bent["reset"]],
        "no change told": without("+match ^c"),
        "no word on a listener": without("listening on udp4"),
        "no refused reload": without("aborting reload"),
        "another order": lambda bent: bent["log"].insert(0, bent["log"].pop(line_of(bent["log"], "stopped servers"))),
        "an error as a message": lambda bent: bent["log"].__setitem__(
            at := line_of(bent["log"], "unknown cluster"), bent["log"][at].replace("(ERR)", "(MSG)")
        ),
    }
    missed = []
    for name, bend in bends.items():
        bent = copy.deepcopy(ours)
        bend(bent)
        if not failures(ours, bent)[1]:
            missed.append(name)
    print(f"relay_statistics: self-test, {len(bends) - len(missed)} of {len(bends)} shown {missed or ''}".rstrip())
    return 1 if missed else 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--self-test", action="store_true")
    if arguments.parse_args().self_test:
        return self_test(everything([OURS, "relay", "--http", "off"]))
    original = original_relay.find()
    if not original:
        print(f"relay_statistics: SKIPPED: {original_relay.MISSING}")
        return 1 if os.environ.get("COMPAT_STRICT") == "1" else 0
    count, wrong = failures(everything([original]), everything([OURS, "relay", "--http", "off"]))
    for failure in wrong:
        print(f"FAILED: {failure}")
    print(f"relay_statistics: {count - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError) as error:
        print(f"relay_statistics: {error}")
        sys.exit(2)
