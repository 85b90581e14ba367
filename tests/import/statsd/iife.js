(function() {
  'use strict';
  var env = process.env;
  var os = require('os');
  var host = os.hostname().split('.'), first = host[0];
  var repeaters = (env.REPEATERS || '').split(',')

  return {
    port: env.STATSD_PORT,
    graphiteHost: env.GRAPHITE_HOST,
    graphitePort: env.GRAPHITE_PORT,
    graphite: { legacyNamespace: false, globalSuffix: first },
    backends: [ './backends/graphite', './backends/repeater' ],
    repeater: [
      { host: repeaters[0].split(':')[0], port: repeaters[0].split(':')[1] },
      { host: repeaters[1].split(':')[0], port: repeaters[1].split(':')[1] }
    ]
  };
})()
