// npm hot-shots: hot_shots.js TRANSPORT ADDRESS PREFIX
'use strict';
const StatsD = require('hot-shots');

const [transport, address, prefix] = process.argv.slice(2);
const [host, port] = address.split(':');
const place = transport === 'udp' ? { host, port: Number(port) } : { protocol: 'uds', path: address };
const client = new StatsD({
  ...place,
  prefix: prefix + '.',
  errorHandler: (error) => { console.error(error); process.exit(1); },
});

client.increment('hits');
client.increment('hits', 2);
client.decrement('hits');
for (const milliseconds of [10, 20, 30]) client.timing('lat', milliseconds);
client.gauge('temp', 20);
client.gaugeDelta('temp', 2);
for (const member of ['a', 'b', 'a']) client.set('uid', member);
client.increment('tagged', 1, { env: 'prod', dc: 'x' });
for (const value of [1, 2, 3]) {
  client.histogram('size', value, { env: 'prod' });
  client.distribution('spread', value);
}
client.event('deployed', 'by hand\nin two lines', { alert_type: 'info' }, { env: 'prod' });
client.check('db.up', client.CHECKS.OK, { message: 'fine' });
client.close((error) => process.exit(error ? 1 : 0));
