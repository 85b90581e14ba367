// The keys of the original's example file.
{
nodes: [
{host: '127.0.0.1', port: 8127, adminport: 8128},
{host: '127.0.0.1', port: 8129, adminport: 8130},
{host: '127.0.0.1', port: 8131, adminport: 8132}
],
server: './servers/udp',
host:  '0.0.0.0',
port: 8125,
udp_version:'udp4',
mgmt_port: 8126,
forkCount: 0,
checkInterval: 1000,
cacheSize: 10000
}
