#!/usr/bin/env python3
"""Real clients of Riemann against `staunch riemann`: they send events over TCP and UDP, and ask for them.

Each client sends the same two events under a host name of its own. They must be in the index with all their fields, and
a client that can ask must get both in the reply. collectd and syslog-ng send what they always send.

A client is skipped, loudly, when its language or program is not on this machine, and only then. With COMPAT_STRICT=1 a
skip is a failure.

    riemann.py [CLIENT …]        for instance: riemann.py collectd ruby
"""

import argparse
import contextlib
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

CLIENTS = pathlib.Path(__file__).resolve().parent
COMPAT = CLIENTS.parent
sys.path.insert(0, str(COMPAT))

from daemon import Daemon, DaemonError, free_port, staunch_binary  # noqa: E402

# Packages whose installation would start a service are unpacked there by .ci/tools; Python's packages are there as well.
UNPACKED = COMPAT / ".riemann"

CONFIG = """
(tcp-server {{:port {tcp}}})
(udp-server {{:port {udp}}})
(sse-server {{:port {sse}}})
(instrumentation {{:enabled? false}})
(periodically-expire 3600)
(let [index (index)]
  (streams (default :ttl 3600 index)))
"""

# What the index must have of the script, besides host and time.
TEMPERATURE = {"service": "temperature", "state": "ok", "description": "in the rack", "metric": 2.5, "tags": ["a", "b"],
               "ttl": 600.0, "dc": "eu"}
COUNT = {"service": "count", "metric": 7, "ttl": 600.0}
SECONDS_MAX = 30


class Skip(Exception):
    """The client is not on this machine."""


class Failure(Exception):
    """The client, or what came of it, is not as it must be."""


class Ports:
    def __init__(self):
        self.tcp, self.udp, self.sse, self.http = (free_port() for _ in range(4))


def indexed(ports, query, enough):
    """The events of the index that match, as soon as there are enough of them."""
    url = f"http://127.0.0.1:{ports.sse}/index?query={urllib.parse.quote(query)}"
    found, deadline = {}, time.monotonic() + SECONDS_MAX
    try:
        with urllib.request.urlopen(url, timeout=SECONDS_MAX) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    found[event["service"]] = event
                if enough(found) or time.monotonic() > deadline:
                    break
    except TimeoutError:
        pass
    return found


def script(command):
    """A client that runs the script over TCP and over UDP."""

    def run(ports, name, _folder):
        for transport, port in (("tcp", ports.tcp), ("udp", ports.udp)):
            host = f"{name}-{transport}"
            argv = [*command(), transport, "127.0.0.1", str(port), host]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                raise Failure(f"{transport}: the client failed: {(done.stderr or done.stdout)[-1000:]}")
            found = indexed(ports, f'host = "{host}"', lambda found: len(found) == 2)
            for want in (TEMPERATURE, COUNT):
                event = found.get(want["service"], {})
                wrong = {key: event.get(key) for key, value in want.items() if event.get(key) != value}
                if wrong:
                    raise Failure(f"{transport}: the index has {wrong} of {want}")
            answer = json.loads(done.stdout)
            if transport == "tcp" and answer != {"temperature": 2.5, "count": 7}:
                raise Failure(f"the reply to its query is {answer}")
        return "both events over TCP and UDP, and the reply to its query"

    return run


def python(name):
    def command():
        interpreter = UNPACKED / "venv" / "bin" / "python"
        if not interpreter.exists():
            raise Failure(f"{interpreter} is missing: run `make tools`")
        return [str(interpreter), "-W", "ignore", str(CLIENTS / "riemann" / name)]

    return command


def c_client():
    if not os.path.exists("/usr/bin/riemann-client"):
        raise Skip("riemann-c-client is not on this machine")
    return [sys.executable, str(CLIENTS / "riemann" / "riemann_c_client.py")]


def ruby():
    loads = shutil.which("ruby") and subprocess.run(["ruby", "-rriemann/client", "-e", "0"], capture_output=True)
    if not loads or loads.returncode != 0:
        raise Skip("there is no Ruby with riemann-client (ruby-riemann-client) on this machine")
    return ["ruby", str(CLIENTS / "riemann" / "ruby_riemann_client.rb")]


def unpacked(path):
    """A file of an unpacked package."""
    found = glob.glob(str(UNPACKED / path))
    if not found:
        raise Skip(f"{pathlib.Path(path).name} is not in {UNPACKED}")
    return found[0]


def collectd(ports, _name, folder):
    """A plugin that reads every second, and write_riemann over TCP with the state of the connection checked."""
    program, plugins = unpacked("usr/sbin/collectd"), pathlib.Path(unpacked("usr/lib/collectd/write_riemann.so")).parent
    config = folder / "collectd.conf"
    config.write_text(f"""
Hostname "collectd"
BaseDir "{folder}"
PIDFile "{folder}/pid"
PluginDir "{plugins}"
TypesDB "{unpacked('usr/share/collectd/types.db')}"
Interval 1
LoadPlugin load
LoadPlugin logfile
LoadPlugin write_riemann
<Plugin logfile>
  File "{folder}/log"
</Plugin>
<Plugin write_riemann>
  <Node "staunch">
    Host "127.0.0.1"
    Port "{ports.tcp}"
    Protocol TCP
    Batch false
    StoreRates true
    TTLFactor 30
  </Node>
  Tag "collectd-test"
  Attribute "dc" "eu"
</Plugin>
""")
    with Daemon([program, "-f", "-C", str(config)], name="collectd") as daemon:
        found = indexed(ports, 'host = "collectd" and service =~ "load%"', lambda found: len(found) >= 3)
        log = daemon.output() + ((folder / "log").read_text() if (folder / "log").exists() else "")
    event = found.get("load/load/shortterm")
    if event is None:
        raise Failure(f"the index has {sorted(found)}: {log[-1000:]}")
    want = {"plugin": "load", "type": "load", "ds_name": "shortterm", "dc": "eu", "tags": ["collectd-test"], "ttl": 30.0}
    wrong = {key: event.get(key) for key, value in want.items() if event.get(key) != value}
    if wrong or not isinstance(event["metric"], float):
        raise Failure(f"the index has {event}")
    return f"{len(found)} services"


def syslog_ng(ports, _name, folder):
    """A file whose lines become events: riemann() with fields, tags and an attribute."""
    program = unpacked("usr/sbin/syslog-ng")
    modules = pathlib.Path(unpacked("usr/lib/syslog-ng/*/libriemann.so")).parent
    version = ".".join(modules.name.split(".")[:2])
    lines, config = folder / "lines", folder / "syslog-ng.conf"
    lines.write_text("".join(f"<13>Nov 20 10:00:0{number} web{number} app: size={number}.5\n" for number in range(3)))
    config.write_text(f"""
@version: {version}
@module afsocket
options {{ keep-hostname(yes); }};
source s {{ file("{lines}" read-old-records(yes) follow-freq(1)); }};
destination d {{
  riemann(
    server("127.0.0.1") port({ports.tcp}) type("tcp")
    host("syslog-ng") service("$HOST") state("ok") description("$MSG") metric(double("$(substr $MSG 5)")) ttl("60")
    attributes(pair("program" "$PROGRAM"))
  );
}};
log {{ source(s); destination(d); }};
""")
    argv = [program, "-F", "-e", "--no-caps", f"--module-path={modules}", f"--cfgfile={config}"]
    argv += [f"--persist-file={folder}/persist", f"--pidfile={folder}/pid", f"--control={folder}/ctl"]
    with Daemon(argv, name="syslog-ng", env=os.environ | library_path()) as daemon:
        found = indexed(ports, 'host = "syslog-ng"', lambda found: len(found) == 3)
        log = daemon.output()
    for number in range(3):
        event = found.get(f"web{number}", {})
        want = {"state": "ok", "description": f"size={number}.5", "metric": number + 0.5, "program": "app"}
        wrong = {key: event.get(key) for key, value in want.items() if event.get(key) != value}
        if wrong:
            raise Failure(f"the index has {found}: {log[-1000:]}")
    return "3 lines"


def library_path():
    """Where the libraries of unpacked packages are."""
    folders = {str(pathlib.Path(found).parent) for found in glob.glob(str(UNPACKED / "usr/lib/*/libsyslog-ng*.so*"))}
    return {"LD_LIBRARY_PATH": ":".join(sorted(folders))}


TABLE = {
    "pypi-riemann-client": script(python("pypi_riemann_client.py")),
    "pypi-bernhard": script(python("pypi_bernhard.py")),
    "riemann-c-client": script(c_client),
    "ruby": script(ruby),
    "collectd": collectd,
    "syslog-ng": syslog_ng,
}


def verdicts(names):
    with tempfile.TemporaryDirectory(prefix="riemann-") as folder, contextlib.ExitStack() as stack:
        folder, ports = pathlib.Path(folder), Ports()
        config = folder / "riemann.config"
        config.write_text(CONFIG.format(tcp=ports.tcp, udp=ports.udp, sse=ports.sse))
        argv = [staunch_binary(), "riemann", str(config), "--http", f"127.0.0.1:{ports.http}"]
        daemon = stack.enter_context(Daemon(argv, name="staunch", cwd=folder))
        daemon.wait_http(f"http://127.0.0.1:{ports.http}/ready")
        for name in names:
            own = folder / name
            own.mkdir()
            try:
                yield name, True, TABLE[name](ports, name, own)
            except Skip as skip:
                yield name, None, str(skip)
            except (Failure, DaemonError, subprocess.TimeoutExpired, json.JSONDecodeError) as failure:
                yield name, False, str(failure)
        with urllib.request.urlopen(f"http://127.0.0.1:{ports.http}/api/v1/accounts", timeout=5) as reply:
            sources = json.load(reply)["sources"]
        losses = ("rejected", "dropped", "internal")
        lost = {source["name"]: source[loss] for source in sources for loss in losses if source[loss]}
        yield "accounts", not lost, f"lost {lost}" if lost else "nothing was rejected or dropped"
        code = daemon.stop()
        if code != 0:
            yield "staunch", False, f"ended with {code}: {daemon.output()[-1000:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("client", nargs="*", choices=[[], *TABLE], help="only these")
    names = parser.parse_args().client or list(TABLE)
    passed = failed = skipped = 0
    try:
        for name, good, text in verdicts(names):
            print(f"{ {True: 'ok     ', False: 'FAILED ', None: 'SKIPPED'}[good] } {name}: {text}", flush=True)
            passed, failed, skipped = passed + (good is True), failed + (good is False), skipped + (good is None)
    except (DaemonError, OSError) as error:
        print(f"riemann clients: {error}", file=sys.stderr)
        return 2
    print(f"riemann clients: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or (os.environ.get("COMPAT_STRICT") == "1" and skipped) else 0


if __name__ == "__main__":
    sys.exit(main())
