# Net::Statsd::Server's file: it's JSON with comments.
{
    # what we don't send to Graphite is in the file
    "graphiteHost": "127.0.0.1",
    "graphitePort": 2003,
    "backends": ["Graphite", "console", "File"],
    "file": { "name": "/var/log/statsd/flushed.tsv" },
    "percentThreshold": [90, 99.9],
    "flushInterval": 10000,
    "prefixStats": "statsd",
    "keyFlush": { "interval": 60000, "percent": 50 },   # with a trailing comma:
    "log": { "backend": "stdout" },
}
