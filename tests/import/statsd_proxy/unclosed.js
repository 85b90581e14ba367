{
  nodes: [ { host: '10.0.0.1', port: 8125, adminport: 8126 }
