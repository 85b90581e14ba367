{
  graphiteHost: "carbon",
  flushInteval: 60000,
  precentThreshold: [95],
  legacyNamespace: false,
  graphite: { legacyNamspace: false, prefixStats: "x" },
  influxdb: { host: "10.0.0.9" }
}
