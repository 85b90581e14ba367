// npm statsd-client: statsd_client.js TRANSPORT ADDRESS PREFIX
'use strict';
const StatsDClient = require('statsd-client');

const [transport, address, prefix] = process.argv.slice(2);
const [host, port] = address.split(':');
const client = new StatsDClient({ host, port: Number(port), prefix, tcp: transport === 'tcp' });

client.increment('hits');
client.counter('hits', 2);
client.decrement('hits');
for (const milliseconds of [10, 20, 30]) client.timing('lat', milliseconds);
client.gauge('temp', 20);
client.gaugeDelta('temp', 2);
for (const member of ['a', 'b', 'a']) client.set('uid', member);
client.increment('packed', 9);
setTimeout(() => client.close(), 200);
