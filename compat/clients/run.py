#!/usr/bin/env python3
"""Real StatsD and DogStatsD clients against Staunch, and the plain ones against the original too.

Each client sends one fixed script over each transport that it speaks, to a source of its own. Afterwards the accounts
must say that every record was received and none rejected, both sums must hold, and the last flush must bring the right
numbers under the right names. Plain StatsD clients send the same script to the original, whose tables must show the
same numbers: so an expectation here is the original's, too.

A client is skipped, loudly, when its language is not on this machine (no `go`; no Perl module Net::Statsd; no addon
`unix-dgram`, which npm builds with a C++ compiler), and only then. With COMPAT_STRICT=1 a skip is a failure.

    run.py [CLIENT …]        for instance: run.py pypi-statsd go-datadog
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

CLIENTS = pathlib.Path(__file__).resolve().parent
COMPAT = CLIENTS.parent
sys.path.insert(0, str(COMPAT))

from daemon import ROOT, Daemon, DaemonError, free_port, node_statsd, staunch_binary  # noqa: E402
from graphite import Listener  # noqa: E402
from management import converse, dump  # noqa: E402

# What the script's steps come to. `P` stands for the client's prefix.
PLAIN = {
    "stats_counts.P.hits": 2,
    "stats.timers.P.lat.count": 3,
    "stats.timers.P.lat.sum": 60,
    "stats.timers.P.lat.upper": 30,
    "stats.gauges.P.temp": 22,
}
SETS = {"stats.sets.P.uid.count": 2}
PACKED = {"stats_counts.P.packed": 9}
TAGGED = {
    "stats_counts.P.tagged;dc=x;env=prod": 1,
    "stats.timers.P.size.count;env=prod": 3,
    "stats.timers.P.size.sum;env=prod": 6,
    "stats.timers.P.spread.count": 3,
    "stats.timers.P.spread.upper": 3,
}
DOG = PLAIN | SETS | TAGGED

# What the original's management port must show for the plain clients, by command.
ORIGINAL = {"counters": {"P.hits": "2"}, "timers": {"P.lat": "[10,20,30]"}, "gauges": {"P.temp": "22"}}


CLIENTS_AT_ONCE_MAX = 4

# Commands are made one at a time: two of them build their client first.
_building = threading.Lock()


class Skip(Exception):
    """The client's language is not here."""


class Failure(Exception):
    """The client, or what came of it, is not as it must be."""


def python(script):
    """A client in Python, with the packages of requirements.txt."""
    interpreter = COMPAT / ".venv" / "bin" / "python"
    if not interpreter.exists():
        raise Failure(f"{interpreter} is missing: run `make tools`")
    return [str(interpreter), str(CLIENTS / script)]


def node(script, *addons):
    """A client in JavaScript; `addons` are native modules that it needs."""
    if not (COMPAT / "node_modules").exists():
        raise Failure("compat/node_modules is missing: run `make tools`")
    for addon in addons:
        loads = subprocess.run(["node", "-e", f"require({addon!r})"], cwd=COMPAT, capture_output=True)
        if loads.returncode != 0:
            raise Skip(f"the addon {addon} was not built here")
    return ["node", str(CLIENTS / script)]


@functools.cache
def go(package="."):
    """A client in Go, built once."""
    if not shutil.which("go"):
        raise Skip("there is no go on this machine")
    binary = target_folder() / "compat-go" / (CLIENTS / "go" / package).resolve().name
    run_build(["go", "build", "-o", str(binary), package], CLIENTS / "go")
    return [str(binary)]


@functools.cache
def rust():
    """The client in Rust, built once. Not part of the workspace."""
    target = target_folder() / "compat-rust"
    built_binary = target / "debug" / "clients"
    command = ["cargo", "build", "--quiet", "--locked", "--target-dir", str(target)]
    run_build(command, CLIENTS / "rust")
    return [str(built_binary)]


def perl(script):
    """A client in Perl, with Debian's libnet-statsd-perl."""
    loads = subprocess.run(["perl", "-MNet::Statsd", "-e", "1"], capture_output=True) if shutil.which("perl") else None
    if not loads or loads.returncode != 0:
        raise Skip("there is no Perl with Net::Statsd (libnet-statsd-perl) on this machine")
    return ["perl", str(CLIENTS / script)]


def target_folder():
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def run_build(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {done.stderr[-2000:]}")


class Client:
    """A client over one transport, and what must come of its script."""

    def __init__(self, name, transport, command, expected, received, plain=False, events=0):
        self.name = f"{name}-{transport}"
        self.client = name
        self.transport = transport
        self.command = command
        self.expected = expected
        # Records that Staunch must say it received: samples (each value of a packed line is one), events, checks.
        self.received = received
        # Plain StatsD: the original must understand it as well.
        self.plain = plain
        self.events = events
        self.prefix = self.name.replace("-", "_")


TABLE = [
    Client("pypi-statsd", "udp", lambda: python("pypi_statsd.py"), PLAIN | SETS | PACKED, 13, plain=True),
    Client("pypi-statsd", "tcp", lambda: python("pypi_statsd.py"), PLAIN | SETS | PACKED, 13, plain=True),
    Client("pypi-statsd", "unix", lambda: python("pypi_statsd.py"), PLAIN | SETS | PACKED, 13),
    Client("pypi-datadog", "udp", lambda: python("pypi_datadog.py"), DOG, 20, events=2),
    Client("pypi-datadog", "unixgram", lambda: python("pypi_datadog.py"), DOG, 20, events=2),
    Client("pypi-datadog", "unix-frames", lambda: python("pypi_datadog.py"), DOG, 20, events=2),
    Client("hot-shots", "udp", lambda: node("hot_shots.js"), DOG, 20, events=2),
    Client("hot-shots", "unixgram", lambda: node("hot_shots.js", "unix-dgram"), DOG, 20, events=2),
    Client("lynx", "udp", lambda: node("lynx.js"), PLAIN | SETS | PACKED, 12, plain=True),
    Client("node-statsd", "udp", lambda: node("node_statsd.js"), PLAIN | SETS | PACKED, 12, plain=True),
    Client("statsd-client", "udp", lambda: node("statsd_client.js"), PLAIN | SETS | PACKED, 12, plain=True),
    Client("statsd-client", "tcp", lambda: node("statsd_client.js"), PLAIN | SETS | PACKED, 12, plain=True),
    Client("go-datadog", "udp", go, DOG, 20, events=2),
    # It adds up counters, keeps the last of a gauge and each member of a set once: fewer records than steps.
    Client("go-datadog", "unixgram", go, DOG, 16, events=2),
    Client("go-datadog", "unix-frames", go, DOG, 20, events=2),
    Client("go-cactus", "udp", lambda: go("./cactus"), PLAIN | SETS | PACKED, 12, plain=True),
    Client("rust-cadence", "udp", rust, DOG, 18),
    Client("rust-cadence", "unixgram", rust, DOG, 18),
    Client("perl-net-statsd", "udp", lambda: perl("net_statsd.pl"), PLAIN | PACKED, 9, plain=True),
]


def send_all(clients, places):
    """Runs each client against its place, several at the same time; those that ran, and the verdicts of the others."""
    with ThreadPoolExecutor(CLIENTS_AT_ONCE_MAX) as pool:
        verdicts = list(pool.map(lambda client: send_one(client, places[client.name]), clients))
    sent = [client for client, verdict in zip(clients, verdicts) if verdict is None]
    return sent, [verdict for verdict in verdicts if verdict is not None]


def send_one(client, place):
    """Runs a client; None when it ran, or the verdict."""
    try:
        with _building:
            command = [*client.command(), client.transport, place, client.prefix]
        done = subprocess.run(command, cwd=COMPAT, env=environment(), capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise Failure(f"the client failed: {(done.stderr or done.stdout)[-1000:]}")
        return None
    except Skip as skip:
        return client.name, None, str(skip)
    except (Failure, subprocess.TimeoutExpired) as failure:
        return client.name, False, str(failure)


def environment():
    """Clients find their modules in compat/node_modules, and nobody's agent."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DD_", "STATSD_"))}
    return kept | {"NODE_PATH": str(COMPAT / "node_modules"), "NODE_NO_WARNINGS": "1"}


def against_staunch(clients):
    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        http = free_port()
        places, listens = {}, {}
        for client in clients:
            if client.transport in ("udp", "tcp"):
                places[client.name] = f"127.0.0.1:{free_port()}"
            else:
                places[client.name] = f"{folder}/{client.name}.sock"
            listens[client.name] = f"{client.transport}://{places[client.name]}"
        path = pathlib.Path(folder) / "clients.toml"
        argv = [staunch_binary(), "run", str(path), "--http", f"127.0.0.1:{http}"]
        with contextlib.ExitStack() as stack:
            listener = stack.enter_context(Listener())
            path.write_text(config(clients, listens, listener.port, folder))
            daemon = stack.enter_context(Daemon(argv, name="staunch"))
            daemon.wait_http(f"http://127.0.0.1:{http}/ready")
            sent, verdicts = send_all(clients, places)
            accounts = settled_accounts(f"http://127.0.0.1:{http}/api/v1/accounts", sent)
            code = daemon.stop()
            if code != 0:
                verdicts.append(("staunch", False, f"ended with {code}: {daemon.output()[-1000:]}"))
            time.sleep(0.2)
            points = {point.name.decode(): float(point.value) for point in listener.take()}
    return verdicts + [verdict(client, accounts, points) for client in sent]


def config(clients, listens, graphite, folder):
    """One source per client; one flush, at the end, when the daemon is stopped."""
    names = json.dumps([client.name for client in clients])
    lines = [f"data_dir = {json.dumps(folder)}"]
    for client in clients:
        lines += [f'[sources."{client.name}"]', 'type = "statsd"', f"listen = [{json.dumps(listens[client.name])}]"]
    lines += ["[transforms.stats]", 'type = "aggregate"', f"from = {names}", 'window = "1h"', 'flush_align = "start"']
    lines += ["[outputs.carbon]", 'type = "graphite"', 'from = ["stats"]', f'to = ["tcp://127.0.0.1:{graphite}"]']
    lines += ["[outputs.events]", 'type = "event_file"', f"from = {names}"]
    return "\n".join(lines) + "\n"


def settled_accounts(url, clients):
    """Accounts of the sources by name, as soon as they hold what was sent, or as they are after a while."""
    deadline = time.monotonic() + 5
    while True:
        with urllib.request.urlopen(url, timeout=5) as reply:
            accounts = {source["name"]: source for source in json.load(reply)["sources"]}
        missing = [c for c in clients if accounts[c.name]["received"] < c.received]
        if time.monotonic() > deadline or not missing:
            return accounts
        time.sleep(0.1)


def verdict(client, accounts, points):
    account, wrong = accounts[client.name], []
    if account["received"] != client.received:
        wrong.append(f"received {account['received']}, sent {client.received}")
    for loss in ("rejected", "dropped", "internal"):
        if account[loss] != 0:
            wrong.append(f"{loss} {account[loss]}")
    if account["received"] - account["aggregated"] != client.events:
        wrong.append(f"{account['received'] - account['aggregated']} records not aggregated, {client.events} events sent")
    for name, value in client.expected.items():
        name = name.replace("P", client.prefix, 1)
        if points.get(name) != value:
            wrong.append(f"{name} is {points.get(name)}, not {value}")
    return client.name, not wrong, "; ".join(wrong) or f"{account['received']} records, {len(client.expected)} points"


def against_original(clients):
    """Plain clients to the original: its tables must show what we expect of ours."""
    verdicts = []
    clients = [client for client in clients if client.plain]
    for transport in ("udp", "tcp"):
        port, management = free_port(), free_port()
        chosen = [client for client in clients if client.transport == transport]
        if not chosen:
            continue
        with tempfile.TemporaryDirectory(prefix="clients-") as folder:
            settings = {"port": port, "address": "127.0.0.1", "mgmt_port": management, "backends": []}
            settings |= {"server": f"./servers/{transport}", "flushInterval": 3_600_000, "automaticConfigReload": False}
            path = pathlib.Path(folder) / "original.js"
            path.write_text(json.dumps(settings))
            with Daemon([*node_statsd(), str(path)], name="original") as daemon:
                daemon.wait_tcp(management)
                sent, failed = send_all(chosen, {client.name: f"127.0.0.1:{port}" for client in chosen})
                verdicts += [(f"{name} (original)", good, text) for name, good, text in failed]
                time.sleep(0.3)
                shown = {command: dump(converse(management, [command.encode()]).decode())[0] for command in ORIGINAL}
        for client in sent:
            wrong = []
            for command, wanted in ORIGINAL.items():
                for name, value in wanted.items():
                    name = name.replace("P", client.prefix, 1)
                    if shown[command].get(name) != value:
                        wrong.append(f"{command}: {name} is {shown[command].get(name)}, not {value}")
            verdicts.append((f"{client.name} (original)", not wrong, "; ".join(wrong) or "the same numbers"))
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("client", nargs="*", help="only these")
    parser.add_argument("--original-only", action="store_true", help="only the plain clients against the original")
    args = parser.parse_args()
    clients = [client for client in TABLE if not args.client or client.client in args.client]
    try:
        with ThreadPoolExecutor(1) as pool:
            original = pool.submit(against_original, clients)
            verdicts = [] if args.original_only else against_staunch(clients)
            verdicts += original.result()
    except (DaemonError, OSError) as error:
        print(f"clients: {error}", file=sys.stderr)
        return 2
    for name, good, text in sorted(verdicts):
        print(f"{ {True: 'ok     ', False: 'FAILED ', None: 'SKIPPED'}[good] } {name}: {text}")
    passed = sum(1 for _, good, _ in verdicts if good)
    skipped = sum(1 for _, good, _ in verdicts if good is None)
    failed = len(verdicts) - passed - skipped
    print(f"clients: {passed} passed, {failed} failed, {skipped} skipped")
    strict = os.environ.get("COMPAT_STRICT") == "1"
    return 1 if failed or (strict and skipped) else 0


if __name__ == "__main__":
    sys.exit(main())
