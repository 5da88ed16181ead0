// Preloaded into a client of a test: the name of RESOLVE_NAME is this machine.
const dns = require('node:dns');

const { lookup } = dns;
dns.lookup = (host, ...rest) => lookup(host === process.env.RESOLVE_NAME ? '127.0.0.1' : host, ...rest);
