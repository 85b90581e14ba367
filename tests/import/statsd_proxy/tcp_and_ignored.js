{
  // As operators write it who trust the names of the options.
  host: '127.0.0.1',
  udp_version: 'udp6',
  server: './servers/tcp',
  port: 9125,
  address: '10.0.0.5',
  nodes: [
    { host: 'statsd-1.example', port: '8125', adminport: '8126', weight: 2 },
    { host: '::1', port: 8125, adminport: 8126 },
    { host: 'statsd-1.example', port: 8125, adminport: 8136 },
  ],
  checkIntervall: 5000,
  healthStatus: 'down'
}
