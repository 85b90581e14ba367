{
  graphiteHost: "carbon",
  graphitePort: 2003
  port: 8125
}
