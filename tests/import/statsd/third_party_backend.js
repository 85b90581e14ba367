{
  influxdb: { host: '127.0.0.1', port: 8086, database: 'stats' },
  port: 8125,
  backends: ['./backends/console', 'statsd-influxdb-backend']
}
