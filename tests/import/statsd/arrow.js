(() => {
  const port = Number(process.env.STATSD_PORT ?? 8125);
  const prefix = `${process.env.NODE_ENV}.${require('os').hostname().split('.').join('_')}`;
  return {
    port, prefixStats: prefix,
    graphiteHost: "carbon",
    graphite: { legacyNamespace: false, globalPrefix: `stats.${prefix}` },
  };
})();
