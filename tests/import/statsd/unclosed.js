{
  graphiteHost: "carbon",
  backends: [ "./backends/graphite",
  port: 8125
}
