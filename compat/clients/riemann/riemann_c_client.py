"""The command of riemann-c-client: TRANSPORT HOST PORT NAME. Sends the script of riemann.py, and over TCP asks for it."""

import json
import shutil
import subprocess
import sys

transport, host, port, name = sys.argv[1:]
program = shutil.which("riemann-client", path="/usr/bin:/usr/local/bin")


def run(*arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.stdout}{done.stderr}")
    return done.stdout


def send(*fields):
    run("send", f"--{transport}", "--host", name, "--ttl", "600", *fields, host, port)


send("--service", "temperature", "--state", "ok", "--description", "in the rack", "--metric-d", "2.5",
     "--tag", "a", "--tag", "b", "--attribute", "dc=eu")
send("--service", "count", "--metric-sint64", "7")
found = json.loads(run("query", f'host = "{name}"', "--json", host, port)) if transport == "tcp" else []
metric = lambda event: next(event[key] for key in ("metric", "metric_sint64", "metric_d", "metric_f") if key in event)
print(json.dumps({event["service"]: metric(event) for event in found}))
