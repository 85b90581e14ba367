"""Starts and stops the programs under test: free ports, waiting until they answer, stderr kept, ended by process id.

    from daemon import Daemon, free_port, staunch_binary

    with Daemon([staunch_binary(), "run", "--http", f"127.0.0.1:{port}"]) as daemon:
        daemon.wait_http(f"http://127.0.0.1:{port}/ready")
        ...
    print(daemon.output())
"""

import os
import pathlib
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

COMPAT = pathlib.Path(__file__).resolve().parent
ROOT = COMPAT.parent

# Below the range that the kernel gives to connecting sockets, so that nobody takes a port between check and use.
_PORT_FIRST, _PORT_LAST = 20_000, 32_000
_port_lock = threading.Lock()
# Abstract unix sockets, one for each port that was given out: what tells other runs on this machine that it is taken.
_port_claims = []
_port_next = random.SystemRandom().randrange(_PORT_FIRST, _PORT_LAST)


class DaemonError(Exception):
    """The program under test did not start, or ended early."""


def free_port():
    """A port that is free for UDP and TCP on loopback now, and that no run on this machine gives out while this one lasts."""
    global _port_next
    with _port_lock:
        for _ in range(_PORT_LAST - _PORT_FIRST):
            _port_next = _port_next + 1 if _port_next + 1 < _PORT_LAST else _PORT_FIRST
            free = _is_free(_port_next, socket.SOCK_DGRAM) and _is_free(_port_next, socket.SOCK_STREAM)
            if free and _claim(_port_next):
                return _port_next
    raise DaemonError("no free port")


def _claim(port):
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0staunch-compat-port-{port}")
    except OSError:
        claim.close()
        return False
    _port_claims.append(claim)
    return True


def _is_free(port, kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def staunch_binary():
    """The binary under test: $STAUNCH, or the newest build in the target folder."""
    named = os.environ.get("STAUNCH")
    if named:
        return named
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    builds = [path for profile in ("release", "debug") if (path := target / profile / "staunch").exists()]
    if not builds:
        raise DaemonError(f"no staunch under {target}: build it, or name one in STAUNCH")
    return str(max(builds, key=lambda path: path.stat().st_mtime))


def example(package, name):
    """An example program of ours that stands on one side of a comparison: $NAME, or its debug build."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    path = os.environ.get(name.upper()) or target / "debug/examples" / name
    if not os.path.exists(path):
        raise DaemonError(f"{path} is missing: cargo build --package {package} --example {name}")
    return path


def node_statsd(script="stats.js"):
    """The command of the original, as far as its script."""
    path = COMPAT / "node_modules" / "statsd" / script
    if not path.exists():
        raise DaemonError(f"{path} is missing: run `npm ci` in compat/")
    return ["node", "--no-deprecation", str(path)]


class Daemon:
    """One running program. Its stdout and stderr go to one file, read by `output`."""

    def __init__(self, argv, *, name=None, cwd=None, env=None):
        self.argv = [str(word) for word in argv]
        self.name = name or pathlib.Path(self.argv[0]).name
        self._log = tempfile.TemporaryFile(prefix="compat-")
        self._process = subprocess.Popen(
            self.argv, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT, cwd=cwd, env=env
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        return self._process.pid

    def running(self):
        return self._process.poll() is None

    def output(self):
        """What it has printed so far."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")

    def wait_http(self, url, seconds=20):
        """Waits until `url` answers 200."""

        def answers():
            try:
                with urllib.request.urlopen(url, timeout=2) as reply:
                    return reply.status == 200
            except (urllib.error.URLError, OSError):
                return False

        self.wait_until(answers, f"{url} to answer 200", seconds)

    def wait_tcp(self, port, seconds=20):
        """Waits until something accepts connections on `port`."""

        def accepts():
            try:
                socket.create_connection(("127.0.0.1", port), timeout=2).close()
                return True
            except OSError:
                return False

        self.wait_until(accepts, f"port {port} to accept connections", seconds)

    def wait_until(self, ready, what, seconds=20):
        """Waits until `ready()`, as long as it runs."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if ready():
                return
            if not self.running():
                code = self._process.returncode
                raise DaemonError(f"{self.name} ended with {code} before {what}:\n{self.output()}")
            time.sleep(0.02)
        raise DaemonError(f"{self.name}: waited {seconds} s in vain for {what}:\n{self.output()}")

    def stop(self, seconds=10):
        """Asks it to end, insists after `seconds`; returns its exit code."""
        if self.running():
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._process.wait()
