{
  graphiteHost: "carbon",
  backends: ["./backends/graphite", "./backends/repeater"],
  repeater: process.env.REPEATERS.split(',').map(r => ({ host: r.split(':')[0], port: +r.split(':')[1] }))
}
