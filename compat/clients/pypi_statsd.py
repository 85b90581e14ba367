"""PyPI statsd: pypi_statsd.py TRANSPORT ADDRESS PREFIX"""

import sys

import statsd

transport, address, prefix = sys.argv[1:]
host, _, port = address.rpartition(":")
if transport == "udp":
    client = statsd.StatsClient(host, int(port), prefix=prefix)
elif transport == "tcp":
    client = statsd.TCPStatsClient(host, int(port), prefix=prefix)
else:
    client = statsd.UnixSocketStatsClient(address, prefix=prefix)

client.incr("hits")
client.incr("hits", 2)
client.decr("hits")
for milliseconds in (10, 20, 30):
    client.timing("lat", milliseconds)
client.gauge("temp", 20)
client.gauge("temp", 2, delta=True)
for member in ("a", "b", "a"):
    client.set("uid", member)
with client.pipeline() as pipe:
    pipe.incr("packed", 4)
    pipe.incr("packed", 5)
if transport != "udp":
    client.close()
