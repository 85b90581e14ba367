"""PyPI datadog: pypi_datadog.py TRANSPORT ADDRESS PREFIX"""

import sys

from datadog.dogstatsd.base import DogStatsd

transport, address, prefix = sys.argv[1:]
host, _, port = address.rpartition(":")
if transport == "udp":
    client = DogStatsd(host=host, port=int(port), namespace=prefix, disable_telemetry=True)
else:
    scheme = "unixstream" if transport == "unix-frames" else "unixgram"
    # By default it throws away what the kernel has no room for (net.unix.max_dgram_qlen is often 10): here it waits.
    client = DogStatsd(socket_path=f"{scheme}://{address}", namespace=prefix, disable_telemetry=True, socket_timeout=5)

client.increment("hits")
client.increment("hits", 2)
client.decrement("hits")
for value in (10, 20, 30):
    client.timing("lat", value)
client.gauge("temp", 20)
client.gauge("temp", 22)
for member in ("a", "b", "a"):
    client.set("uid", member)
client.increment("tagged", tags=["env:prod", "dc:x"])
for value in (1, 2, 3):
    client.histogram("size", value, tags=["env:prod"])
    client.distribution("spread", value)
client.event("deployed", "by hand\nin two lines", alert_type="info", tags=["env:prod"])
client.service_check("db.up", DogStatsd.OK, message="fine")
client.close_socket()
