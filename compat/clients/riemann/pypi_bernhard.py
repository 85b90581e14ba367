"""bernhard of PyPI: TRANSPORT HOST PORT NAME. Sends the script of riemann.py, and over TCP asks for it."""

import json
import sys

import bernhard

transport, host, port, name = sys.argv[1:]
wire = {"tcp": bernhard.TCPTransport, "udp": bernhard.UDPTransport}[transport]
client = bernhard.Client(host=host, port=int(port), transport=wire)
temperature = {
    "host": name,
    "service": "temperature",
    "state": "ok",
    "description": "in the rack",
    "metric": 2.5,
    "ttl": 600,
    "tags": ["a", "b"],
    "attributes": {"dc": "eu"},
}
client.send(temperature, {"host": name, "service": "count", "metric_sint64": 7, "ttl": 600})
found = client.query(f'host = "{name}"') if transport == "tcp" else []
print(json.dumps({event.service: event.metric for event in found}))
