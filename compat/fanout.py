#!/usr/bin/env python3
"""Staunch as a proxy in front of the original's servers, and beside the original's cluster proxy.

    fanout.py               `staunch fanout` copies to two of node's servers, and to a socket that keeps the bytes;
                            `staunch statsd-proxy` and node's proxy.js run the same proxyConfig.js in front of the same
                            three servers: each key must reach the same one, with all of them there, with one that its
                            health says is down, and after its return
    fanout.py --self-test   shows that a proxy that places otherwise is found out

Prints `fanout: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not start.
"""

import argparse
import json
import pathlib
import random
import re
import socket
import sys
import tempfile
import time

from comparison import Checks, Failure, wait_for
from daemon import Daemon, DaemonError, free_port, node_statsd, staunch_binary
from management import Instance, converse, send
from sink import Sink

KEYS = 600

# Good and bad, several lines in one, none, raw bytes: a proxy has no opinion.
PACKETS = [b"a:1|c", b"a:1|c\nb:2|ms\n", b"junk", b"\n", b"", b"x y/z:3|g|#k:v", b"caf\xc3\xa9:1|c\xff", b"n" * 2000 + b":1|c"]


def copies(checks, folder):
    """Every target gets every packet: two of the original's servers count the same, a plain socket gets the bytes."""
    sink, servers, proxy = Sink(socket.SOCK_DGRAM), [], None
    try:
        servers = [Instance(node_statsd(), folder, f"copied-{number}") for number in (1, 2)]
        port, http = free_port(), free_port()
        targets = [f"127.0.0.1:{place}" for place in (servers[0].port, sink.port, servers[1].port)]
        argv = [staunch_binary(), "fanout", "--source", f"127.0.0.1:{port}", "--health", f"127.0.0.1:{http}"]
        proxy = Daemon([*argv, *(word for target in targets for word in ("--target", target))], name="fanout")
        proxy.wait_http(f"http://127.0.0.1:{http}/ready")
        for packet in PACKETS:
            send(port, packet)
        wait_for(f"{len(PACKETS)} packets", lambda: len(sink.got()) >= len(PACKETS))
        got = sink.got()
        checks.that(got == PACKETS, "packets arrive byte for byte, in order", f"sent {PACKETS!r}", f"got  {got!r}")
        for number in range(KEYS):
            send(port, f"copied.{number % 50}:{number}|c".encode())
            if number % 16 == 15:
                time.sleep(0.002)
        total = str(sum(number for number in range(KEYS) if number % 50 == 49))
        for side in servers:
            wait_for(f"{side.daemon.name}: all samples", lambda: side.counters().get("copied.49") == total)
        both = [{k: v for k, v in side.counters().items() if k.startswith("copied.")} for side in servers]
        checks.that(len(both[0]) == 50 and both[0] == both[1], "both servers count the same", both[0], both[1])
        checks.that(proxy.stop() == 0, "the proxy ends in order", proxy.output()[-500:])
    finally:
        for side in (proxy, *servers):
            if side:
                side.stop() if isinstance(side, Daemon) else side.close()


class Proxy:
    """A cluster proxy on a configuration that differs in its own ports only."""

    def __init__(self, command, folder, name, nodes):
        self.port, self.management = free_port(), free_port()
        settings = {
            "nodes": nodes,
            "server": "./servers/udp",
            "host": "127.0.0.1",
            "address": "127.0.0.1",
            "port": self.port,
            "mgmt_port": self.management,
            "mgmt_address": "127.0.0.1",
            "checkInterval": 1000,
            "cacheSize": 100,
            "forkCount": 0,
            "automaticConfigReload": False,
        }
        path = pathlib.Path(folder) / f"{name}.js"
        path.write_text(json.dumps(settings))
        argv = [*command, str(path)]
        self.daemon = Daemon(argv if command[0] == "node" else [*argv, "--http", "off"], name=name)
        self.daemon.wait_tcp(self.management)

    def ring(self):
        """Ports of the nodes that `status` lists, in its order."""
        status = converse(self.management, [b"status\n"]).decode()
        if not re.fullmatch(r"uptime: \d+\nnodes: (\S+ )*\n", status):
            raise Failure(f"{self.daemon.name}: a status of another form: {status!r}")
        return [int(place.split(":")[1]) for place in re.findall(r"127\.0\.0\.1:\d+", status)]


def placement(servers, proxies, seed):
    """By proxy: which server each key reached."""
    random_keys = random.Random(seed)
    keys = [f"{random_keys.choice('abcxyz')}.{random_keys.randrange(10**6)}.{n};run={seed}" for n in range(KEYS)]
    placed = []
    # Each proxy's lines are of a type of their own, so that the servers tell them apart.
    for proxy, kind, letter in zip(proxies, ("counters", "gauges"), "cg"):
        found = {}

        def arrived():
            # UDP on a busy machine: what is missing is sent again.
            for at, key in enumerate(name for name in keys if name not in found):
                send(proxy.port, f"{key}:1|{letter}".encode())
                if at % 16 == 15:
                    time.sleep(0.002)
            time.sleep(0.1)
            for server in servers:
                found.update({name: server.port for name in server.dumped(kind) if name.endswith(f";run={seed}")})
            return found if len(found) == len(keys) else None

        placed.append(wait_for(f"{proxy.daemon.name}: {len(keys)} keys", arrived))
    return placed


def sharing(checks, folder, ours):
    """The same file in both proxies: the same place for each key."""
    servers, proxies = [], []
    try:
        servers = [Instance(node_statsd(), folder, f"shared-{number}") for number in (1, 2, 3)]
        nodes = [{"host": "127.0.0.1", "port": side.port, "adminport": side.management} for side in servers]
        proxies.append(Proxy(node_statsd("proxy.js"), folder, "proxy-original", nodes))
        proxies.append(Proxy(ours, folder, "proxy-ours", nodes))
        whole = [side.port for side in servers]
        for proxy in proxies:
            wait_for(f"{proxy.daemon.name}: all nodes in the ring", lambda: sorted(proxy.ring()) == sorted(whole))

        def same(what, seed):
            left, right = placement(servers, proxies, seed)
            moved = [name for name in left if left[name] != right.get(name)]
            checks.that(not moved, what, f"{len(moved)} of {len(left)} keys elsewhere, such as {moved[:3]}")
            spread = set(left.values())
            return spread

        checks.that(same("placement on three nodes", 1) == set(whole), "keys reach all three")
        servers[1].ask("health down")
        for proxy in proxies:
            wait_for(f"{proxy.daemon.name}: one leaves", lambda: whole[1] not in proxy.ring())
        checks.that(whole[1] not in same("placement with one node out", 2), "a node that is down gets nothing")
        servers[1].ask("health up")
        for proxy in proxies:
            wait_for(f"{proxy.daemon.name}: it comes back", lambda: whole[1] in proxy.ring())
        same("placement after its return", 3)
        rings = [proxy.ring() for proxy in proxies]
        checks.that(rings[0] == rings[1], "`status` lists the nodes in the same order", *map(str, rings))
        for command in ("help", "health", "nonsense"):
            said = [converse(proxy.management, [command.encode() + b"\n"]) for proxy in proxies]
            checks.that(said[0] == said[1], f"`{command}`", f"original {said[0]!r}", f"ours     {said[1]!r}")
    finally:
        for proxy in proxies:
            proxy.daemon.stop()
        for side in servers:
            side.close()


def self_test(folder):
    """A stand-in that is no ring: both as the original, but with the nodes' order turned, must be found out."""
    checks = Checks()
    turned = pathlib.Path(folder) / "turned.js"
    original = node_statsd("proxy.js")
    turned.write_text(
        "const fs = require('fs'); const file = process.argv[2];"
        "const config = JSON.parse(fs.readFileSync(file)); const own = file + '.turned';"
        # Another name for the same host: other points on the ring.
        "config.nodes[0].host = '127.0.0.2'; config.nodes.forEach((n) => { n.weight = 1; });"
        "fs.writeFileSync(own, JSON.stringify(config)); process.argv[2] = own;"
        f"require({json.dumps(original[-1])});"
    )
    try:
        sharing(checks, folder, ["node", "--no-deprecation", str(turned)])
    except Failure:
        return True
    return checks.failed > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true", help="a proxy that places otherwise")
    args = parser.parse_args()
    checks = Checks()
    try:
        with tempfile.TemporaryDirectory(prefix="fanout-") as folder:
            if args.self_test:
                checks.that(self_test(folder), "a proxy that places otherwise is found out")
            else:
                ours = [staunch_binary(), "statsd-proxy"]
                for what, given in ((copies, (checks, folder)), (sharing, (checks, folder, ours))):
                    try:
                        what(*given)
                    except (Failure, OSError) as failure:
                        checks.that(False, "the run goes through", str(failure))
    except DaemonError as error:
        print(f"fanout: {error}", file=sys.stderr)
        return 2
    return checks.summary("fanout")


if __name__ == "__main__":
    sys.exit(main())
