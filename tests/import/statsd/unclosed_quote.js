{
  graphiteHost: "carbon,
  port: 8125
}
