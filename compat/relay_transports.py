#!/usr/bin/env python3
"""Packed and encrypted streams between relays: the original and ours at either end, in every pairing.

    relay_transports.py [--lines N]
                            pairs of relays, with a link for each of plain, gzip, lz4 and snappy, in the clear and with `ssl`: one end sends N lines over each link, the other writes what comes into a file. Compared
                            are the lines of each link, in their order. Between two of ours there is `mtls` as well, which
                            3.7.3 does not know yet
    relay_transports.py --self-test
                            bends our end in several ways, each of which must show

Certificates are made by openssl: one that signed itself, of version 1 and without the name of the host, as the original's
instructions have it; and one of an authority, for another name. Authorities are given as a file and as a folder. The original
is the one with every transport that .ci/tools builds (Debian's has `ssl` only); without it, or without openssl, the summary says
`SKIPPED`; with COMPAT_STRICT=1 that is a failure.

Prints `relay_transports: N passed, M failed`; the exit code is 1 if anything failed, 2 if a program did not run.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from comparison import Checks, skip
from daemon import Daemon, DaemonError, free_port, staunch_binary
from original_relay import built_or_skip

SECONDS_MAX = 60
PACKINGS = ["plain", "gzip", "lz4", "snappy"]
WAYS = ["clear", "ssl", "ssl-signed", "mtls"]
# With snappy the original takes whatever it reads for one block, and gives up a block that it cannot write at once: between two
# of its own, too, most of what is more than a few hundred lines never arrives.
SNAPPY_LINES = 20


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def certificates(folder):
    """own.pem signed itself; signed.pem is of ca.crt. Both have the key in the same file. known.pem and known/ list both."""
    def both(name):
        text = "".join((folder / f"{name}.{ending}").read_text() for ending in ("crt", "key"))
        (folder / f"{name}.pem").write_text(text)

    def key_and_request(name):
        openssl(folder, "req", "-new", "-nodes", "-newkey", "rsa:2048", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")

    key_and_request("own")
    openssl(folder, "x509", "-req", "-in", "own.csr", "-signkey", "own.key", "-out", "own.crt", "-days", "100")
    openssl(folder, "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=authority", "-days", "100")
    key_and_request("signed")
    (folder / "names").write_text("subjectAltName=DNS:another.example.org\n")
    openssl(folder, "x509", "-req", "-in", "signed.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", "signed.crt",
            "-days", "100", "-extfile", "names")
    both("own")
    both("signed")
    (folder / "known.pem").write_text((folder / "own.crt").read_text() + (folder / "ca.crt").read_text())
    (folder / "known").mkdir()
    for name in ("own", "ca"):
        shutil.copy(folder / f"{name}.crt", folder / f"known/{name}.pem")
    openssl(folder, "rehash", "known")


class Link:
    """One way to send lines from one relay to another."""

    def __init__(self, packing, way):
        self.packing, self.way, self.port = packing, way, free_port()
        self.name = f"{packing}-{way}"
        self.encrypted = {"clear": ("", ""), "ssl": ("ssl own.pem", "ssl"), "ssl-signed": ("ssl signed.pem", "ssl"),
                          "mtls": ("mtls own.pem", "mtls own.crt own.key")}[way]

    def listen(self):
        return f"listen type linemode transport {self.packing} {self.encrypted[0]} 127.0.0.1:{self.port} proto tcp;"

    def cluster(self):
        server = f"127.0.0.1:{self.port} proto tcp transport {self.packing} {self.encrypted[1]}"
        return f"cluster {self.name} forward {server}; match ^{self.name}\\. send to {self.name} stop;"

    def lines(self, count):
        return [f"{self.name}.{'x' * (1 + number % 97)}.{number} {number * 7} 1700000000\n" for number in range(count)]


def run(pair, sender, receiver, theirs, links, authorities, certificate_folder, lines):
    """For each link its name, whether its lines came as they were sent, and what both relays said."""
    with tempfile.TemporaryDirectory(prefix="relay-transports-") as folder:
        folder = pathlib.Path(folder)
        port = free_port()
        (folder / "far.conf").write_text("\n".join(link.listen() for link in links) + f"\ncluster all file {folder}/came;\nmatch * send to all;\n")
        near = f"listen type linemode 127.0.0.1:{port} proto tcp;\n" + "\n".join(link.cluster() for link in links)
        (folder / "near.conf").write_text(near + "\n")
        flags = ["-s", "-w", "1", "-C", authorities]
        with (Daemon([*receiver, *flags, "-f", folder / "far.conf"], name=f"{pair}, far", cwd=certificate_folder) as far,
              Daemon([*sender, *flags, "-f", folder / "near.conf"], name=f"{pair}, near", cwd=certificate_folder) as daemon):
            far.wait_tcp(links[0].port)
            daemon.wait_tcp(port)
            original = sender == theirs or receiver == theirs
            sent = [link.lines(SNAPPY_LINES if original and link.packing == "snappy" else lines) for link in links]
            with socket.create_connection(("127.0.0.1", port)) as stream:
                # In turns, so that all links are busy at once.
                for at in range(0, lines, 100):
                    stream.sendall("".join(line for some in sent for line in some[at:at + 100]).encode())
            wanted, until, size = sum(len(line) for some in sent for line in some), time.monotonic() + SECONDS_MAX, 0
            while size < wanted and time.monotonic() < until and far.running() and daemon.running():
                time.sleep(0.05)
                size = (folder / "came").stat().st_size if (folder / "came").exists() else 0
            came = (folder / "came").read_text().splitlines(keepends=True) if size else []
            good = [[line for line in came if line.startswith(f"{link.name}.")] == some for link, some in zip(links, sent)]
            ends = [f"{one.name}{'' if one.running() else ' (has ended)'}: {one.output()[-1500:]}" for one in (far, daemon)]
            told = "\n".join([f"{size} bytes came, {wanted} were sent", *ends])
            return [(f"{pair}: {link.name}", came, told) for link, came in zip(links, good)]


# How our end is bent: the relay that our sender runs is given another configuration.
BENT = {
    "another packing": "s/transport gzip/transport lz4/",
    "a line that is lost": "1s/^/match [.]77$ send to blackhole stop; /",
    "in the clear": "s/transport plain ssl/transport plain/",
    "another name": "1s/^/rewrite ^plain-clear into other; /",
}


def compare(pool, ours, theirs, folder, lines, checks):
    pairs = (
        ("original to original", theirs, theirs, WAYS[:3], "known.pem"),
        ("original to ours", theirs, ours, WAYS[:3], "known.pem"),
        ("ours to original", ours, theirs, WAYS[:3], "known.pem"),
        ("ours to ours", ours, ours, WAYS, "known.pem"),
        ("ours to ours by a folder", ours, ours, WAYS[1:], "known"),
        ("ours to original by a folder", ours, theirs, WAYS[1:3], "known"),
    )
    # A pair of relays for each packing: the original ends with a crash, now and then, where it has them all.
    runs = [pool.submit(run, pair, sender, receiver, theirs, [Link(packing, way) for way in ways], known, folder, lines)
            for pair, sender, receiver, ways, known in pairs for packing in PACKINGS]
    for done in runs:
        for name, came, told in done.result():
            checks.that(came, name, told)


def self_test(pool, ours, theirs, folder, checks):
    """Our sender gets its configuration through sed."""
    global SECONDS_MAX
    SECONDS_MAX = 6
    runs = {}
    for what, bend in BENT.items():
        script = pathlib.Path(folder, f"bent-{len(runs)}")
        words = " ".join(f"'{word}'" for word in ours)
        script.write_text(f"#!/bin/bash\nsed -i '{bend}' \"${{@: -1}}\"\nexec {words} \"$@\"\n")
        script.chmod(0o755)
        links = [Link(packing, way) for packing in ("plain", "gzip") for way in ("clear", "ssl")]
        runs[what] = pool.submit(run, what, [script], theirs, theirs, links, "known.pem", folder, 200)
    for what, done in runs.items():
        checks.that(not all(came for _, came, _ in done.result()), f"UNSEEN {what}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lines", type=int, default=3_000)
    arguments.add_argument("--self-test", action="store_true")
    options = arguments.parse_args()
    theirs = [built_or_skip()]
    if not shutil.which("openssl"):
        skip("no openssl")
    ours, checks = [staunch_binary(), "relay", "--http", "off"], Checks()
    with tempfile.TemporaryDirectory(prefix="relay-certificates-") as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        certificates(pathlib.Path(folder))
        if options.self_test:
            self_test(pool, ours, theirs, folder, checks)
        else:
            compare(pool, ours, theirs, folder, options.lines, checks)
    return checks.summary("relay_transports")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DaemonError as error:
        print(f"relay_transports: {error}", file=sys.stderr)
        sys.exit(2)
