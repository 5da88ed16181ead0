'use strict';

const http = require('node:http');
const page = require('./page.js');

const port = Number(process.env.PORT) || 8080;
const host = process.env.HOST || process.env.SVC_LISTEN_ADDRESS || '127.0.0.1';
let requests = 0;

const server = http.createServer((request, response) => {
  requests += 1;
  const { pathname } = new URL(request.url, 'http://app.example.com');
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return send(response, 405, 'text/plain', 'Method not allowed\n');
  if (pathname === '/') return send(response, 200, 'text/html', page({ greeting: process.env.GREETING, ...state() }));
  if (pathname === '/api/state') return send(response, 200, 'application/json', JSON.stringify(state()));
  if (pathname === '/healthz') return send(response, 200, 'text/plain', 'ok\n');
  send(response, 404, 'text/plain', 'Not found\n');
});

server.listen(port, host, () => console.log(`Listening on port ${server.address().port}`));

// A new version is up: finish what is open, then go.
process.on('SIGTERM', () => {
  console.log('Stopping');
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});

function state() {
  return { node: process.version, requests, uptime_seconds: Math.floor(process.uptime()), process_id: process.pid };
}

function send(response, status, type, text) {
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'cache-control': 'no-store',
    'content-length': Buffer.byteLength(text),
  });
  response.end(response.req.method === 'HEAD' ? undefined : text);
}
