#!/usr/bin/env python3
"""What endpoints of a relay get that are no plain stream of lines, beside carbon-c-relay: the same bytes.

    relay_endpoints.py      both relays, one after the other, have the same configuration and the same clients: over TCP
                            (IPv4, IPv6), UDP (three addresses) and a unix socket. Compared is what comes to a `file`, a
                            `file ip`, `type syslog` over TCP and UDP, and an endpoint over UDP: the lines of each client
                            in their order, and the result of an aggregation
    relay_endpoints.py --self-test  bends our answers in several ways, each of which must show

Times of syslog messages are compared by their form. The original is looked for as original_relay.py says. Without it
nothing is compared, and the summary says `SKIPPED`; with COMPAT_STRICT=1 that is a failure.

Prints `relay_endpoints: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import argparse
import os
import pathlib
import re
import socket
import sys
import tempfile
import time

import original_relay
from comparison import Bends, Checks
from daemon import Daemon, DaemonError, free_port, staunch_binary
from sink import Sink

SECONDS_MAX = 30
# Behind the last line of each client, so that everything has come when these have.
LAST = "last.line"
TEXT = ["a.b 1 {t}", "a.b 1.50 {t}.75", "no.time 5", "negative -4 -1", "words x y", "tag;a=b 3 {t}", "old.c 1 {t}",
        "big 1 99999999999999", "two..dots 1 {t}", "bad/byte 1 {t}"]
# What differs on purpose (docs/graphite.md) is left out: values with dots in a row, spaces behind tags, lines without end.


def configuration(port, folder, sinks):
    syslog, messages, plain = (sink.port for sink in sinks)
    return f"""
        cluster all file {folder}/plain.log;
        cluster who file ip {folder}/who.log;
        cluster stream forward 127.0.0.1:{syslog} type syslog;
        cluster messages forward 127.0.0.1:{messages} proto udp type syslog;
        cluster datagrams forward 127.0.0.1:{plain} proto udp;
        rewrite ^old\\.(.*) into new.\\1;
        aggregate ^agg every 1 seconds expire after 2 seconds compute sum write to sum.of send to who stream stop;
        match * send to all who stream messages datagrams;
        listen type linemode 127.0.0.1:{port} proto tcp 127.0.0.1:{port} proto udp [::1]:{port} proto tcp
            {folder}/relay.sock proto unix;
    """


def send(port, folder, now):
    """Each client sends its lines, and one more at the end."""
    def lines(client):
        return [f"{client}.{text.format(t=now)}\n".encode() for text in [*TEXT, f"{LAST} 1 {now}"]]

    streams = [("tcp", socket.AF_INET, ("127.0.0.1", port)), ("tcp6", socket.AF_INET6, ("::1", port)),
               ("unix", socket.AF_UNIX, f"{folder}/relay.sock")]
    for client, family, at in streams:
        with socket.socket(family, socket.SOCK_STREAM) as stream:
            stream.connect(at)
            stream.sendall(b"".join(lines(client)))
            if client == "tcp":
                stream.sendall(f"agg.a 2 {now}\nagg.b 3 {now}\n".encode())
    for number in (1, 8, 9):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.bind((f"127.0.0.{number}", 0))
            sent = lines(f"udp{number}")
            # Two lines in a datagram, and one in each of the others.
            for packet in [sent[0] + sent[1], *sent[2:]]:
                datagrams.sendto(packet, ("127.0.0.1", port))
    return 6


def run(command, name):
    """What came to each endpoint."""
    with tempfile.TemporaryDirectory(prefix="relay-endpoints-") as folder:
        sinks = [Sink(socket.SOCK_STREAM), Sink(socket.SOCK_DGRAM), Sink(socket.SOCK_DGRAM)]
        port = free_port()
        conf = pathlib.Path(folder) / "relay.conf"
        conf.write_text(configuration(port, folder, sinks))
        with Daemon([*command, "-s", "-f", conf], name=name, cwd=folder) as daemon:
            daemon.wait_tcp(port)
            daemon.wait_until(lambda: os.path.exists(f"{folder}/relay.sock"), "its unix socket")
            clients = send(port, folder, int(time.time()))
            files = {word: pathlib.Path(folder) / f"{word}.log" for word in ("plain", "who")}

            def came():
                got = {word: path.read_bytes().splitlines(keepends=True) if path.exists() else [] for word, path in files.items()}
                return got | dict(zip(("stream", "messages", "datagrams"), (sink.got() for sink in sinks)))

            def all_came():
                got = came()
                whole = all(sum(LAST.encode() in line for line in lines) == clients for lines in got.values())
                results = all(any(b"sum.of" in line for line in got[word]) for word in ("who", "stream"))
                return whole and results

            daemon.wait_until(all_came, "all lines at all endpoints", SECONDS_MAX)
            return came()


def compared(got):
    """What must be the same: by endpoint and client its lines in order, without the time."""
    table = {}
    for endpoint, lines in got.items():
        for line in lines:
            text = re.sub(r"^<30>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z ", "<30>1 TIME ", line.decode())
            text = re.sub(r"\b1[789]\d{8}\b", "NOW", text)
            name = next((word for word in ("tcp.", "tcp6.", "unix.", "udp1.", "udp8.", "udp9.", "sum.of") if word in text), "?")
            table.setdefault((endpoint, name), []).append(text)
    return table


def differences(theirs, ours):
    """By endpoint and client, what both got; none where that is the same."""
    theirs, ours = compared(theirs), compared(ours)
    both = {key: (theirs.get(key), ours.get(key)) for key in sorted(theirs.keys() | ours.keys())}
    return {key: pair if pair[0] != pair[1] else None for key, pair in both.items()}


# Each changes what came to the endpoints.
BENT = {
    "a line lost": lambda got: got["plain"].pop(),
    "two lines swapped": lambda got: got["datagrams"].insert(0, got["datagrams"].pop(1)),
    "another client": lambda got: first(got["who"], lambda line: line.replace(b"127.0.0", b"127.0.1").replace(b"::1", b"::2").replace(b"(unknown)", b"?")),
    "no client": lambda got: first(got["who"], lambda line: line.split(b" ", 1)[1]),
    "no line end": lambda got: first(got["messages"], lambda line: line.rstrip(b"\n")),
    "another time": lambda got: first(got["stream"], lambda line: line.replace(b".000Z", b"Z")),
}


def first(lines, change):
    lines[0] = change(lines[0])


def self_test(ours, checks):
    def shown(bend):
        bent = {endpoint: list(lines) for endpoint, lines in ours.items()}
        bend(bent)
        return any(differences(ours, bent).values())

    bends = Bends(BENT)
    bends.hold(shown)
    bends.judge(checks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true", help="bends our answers, each of which must show")
    options = parser.parse_args()
    theirs = run([original_relay.find_or_skip()], "theirs")
    ours = run([staunch_binary(), "relay", "--http", "off"], "ours")
    checks = Checks()
    for (endpoint, client), differ in differences(theirs, ours).items():
        checks.that(not differ, f"{endpoint} from {client}", *(differ or ()))
    if options.self_test:
        self_test(ours, checks)
    return checks.summary("relay_endpoints")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DaemonError as error:
        print(f"relay_endpoints: {error}", file=sys.stderr)
        sys.exit(2)
