{ graphiteHost: "127.0.0.1", graphitePort: 2003, port: 8125, backends: [ "./backends/graphite" ] }
