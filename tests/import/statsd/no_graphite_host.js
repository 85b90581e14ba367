{ port: 8125, healthStatus: "down", title: "statsd-1", prefixStats: "" }
