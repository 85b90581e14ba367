// What `staunch bench fanout` measures node statsd's repeater with. The ports are replaced by free ones, the list of
// endpoints by that of the scenario.
// By hand: node bench/node_modules/statsd/stats.js bench/fanout.js
//
// The flush interval is an hour because the only count that node keeps is set to 0 by a flush.
{
  address: "127.0.0.1",
  port: 28125,
  mgmt_address: "127.0.0.1",
  mgmt_port: 28126,
  flushInterval: 3600000,
  backends: ["./backends/repeater"],
  repeater: [{ host: "127.0.0.1", port: 28201 }, { host: "127.0.0.1", port: 28202 }]
}
