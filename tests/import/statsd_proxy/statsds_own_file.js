{
  graphiteHost: 'carbon.example',
  port: 8125,
  backends: ['./backends/graphite']
}
