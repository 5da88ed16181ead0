// The page, and at /about what answers: greeting, instance and port.
const { readFileSync } = require('node:fs');
const { createServer } = require('node:http');

const { PORT, SVC_INSTANCE_ID: instance } = process.env;
const page = readFileSync('public/index.html', 'utf8');
const greeting = readFileSync('greeting.txt', 'utf8').trim();

const server = createServer((request, response) => {
  if (request.url === '/about') return response.end(JSON.stringify({ greeting, instance, port: Number(PORT) }));
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  return response.end(page);
});

server.listen(PORT, () => console.log(`listening on ${PORT}: ${greeting}`));
// Told to stop: requests that are under way still get their answers.
process.on('SIGTERM', () => server.close(() => process.exit(0)));
