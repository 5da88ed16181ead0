// The page, a page made of rows at /shop, and at /about what answers: greeting, instance and port.
const { readFileSync } = require('node:fs');
const { createServer } = require('node:http');

const { PORT, SVC_INSTANCE_ID: instance } = process.env;
const page = readFileSync('public/index.html', 'utf8');
const greeting = readFileSync('greeting.txt', 'utf8').trim();

const items = Array.from({ length: 50 }, (_, index) => ({
  name: `Item ${index + 1}`,
  note: 'Made of wood & glue',
  cents: 100 * index + 99,
}));
const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const row = ({ name, note, cents }) =>
  `<tr><td>${escaped(name)}</td><td>${escaped(note)}</td><td>${(cents / 100).toFixed(2)}</td></tr>`;
const shop = () =>
  `<!doctype html>\n<title>${escaped(greeting)}</title>\n<table>${items.map(row).join('\n')}</table>\n`;

const server = createServer((request, response) => {
  if (request.url === '/about') return response.end(JSON.stringify({ greeting, instance, port: Number(PORT) }));
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  return response.end(request.url === '/shop' ? shop() : page);
});

server.listen(PORT, () => console.log(`listening on ${PORT}: ${greeting}`));
// Told to stop: requests that are under way still get their answers.
process.on('SIGTERM', () => server.close(() => process.exit(0)));
