{
  nodes: [
    { host: 'a.example:8125', port: 'eight', adminport: 0 },
    '10.0.0.2:8125',
    { port: 8125, adminport: 65536 },
    {}
  ],
  port: 70000,
  address: 'statsd.internal',
  server: './servers/http',
  mgmt_port: 'x',
  mgmt_address: 'manage.internal',
  checkInterval: -1,
  cacheSize: 'large',
  forkCount: 'some',
  ring_replicas: 2,
  automaticConfigReload: [],
  log: { backend: 'file' }
}
