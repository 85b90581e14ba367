{
  "graphiteHost": "carbon",
  "graphitePort": "2003",
  "port": 8125,
  "flushInterval": 5000,
  "percentThreshold": [90, 95, 99],
  "backends": ["./backends/graphite", "./backends/console"],
  "console": {"prettyprint": true},
  "graphite": {"legacyNamespace": false}
}
