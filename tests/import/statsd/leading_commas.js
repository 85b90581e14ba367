{
  port: 8125
, mgmt_port: 8126
, graphiteHost: 'carbon'
, graphitePort: 2003
, percentThreshold: [ 90
                    , 95 ]
, deleteCounters: true
, deleteTimers: true
, log: { backend: 'syslog', application: 'statsd-edge' }
, debug: true
}
