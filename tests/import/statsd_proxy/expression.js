(function () {
  var first = Number(process.env.FIRST_PORT);
  return {
    nodes: [
      { host: process.env.NODE_1 || 'statsd-1.example', port: first, adminport: first + 1 },
      { host: 'statsd-2.example', port: process.env.FIRST_PORT, adminport: first + 1 }
    ],
    port: process.env.STATSD_PORT,
    address_ipv6: true,
    mgmt_address: '127.0.0.1',
    forkCount: 'auto',
    cacheSize: 100000,
    automaticConfigReload: false,
    ring_replicas: 4,
    log: { backend: 'syslog', level: 'LOG_INFO' }
  };
})()
