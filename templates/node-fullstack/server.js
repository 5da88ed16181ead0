'use strict';

const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { Pool } = require('pg');

const port = Number(process.env.PORT) || 8080;
const files = {
  '/': ['index.html', 'text/html'],
  '/app.js': ['app.js', 'text/javascript'],
  '/style.css': ['style.css', 'text/css'],
};
const pool = process.env.DATABASE_URL ? new Pool({ connectionString: process.env.DATABASE_URL, max: 5 }) : null;
const TABLE = `create table if not exists guest_book (
  id bigint generated always as identity primary key,
  name text not null,
  message text not null,
  created_at timestamptz not null default now()
)`;

const server = http.createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error.message);
    json(response, 500, { error: 'The request failed. The log says why.' });
  });
});
server.requestTimeout = 30_000;
server.listen(port, process.env.HOST || process.env.SVC_LISTEN_ADDRESS || '127.0.0.1', () =>
  console.log(`Listening on port ${server.address().port}, ${pool ? 'with' : 'without'} a database`),
);

// A connection that breaks while nobody uses it; the pool opens another one.
pool?.on('error', (error) => console.error(`database: ${error.message}`));

process.on('SIGTERM', () => {
  server.close(() => void (pool?.end() ?? Promise.resolve()).finally(() => process.exit(0)));
  server.closeIdleConnections();
});

async function answer(request, response) {
  const route = `${request.method} ${request.url.split('?')[0]}`;
  if (route === 'GET /healthz') return json(response, 200, { status: 'ok' });
  if (route === 'GET /api/state') return json(response, 200, await state());
  if (route === 'POST /api/entries') return addEntry(request, response);
  const found = /^(GET|HEAD)$/.test(request.method) && files[request.url.split('?')[0]];
  if (!found) return json(response, 404, { error: 'Not found' });
  sendFile(request, response, ...found);
}

/** Whether there is a database, what it says of itself, and the last entries. Its address and password stay here. */
async function state() {
  if (!pool) return { database: null };
  try {
    await pool.query(TABLE);
    const { rows } = await pool.query(
      `select split_part(version(), ' ', 2) as version, current_database() as name,
        pg_size_pretty(pg_database_size(current_database())) as size`,
    );
    const entries = await pool.query('select name, message, created_at from guest_book order by id desc limit 20');
    return { database: { reachable: true, ...rows[0] }, entries: entries.rows };
  } catch (error) {
    console.error(`database: ${error.message}`);
    return { database: { reachable: false } };
  }
}

async function addEntry(request, response) {
  const { name, message } = await body(request);
  if (!fits(name, 60) || !fits(message, 500))
    return json(response, 422, { error: 'A name of up to 60 characters and a message of up to 500, please.' });
  if (!pool) return json(response, 503, { error: 'There is no database yet.' });
  await pool.query(TABLE);
  await pool.query('insert into guest_book (name, message) values ($1, $2)', [name.trim(), message.trim()]);
  json(response, 201, { name, message });
}

function fits(text, length) {
  return typeof text === 'string' && text.trim() !== '' && text.length <= length && !text.includes('\0');
}

async function body(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > 10_000) return {};
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString()) ?? {};
  } catch {
    return {};
  }
}

function sendFile(request, response, name, type) {
  const compressed = /\bbr\b/.test(request.headers['accept-encoding'] || '');
  const bytes = fs.readFileSync(path.join(__dirname, 'dist', compressed ? `${name}.br` : name));
  response.writeHead(200, {
    'content-type': `${type}; charset=utf-8`,
    'content-length': bytes.length,
    vary: 'accept-encoding',
    ...(compressed && { 'content-encoding': 'br' }),
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}

function json(response, status, value) {
  const text = JSON.stringify(value);
  response
    .writeHead(status, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'content-length': Buffer.byteLength(text),
    })
    .end(text);
}
