// npm node-statsd: node_statsd.js TRANSPORT ADDRESS PREFIX
'use strict';
const StatsD = require('node-statsd');

const [, address, prefix] = process.argv.slice(2);
const [host, port] = address.split(':');
const client = new StatsD({ host, port: Number(port), prefix: prefix + '.' });
client.socket.on('error', (error) => { console.error(error); process.exit(1); });

client.increment('hits');
client.increment('hits', 2);
client.decrement('hits');
for (const milliseconds of [10, 20, 30]) client.timing('lat', milliseconds);
client.gauge('temp', 20);
client.gauge('temp', 22);
for (const member of ['a', 'b', 'a']) client.unique('uid', member);
client.increment('packed', 9);
setTimeout(() => client.close(), 200);
