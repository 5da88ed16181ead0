// Serves the files of a site. It is copied into what is built and needs Node.js and nothing else.
//   node static_server.js <directory> [<directory> ...]      the first one that has an index.html is served
'use strict';

const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');

const types = {
  '.html': 'text/html; charset=utf-8',
  '.htm': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.xml': 'application/xml',
  '.txt': 'text/plain; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.csv': 'text/csv; charset=utf-8',
  '.ics': 'text/calendar; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.avif': 'image/avif',
  '.ico': 'image/x-icon',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
  '.ttf': 'font/ttf',
  '.otf': 'font/otf',
  '.mp3': 'audio/mpeg',
  '.ogg': 'audio/ogg',
  '.mp4': 'video/mp4',
  '.webm': 'video/webm',
  '.pdf': 'application/pdf',
  '.zip': 'application/zip',
  '.wasm': 'application/wasm',
};
const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
];

const root = findRoot(process.argv.slice(2));
const server = http.createServer((request, response) => {
  try {
    answer(request, response);
  } catch (error) {
    console.error(error);
    if (!response.headersSent) plain(response, 500, 'Internal server error');
    else response.destroy();
  }
});
server.listen(Number(process.env.PORT) || 8080, process.env.HOST || '127.0.0.1', () =>
  console.log(`Serving files on port ${server.address().port}`),
);

// Open requests are finished; connections that only wait are closed.
process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});

function findRoot(directories) {
  const found = directories.find((directory) => fs.existsSync(path.join(directory, 'index.html')));
  if (found) return fs.realpathSync(found);
  console.error(
    `There is no index.html in ${directories.join(', ') || 'any directory'}. ` +
      'To run a server of your own instead, add a Procfile.',
  );
  process.exit(1);
}

function answer(request, response) {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return plain(response, 405, 'Method not allowed', { allow: 'GET, HEAD' });
  const [rawPath, query] = split(request.url, '?');
  const wanted = decoded(rawPath);
  if (wanted === null) return plain(response, 400, 'Bad request');
  const file = find(wanted);
  if (file && file.isDirectory) return redirect(response, `${rawPath}/${query === undefined ? '' : `?${query}`}`);
  if (file) return send(request, response, 200, file);
  const fallback = find('/200.html');
  if (fallback) return send(request, response, 200, fallback);
  const page = find('/404.html');
  return page ? send(request, response, 404, page) : plain(response, 404, 'Not found');
}

function split(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

/** The path as it is meant; null where it is no path of ours. */
function decoded(rawPath) {
  try {
    const wanted = decodeURIComponent(rawPath);
    return wanted.startsWith('/') && !/[\0\\]/.test(wanted) ? wanted : null;
  } catch {
    return null;
  }
}

/**
 * A file, or a directory that was requested without its last slash. Nothing that begins with a dot, nothing behind a
 * link that leads out.
 */
function find(wanted) {
  const parts = wanted.split('/').filter(Boolean);
  if (parts.some((part) => part.startsWith('.') && part !== '.well-known')) return null;
  const base = path.join(root, ...parts);
  if (wanted.endsWith('/')) return regular(path.join(base, 'index.html'));
  return regular(base) || regular(`${base}.html`) || (regular(path.join(base, 'index.html')) && { isDirectory: true });
}

function regular(file) {
  try {
    const real = fs.realpathSync(file);
    const stat = fs.statSync(real);
    return stat.isFile() && real.startsWith(root + path.sep) ? { file: real, name: file, stat } : null;
  } catch {
    return null;
  }
}

// Begins with one slash, whatever was asked for: //example.com/ would be another host.
function redirect(response, to) {
  response.writeHead(301, { location: to.replace(/^\/+/, '/'), 'content-length': 0 }).end();
}

function send(request, response, status, found) {
  const chosen = compressed(request, found);
  const { size } = chosen.stat;
  const headers = headersOf(found, chosen);
  if (status === 200 && isFresh(request, headers)) return response.writeHead(304, headers).end();
  headers['accept-ranges'] = 'bytes';
  const range = status === 200 ? rangeOf(request, size, headers) : null;
  if (range === 'none') return plain(response, 416, 'Range not satisfiable', { 'content-range': `bytes */${size}` });
  if (range) headers['content-range'] = `bytes ${range.start}-${range.end}/${size}`;
  headers['content-length'] = range ? range.end - range.start + 1 : size;
  response.writeHead(range ? 206 : status, headers);
  if (request.method === 'HEAD' || headers['content-length'] === 0) return response.end();
  const stream = fs.createReadStream(chosen.file, range || {});
  stream.on('error', () => response.destroy());
  response.on('close', () => stream.destroy());
  stream.pipe(response);
}

function headersOf(found, { stat, encoding, varies }) {
  const headers = {
    'content-type': types[path.extname(found.name).toLowerCase()] || 'application/octet-stream',
    etag: `"${stat.size.toString(36)}-${Math.floor(stat.mtimeMs).toString(36)}${encoding ? `-${encoding}` : ''}"`,
    'last-modified': stat.mtime.toUTCString(),
    // Names with a digest in them never change what they mean.
    'cache-control':
      /[.-][0-9a-zA-Z_]{8,}\.(?:js|css|woff2?|png|jpe?g|svg|webp|avif)$/.test(found.name) &&
      /\/assets\/|\/static\/|\/_next\//.test(found.name)
        ? 'public, max-age=31536000, immutable'
        : 'public, max-age=0, must-revalidate',
    'x-content-type-options': 'nosniff',
  };
  if (encoding) headers['content-encoding'] = encoding;
  if (varies) headers.vary = 'accept-encoding';
  return headers;
}

/** The compressed file beside it, where the build has left one and the client takes it. */
function compressed(request, found) {
  const accepted = String(request.headers['accept-encoding'] || '')
    .split(',')
    .filter((one) => !/;\s*q=0(\.0*)?\s*$/.test(one))
    .map((one) => one.split(';')[0].trim());
  const beside = encodings
    .map(([encoding, suffix]) => ({ encoding, found: regular(found.file + suffix) }))
    .filter((one) => one.found);
  const chosen = beside.find(({ encoding }) => accepted.includes(encoding));
  return chosen
    ? { ...chosen.found, encoding: chosen.encoding, varies: true }
    : { ...found, varies: beside.length > 0 };
}

/** RFC 9110 section 13.2.2. */
function isFresh(request, headers) {
  const tags = request.headers['if-none-match'];
  if (tags !== undefined)
    return tags.trim() === '*' || tags.split(',').some((tag) => tag.trim().replace(/^W\//, '') === headers.etag);
  const since = Date.parse(request.headers['if-modified-since'] || '');
  return since >= Date.parse(headers['last-modified']);
}

/** One range of bytes; null for the whole, 'none' for a range beyond it (RFC 9110 section 14). */
function rangeOf(request, size, headers) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range || '');
  const condition = request.headers['if-range'];
  if (!match || (match[1] === '' && match[2] === '')) return null;
  if (condition !== undefined && condition !== headers.etag && condition !== headers['last-modified']) return null;
  const isSuffix = match[1] === '';
  const start = isSuffix ? Math.max(size - Number(match[2]), 0) : Number(match[1]);
  const end = isSuffix || match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (isSuffix && Number(match[2]) === 0) return 'none';
  if (!isSuffix && match[2] !== '' && Number(match[2]) < Number(match[1])) return null;
  return start > end ? 'none' : { start, end };
}

function plain(response, status, text, headers = {}) {
  response
    .writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': text.length + 1, ...headers })
    .end(`${text}\n`);
}
