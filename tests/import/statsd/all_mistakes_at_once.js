{
  port: "eight",
  address: "statsd.internal",
  flushInterval: -1,
  percentThreshold: [90, 101],
  graphiteHost: "carbon:2003",
  graphite: { legacyNamespace: "false" },
  deleteIdleStats: "false",
  histogram: [{ metric: "", bins: [10, 5] }],
  backends: ["./backends/grafite", "console"],
  healthStatus: "sick"
}
