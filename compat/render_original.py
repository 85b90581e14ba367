"""graphite-web's functions without its server and its storage: what targets give over series that come with them.

Run by render.py with the Python of compat/.graphite-web. Reads a job as JSON from each line of stdin: `series` (name, start,
step, values), `from`, `until`, `now`, `targets`, and how many times to evaluate them; answers each with a line: `results`, or `error`. `{"parameters": true}`
asks for the parameters of all functions. Parser, evaluator and functions are graphite-web's; only fetching is replaced.
"""

import datetime
import json
import math
import os
import sys
import tempfile

STORAGE = tempfile.mkdtemp(prefix="staunch-graphite-web.")
os.makedirs(os.path.join(STORAGE, "log/webapp"))
os.environ["GRAPHITE_STORAGE_DIR"] = STORAGE
os.environ["DJANGO_SETTINGS_MODULE"] = "graphite.settings"
sys.path = [path for path in sys.path if os.path.realpath(path or ".") != os.path.dirname(os.path.realpath(__file__))]

import django  # noqa: E402

django.setup()

import pytz  # noqa: E402
from django.conf import settings  # noqa: E402
from graphite.render import attime, datalib, evaluator, functions  # noqa: E402

JOB = {}


def seconds(moment):
    return int(moment.timestamp())


def matches(path, name):
    if path.startswith("seriesByTag("):
        return ";" in name
    globs, nodes = path.split("."), name.split(".")
    return len(globs) == len(nodes) and all(glob in ("*", node) for glob, node in zip(globs, nodes))


def cut(one, start, until):
    """The part of a series in a range, as whisper gives it."""
    step = one["step"]
    first, end = (time - time % step + step for time in (start, until))
    values = []
    for time in range(first, end, step):
        at = (time - one["start"]) // step
        values.append(one["values"][at] if 0 <= at < len(one["values"]) else None)
    return first, end, values


def fetch(context, path):
    found = []
    for one in JOB["series"]:
        if matches(path, one["name"]):
            start, end, values = cut(one, seconds(context["startTime"]), seconds(context["endTime"]))
            series = datalib.TimeSeries(one["name"], start, end, one["step"], values,
                                        xFilesFactor=context.get("xFilesFactor"))
            series.pathExpression = path
            found.append(series)
    return sorted(found, key=lambda series: series.name)


evaluator.fetchData = fetch
evaluator.prefetchData = lambda context, paths: None


def shown(series):
    def value(number):
        if number is None or math.isnan(number):
            return None
        return str(number) if math.isinf(number) else number

    return {"name": series.name, "start": int(series.start), "end": int(series.end), "step": int(series.step),
            "values": [value(number) for number in series], "tags": dict(series.tags)}


def run():
    moment = lambda time: datetime.datetime.fromtimestamp(time, pytz.utc)
    context = {"startTime": moment(JOB["from"]), "endTime": moment(JOB["until"]), "now": moment(JOB["now"]),
               "tzinfo": pytz.utc, "template": {}, "localOnly": True, "data": [], "prefetched": {}, "targets": [],
               "sourceIdHeaders": {}, "xFilesFactor": 0}
    results = []
    for target in JOB["targets"]:
        results += evaluator.evaluateTarget(context, target)
    return results


def parameters():
    functions_ = functions.SeriesFunctions
    return {name: [[param.name, param.type.name, param.required, param.multiple] for param in function.params]
            for name, function in functions_.items()}


def main():
    settings.TIME_ZONE = "UTC"
    os.environ["TZ"] = "UTC"
    for line in sys.stdin:
        job = json.loads(line)
        if "parameters" in job:
            answer = {"parameters": parameters()}
        else:
            JOB.clear()
            JOB.update(job)
            try:
                for _ in range(job.get("times", 1) - 1):
                    run()
                answer = {"results": [shown(series) for series in run()]}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
