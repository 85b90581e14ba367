module.exports = {
  graphiteHost: 'carbon',
  servers: [
    { server: './servers/udp', address: '10.0.0.5', port: 8125 },
    { server: './servers/udp', address: '::1', address_ipv6: true, port: 8125 },
    { server: './servers/tcp', address: '127.0.0.1', port: 8125 },
    { server: './servers/tcp', socket: '/var/run/statsd.sock', socket_mod: 0o770 }
  ]
};
