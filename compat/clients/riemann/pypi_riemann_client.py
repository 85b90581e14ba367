"""riemann-client of PyPI: TRANSPORT HOST PORT NAME. Sends the script of riemann.py, and over TCP asks for it."""

import json
import sys

from riemann_client.client import QueuedClient
from riemann_client.transport import TCPTransport, UDPTransport

transport, host, port, name = sys.argv[1:]
wire = {"tcp": TCPTransport, "udp": UDPTransport}[transport]
with QueuedClient(wire(host, int(port))) as client:
    client.event(
        host=name,
        service="temperature",
        state="ok",
        description="in the rack",
        metric_f=2.5,
        ttl=600,
        tags=["a", "b"],
        attributes={"dc": "eu"},
    )
    client.event(host=name, service="count", metric_sint64=7, ttl=600)
    client.flush()
    found = client.query(f'host = "{name}"') if transport == "tcp" else []
answer = {event["service"]: event["metric_f"] for event in found}
print(json.dumps(answer))
