(() => ({ graphiteHost: 'carbon', flushInterval: 60 * 1000 }))()
