/*
 * StatsD of the web tier.
 *
 * Ports: 8125/udp for samples, 8126/tcp for the management commands.
 */
{
  // Where the results go.
  graphiteHost: "graphite.internal",
  graphitePort: 2003,
  graphitePicklePort: 2004,
  graphiteProtocol: "pickle",
  graphite: {
    legacyNamespace: false,     // the new names
    globalPrefix: "web",
    prefixCounter: "c",
    prefixTimer: "t",
    prefixGauge: "",
    prefixSet: "s",
    globalSuffix: "dc1"
  },
  backends: [ "./backends/graphite", "./backends/repeater" ],
  repeater: [ { host: "10.8.3.214", port: 8125 }, { host: "stage.internal", port: "9125" } ],
  repeaterProtocol: "udp4",

  // What comes in.
  address: "0.0.0.0",
  address_ipv6: false,
  port: 8125,
  mgmt_address: "127.0.0.1",
  mgmt_port: 8126,
  prefixStats: "statsd-web",
  keyNameSanitize: true,

  /* Aggregation. */
  flushInterval: 10000,
  flush_counts: false,
  percentThreshold: [ 50, 90, 99.9, -10 ],
  calculatedTimerMetrics: [ "count", "mean", "upper_percent", "histogram" ],
  histogram: [
    { metric: "api.", bins: [ 0.5, 10, 100, "inf" ] },
    { metric: "batch", bins: [] }
  ],
  deleteIdleStats: true,
  deleteGauges: false,
  gaugesMaxTTL: 6,
  keyFlush: { interval: 60000, percent: 10, log: "/var/log/statsd/keys.log" },

  debug: false,
  dumpMessages: false,
  automaticConfigReload: true,
  log: { backend: "stdout", application: "statsd", level: "LOG_INFO" }
}
