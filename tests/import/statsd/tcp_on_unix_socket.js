{
  server: "./servers/tcp",
  socket: "/run/statsd/statsd.sock",
  socket_mod: 777,
  port: 8125,
  backends: []
}
