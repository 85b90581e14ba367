"""graphite-web as a whole without its server: what its views answer to requests, over a tree of whisper files.

Run by graphite_web.py with the Python of compat/.graphite-web. GRAPHITE_STORAGE_DIR has the tree in `whisper`. Reads a job as JSON from each line
of stdin: `create` (files: path, archives, points), `tag` (names of tagged series), `get` (a path with its query), `decode` (a format
and bytes), or `serve` (HTTP on a port of 127.0.0.1); answers each with a line. Bytes are base64.
"""

import base64
import io
import json
import os
import sys
import threading

for below in ["log/webapp", "whisper"]:
    os.makedirs(os.path.join(os.environ["GRAPHITE_STORAGE_DIR"], below), exist_ok=True)
os.environ["DJANGO_SETTINGS_MODULE"] = "graphite.settings"
sys.path = [path for path in sys.path if os.path.realpath(path or ".") != os.path.dirname(os.path.realpath(__file__))]

import django  # noqa: E402

django.setup()

import whisper  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

settings.TIME_ZONE = "UTC"
settings.ALLOWED_HOSTS = ["*"]


def create(job):
    for one in job["create"]:
        path = os.path.join(os.environ["GRAPHITE_STORAGE_DIR"], "whisper", one["path"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        whisper.create(path, one["archives"], one["factor"], one["method"])
        whisper.update_many(path, one["points"], now=job["now"])
    return {}


def tag(client, names):
    answer = client.post("/tags/tagMultiSeries", {"path": names})
    return {"status": answer.status_code}


def get(client, path):
    answer = client.get(path)
    return {"status": answer.status_code, "type": answer["Content-Type"], "body": base64.b64encode(answer.content).decode()}


def decode(job):
    """Both sides' bytes as JSON, by graphite-web's own readers."""
    from graphite.util import msgpack, unpickle

    data = base64.b64decode(job["body"])
    if job["decode"] == "pickle":
        found = unpickle.load(io.BytesIO(data))
    else:
        found = msgpack.load(io.BytesIO(data), encoding="utf-8")
    for one in found:
        if "intervals" in one:
            one["intervals"] = []
    return {"value": found}


def serve():
    """As a node that others ask."""
    from django.core.wsgi import get_wsgi_application
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return {"port": server.server_port}


def main():
    call_command("migrate", run_syncdb=True, verbosity=0)
    client = Client()
    for line in sys.stdin:
        job = json.loads(line)
        try:
            if "create" in job:
                answer = create(job)
            elif "tag" in job:
                answer = tag(client, job["tag"])
            elif "get" in job:
                answer = get(client, job["get"])
            elif "serve" in job:
                answer = serve()
            else:
                answer = decode(job)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
