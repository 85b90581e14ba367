// What `staunch bench statsd` measures node statsd with. The ports are replaced by free ones.
// By hand: node bench/node_modules/statsd/stats.js bench/statsd.js
//
// The flush interval is an hour because the only count that node keeps is set to 0 by a flush. So node never flushes
// while it is measured, which is in its favour; Staunch flushes every ten seconds (staunch.toml).
{
  address: "127.0.0.1",
  port: 28125,
  mgmt_address: "127.0.0.1",
  mgmt_port: 28126,
  graphiteHost: "127.0.0.1",
  graphitePort: 22003,
  flushInterval: 3600000,
  backends: ["./backends/graphite"]
}
