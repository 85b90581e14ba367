# riemann-client of Ruby: TRANSPORT HOST PORT NAME. Sends the script of riemann.py, and over TCP asks for it.

require 'json'
require 'riemann/client'

transport, host, port, name = ARGV
client = Riemann::Client.new(host: host, port: port.to_i)
events = [
  { host: name, service: 'temperature', state: 'ok', description: 'in the rack', metric: 2.5, ttl: 600,
    tags: %w[a b], dc: 'eu' },
  { host: name, service: 'count', metric: 7, ttl: 600 }
]
to = transport == 'tcp' ? client.tcp : client.udp
events.each { |event| to << event }
found = transport == 'tcp' ? client[%(host = "#{name}")] : []
puts JSON.generate(found.to_h { |event| [event.service, event.metric] })
