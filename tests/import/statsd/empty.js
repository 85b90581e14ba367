// Everything is commented out.
// { port: 8125 }
