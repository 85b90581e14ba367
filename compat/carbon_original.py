"""carbon's own relay and aggregator in one process, without sockets: what a daemon with a configuration does to lines.

Run by carbon.py with the Python of compat/.carbon, into which .ci/tools installs carbon. Reads a job as JSON from each line
of stdin: `conf` (path of carbon.conf), `program` (relay, aggregator), `instance` and `lines`; answers each with a line:
`points`, a list of destination, name, value and time, or `error`. A job runs in a process of its own, as carbon keeps all
in globals. Only sockets and clocks are missing: receivers, lists, rewrites, aggregation, routers and the queues of
destinations are carbon's, and windows are computed once, after all lines.
"""

import json
import os
import sys
import types

# Carbon 1.1 imports a module that Python 3.12 has no more, for a feature that is not used here.
sys.modules.setdefault("imp", types.ModuleType("imp"))

# Beside this file stands another `carbon`, the comparison.
sys.path = [path for path in sys.path if os.path.realpath(path or ".") != os.path.dirname(os.path.realpath(__file__))]

os.environ.setdefault("GRAPHITE_ROOT", "/nonexistent")


def settled(job):
    """Carbon's settings, as its command line would make them."""
    from carbon import conf

    program = f"carbon-{job['program']}"
    options = {"config": job["conf"], "instance": job["instance"], "pidfile": "/nonexistent", "logdir": "/nonexistent"}
    settings = conf.settings
    settings.update(conf.read_config(program, options))
    settings["program"] = program
    beside = lambda name: os.path.join(settings["CONF_DIR"], name)
    for key, name in [("relay-rules", settings["RELAY_RULES"]), ("rewrite-rules", settings["REWRITE_RULES"]),
                      ("aggregation-rules", settings["AGGREGATION_RULES"]), ("whitelist", "whitelist.conf"),
                      ("blacklist", "blacklist.conf")]:
        settings[key] = beside(name)
    if job["program"] == "relay":
        from carbon.routers import DatapointRouter

        if settings["RELAY_METHOD"] not in DatapointRouter.plugins:
            raise ValueError(f"no RELAY_METHOD {settings['RELAY_METHOD']}")
    return settings


def run(job):
    """The points in the queues of all destinations."""
    settings = settled(job)
    from carbon import log, service, state
    from carbon.protocols import MetricLineReceiver

    errors = []
    log.err = lambda *words, **_: errors.append(repr(words or sys.exc_info()[1]))
    log.msg = log.aggregator = log.clients = log.listener = lambda *_, **__: None
    create = {"relay": service.createRelayService, "aggregator": service.createAggregatorService}
    create[job["program"]](None)
    receiver = MetricLineReceiver()
    receiver.peerName = "compat"
    for line in job["lines"]:
        receiver.lineReceived(line.encode())
    if job["program"] == "aggregator":
        from carbon.aggregator import buffers

        for buffer in list(buffers.BufferManager.buffers.values()):
            buffer.compute_value()
    points = []
    for destination, factory in state.client_manager.client_factories.items():
        where = "nowhere" if destination is None else "{}:{}".format(*destination)
        points += [[where, name, value, when] for name, (when, value) in factory.queue]
    return {"points": points, "errors": errors[:5]}


def answer(job):
    try:
        return run(job)
    # Carbon says that it does not start in many ways, one of which is to exit.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    import carbon.service  # noqa: F401  once, for all jobs

    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "w") as pipe:
                # What carbon prints is no answer.
                sys.stdout = sys.stderr
                json.dump(answer(json.loads(line)), pipe)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        print(text or json.dumps({"error": "the process of the job died"}), flush=True)


if __name__ == "__main__":
    main()
