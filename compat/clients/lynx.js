// npm lynx: lynx.js TRANSPORT ADDRESS PREFIX
'use strict';
const Lynx = require('lynx');

const [, address, prefix] = process.argv.slice(2);
const [host, port] = address.split(':');
const client = new Lynx(host, Number(port), {
  on_error: (error) => { console.error(error); process.exit(1); },
});

client.increment(prefix + '.hits');
client.count(prefix + '.hits', 2);
client.decrement(prefix + '.hits');
for (const milliseconds of [10, 20, 30]) client.timing(prefix + '.lat', milliseconds);
client.gauge(prefix + '.temp', 20);
client.gauge(prefix + '.temp', 22);
for (const member of ['a', 'b', 'a']) client.set(prefix + '.uid', member);
client.send({ [prefix + '.packed']: '9|c' });
setTimeout(() => client.close(), 200);
