// In a container: everything from the environment, with defaults.
{
  port: process.env.STATSD_PORT || 8125,
  mgmt_port: +process.env.MGMT_PORT || 8126,
  graphiteHost: process.env.GRAPHITE_HOST || 'localhost',
  graphitePort: parseInt(process.env['GRAPHITE_PORT'] || '2003', 10),
  flushInterval: Number(process.env.FLUSH_INTERVAL) || 10 * 1000,
  deleteIdleStats: process.env.DELETE_IDLE === 'true',
  debug: process.env.NODE_ENV !== 'production',
  graphite: {
    legacyNamespace: !!process.env.LEGACY,
    globalPrefix: 'stats.' + (process.env.NODE_ENV == 'production' ? 'prod' : 'test'),
    globalSuffix: require('os').hostname().split('.')[0].toLowerCase().replace('-', '_')
  },
  backends: process.env.CONSOLE ? ['./backends/console'] : ['./backends/graphite'],
};
