#!/usr/bin/env python3
"""What a relay says of itself beside carbon-c-relay: the same names, and the same values where they must be; and what it
says in its log when it starts, is reloaded and stops: the same lines.

    relay_statistics.py              one configuration and the same traffic for both; the first report of each is
                                     compared, and with `reset counters after interval` three of them
    relay_statistics.py --self-test  also bends our answers in several ways, each of which must show

The original is looked for as original_relay.py says. Without it nothing is compared, and the summary says `SKIPPED`;
with COMPAT_STRICT=1 that is a failure.

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
import sys
import tempfile
import time

import original_relay
from comparison import Bends, Checks
from daemon import Daemon, DaemonError, free_port, staunch_binary
from sink import Sink

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


def reports(command, every, reset, count):
    """Names and values of the first reports."""
    own, tcp, udp = Sink(socket.SOCK_STREAM), Sink(socket.SOCK_STREAM), Sink(socket.SOCK_DGRAM)
    known = {"own": own.port, "tcp": tcp.port, "udp": udp.port, "dead": free_port()}
    listen = free_port()
    reset = "reset counters after interval" if reset else ""

    def reported():
        return sum(b"aggregators.metricsDropped" in line for line in own.got()) >= count

    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/out.d")
        conf = pathlib.Path(folder) / "relay.conf"
        conf.write_text(CONFIG.format(folder=folder, listen=listen, every=every, reset=reset, **known))
        with Daemon([*command, "-f", conf, "-H", "web1.example", "-w", "1"], cwd=folder) as daemon:
            daemon.wait_tcp(listen)
            send(listen)
            daemon.wait_until(reported, "its reports", 20 + every * count)
            time.sleep(0.3)
            # At once: what is in its queues is nobody's business any more.
            daemon.stop(0)
    told = {}
    for line in own.got():
        name, value, _ = line.decode().split()
        name = name.removeprefix("carbon.relays.web1_example.").replace(folder.replace("/", "_").replace(".", "_"), "F")
        for word, port in known.items():
            name = name.replace(f"127_0_0_1:{port}", word)
        told.setdefault(name, []).append(int(value))
    return [{name: values[at] for name, values in told.items() if len(values) > at} for at in range(count)]


def send(port):
    now = int(time.time())
    lines = [f"{kind}.{number} 1 {now}" for kind, count in LINES.items() for number in range(count)]
    lines += [line.format(now=now) for line, count in BAD.items() for _ in range(count)]
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall("".join(f"{line}\n" for line in lines).encode())


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
        with Daemon([*command, "-f", conf, "-H", "web1.example", "-w", "1", "-l", log], cwd=folder) as daemon:

            def tells(line, count=1):
                told = lambda: log.exists() and log.read_text().count(line) >= count  # noqa: E731
                daemon.wait_until(told, f"{line!r} in its log")

            tells("startup sequence complete")
            changed = text.replace("^b", "^c").replace("any_of", "failover")
            for count in (1, 2):
                conf.write_text(changed)
                os.kill(daemon.pid, signal.SIGHUP)
                tells("SIGHUP handler complete", count)
            conf.write_text(changed + "match x send to nowhere;\n")
            os.kill(daemon.pid, signal.SIGHUP)
            tells("aborting reload")
            daemon.stop(30)
        lines = log.read_text().replace(folder, "F").replace(str(port), "PORT").splitlines()
    return [re.sub(r"\b\d{5}\b", "N", re.sub(r"^\[[-0-9 :]{19}\] ", "[TIME] ", line)) for line in lines]


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


def differences(theirs, ours):
    """What was compared, each with what differs in it: empty when nothing does."""
    table = {}
    for name, value in theirs["first"].items():
        here = ours["first"].get(name)
        same = here == value or (here is not None and MEASURED.search(name))
        table[name] = "" if same else f"{value} there, {here} here"
    for name in filter(RESET.search, theirs["reset"][-1]):
        # The lines may have come before the first report or behind it.
        added = [sum(report.get(name, 0) for report in one["reset"][:-1]) for one in (theirs, ours)]
        last = [one["reset"][-1].get(name) for one in (theirs, ours)]
        same = last[0] == last[1] and (added[0] == added[1] or name == "disconnects" or name.endswith("queued"))
        table[f"{name} with reset"] = "" if same else f"{added[0]}, then {last[0]} there, {added[1]}, then {last[1]} here"
    there, here = compared_log(theirs["log"]), compared_log(ours["log"])
    table["the log"] = "\n  ".join(difflib.unified_diff(there, here, "there", "here", lineterm="", n=1))
    return table


def without(text):
    return lambda bent: bent["log"].pop(line_of(bent, text))


def line_of(bent, text):
    return next(at for at, line in enumerate(bent["log"]) if text in line)


def told(report, name, value):
    report[name] = value


BENT = {
    "a name missing": lambda bent: bent["first"].pop("metricsDropped"),
    "one too many": lambda bent: told(bent["first"], "metricsBlackholed", bent["first"]["metricsBlackholed"] + 1),
    "one lost": lambda bent: told(bent["first"], "destinations.tcp.sent", bent["first"]["destinations.tcp.sent"] - 1),
    "counters that go on": lambda bent: told(bent["reset"][-1], "metricsBlackholed", 20),
    "reports that are empty": lambda bent: [told(report, "destinations.tcp.sent", 0) for report in bent["reset"]],
    "no change told": without("+match ^c"),
    "no word on a listener": without("listening on udp4"),
    "no refused reload": without("aborting reload"),
    "another order": lambda bent: bent["log"].insert(0, bent["log"].pop(line_of(bent, "stopped servers"))),
    "an error as a message": lambda bent: bent["log"].insert(
        line_of(bent, "unknown cluster"), bent["log"].pop(line_of(bent, "unknown cluster")).replace("(ERR)", "(MSG)")
    ),
}


def self_test(ours, checks):
    def shown(bend):
        bent = copy.deepcopy(ours)
        bend(bent)
        return any(differences(ours, bent).values())

    bends = Bends(BENT)
    bends.hold(shown)
    bends.judge(checks)


def everything(command):
    """All that is compared of a program."""
    first, reset = reports(command, 2, False, 1)[0], reports(command, 1, True, REPORTS)
    return {"first": first, "reset": reset, "log": log_of(command)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true", help="bends our answers, each of which must show")
    options = parser.parse_args()
    theirs = everything([original_relay.find_or_skip()])
    ours = everything([staunch_binary(), "relay", "--http", "off"])
    checks = Checks()
    for what, differs in differences(theirs, ours).items():
        checks.that(not differs, what, *([differs] if differs else ()))
    if options.self_test:
        self_test(ours, checks)
    return checks.summary("relay_statistics")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DaemonError, OSError) as error:
        print(f"relay_statistics: {error}", file=sys.stderr)
        sys.exit(2)
