// Serves the files of a site. It is copied into the build output, with the files that it needs.
//   node static_server.cjs <directory> [<directory> ...]      serves the first one with an index.html
'use strict';

const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { findSite, isFile, isServed, namesPage, typeOf, walk } = require('./static_files.cjs');
const { REWRITE, matchRule, readRules } = require('./static_redirects.cjs');
const { PACK, chooseVariant, openVariants } = require('./static_variants.cjs');

/**
 * @typedef {http.IncomingMessage} Request
 * @typedef {http.ServerResponse} Response
 * @typedef {import('./static_redirects.cjs').Rule} Rule
 * @typedef {import('./static_variants.cjs').Entry} Entry
 * @typedef {import('./static_variants.cjs').Found} Found
 * @typedef {import('./static_variants.cjs').Variant} Variant
 * @typedef {Record<string, string | number> & { etag: string, 'last-modified': string }} Headers
 */

const site = requireSite(process.argv.slice(2));
const rules = [...requireRules(), ...fallbackRules()];
const forcedRules = rules.filter(({ isForced }) => isForced);
const variantsOf = openVariants(site);
const server = http.createServer((request, response) => {
  try {
    respond(request, response);
  } catch (error) {
    console.error(error);
    if (!response.headersSent) sendText(response, 500, 'Internal server error');
    else response.destroy();
  }
});
const address = process.env.HOST || process.env.SVC_LISTEN_ADDRESS || '127.0.0.1';
server.listen(Number(process.env.PORT) || 8080, address, () =>
  console.log(`Serving files on port ${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`),
);

// Open requests are completed; idle connections are closed.
process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});

/** @param {string[]} directories */
function requireSite(directories) {
  const found = findSite(directories);
  if (found !== null) return found;
  console.error(
    `There is no index.html in ${directories.join(', ') || 'any directory'}. ` +
      'To run a server of your own instead, add a Procfile.',
  );
  process.exit(1);
}

function requireRules() {
  try {
    return readRules(site);
  } catch (error) {
    console.error(/** @type {Error} */ (error).message);
    process.exit(1);
  }
}

/** Fallback for unknown pages: 200.html, else the index.html of a site that has only this one. */
function fallbackRules() {
  const has = (/** @type {string} */ name) => isFile(path.join(site.root, name));
  const page = has('200.html') ? '/200.html' : !has('404.html') && hasOneIndex() ? '/index.html' : null;
  if (page === null) return [];
  console.log(`Paths of pages that are no files are answered with ${page}.`);
  return [{ parts: ['*'], to: page, status: REWRITE, isForced: false }];
}

function hasOneIndex() {
  let count = 0;
  walk(site, (name) => {
    if (path.posix.basename(name) === 'index.html') count += 1;
    return count < 2;
  });
  return count === 1;
}

/** @type {(request: Request, response: Response) => void} */
function respond(request, response) {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return sendText(response, 405, 'Method not allowed', { allow: 'GET, HEAD' });
  const [rawPath, query] = split(request.url ?? '', '?');
  const requested = decodePath(rawPath);
  if (requested === null) return sendText(response, 400, 'Bad request');
  const parts = requested.split('/').filter(Boolean);
  const forced = matchRule(forcedRules, parts);
  if (forced !== null) return apply(forced, { request, response, query, isPage: true });
  const found = find(parts, requested.endsWith('/'));
  if (found === 'directory') return redirect(response, 301, `${rawPath}/`, query);
  if (found !== null && found !== 'refused') return send(request, response, 200, found);
  const rule = matchRule(rules, parts);
  if (rule === null) return notFound(request, response);
  return apply(rule, { request, response, query, isPage: found === null && namesPage(parts) });
}

/**
 * Scripts and images are not replaced: a page in their place would be parsed as one, and cached under its name.
 * @param {Rule} rule
 * @param {{ request: Request, response: Response, query?: string, isPage: boolean }} exchange
 */
function apply(rule, { request, response, query, isPage }) {
  if (rule.status >= 300 && rule.status < 400) return redirect(response, rule.status, rule.to, query);
  const found = findPath(split(rule.to, '?')[0]);
  if (rule.status !== REWRITE) return notFound(request, response, found);
  if (found === null || (found.file.endsWith('.html') && !isPage)) return notFound(request, response);
  return send(request, response, 200, found);
}

/** @type {(request: Request, response: Response, page?: Found | null) => void} */
function notFound(request, response, page = findPath('/404.html')) {
  return page === null ? sendText(response, 404, 'Not found') : send(request, response, 404, page);
}

/** @type {(text: string, mark: string) => [string, string | undefined]} */
function split(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

/**
 * The decoded path; null for an invalid path.
 * @param {string} rawPath
 */
function decodePath(rawPath) {
  try {
    const requested = decodeURIComponent(rawPath);
    return requested.startsWith('/') && !requested.includes('\0') ? requested : null;
  } catch {
    return null;
  }
}

/** @param {string} rawPath */
function findPath(rawPath) {
  const requested = decodePath(rawPath);
  const found = requested === null ? null : find(requested.split('/').filter(Boolean), requested.endsWith('/'));
  return found === 'directory' || found === 'refused' ? null : found;
}

/**
 * A file; 'directory' for a directory requested without a trailing slash; 'refused' for a file that must not be served;
 * null for a missing file.
 * @param {string[]} parts
 * @param {boolean} isDirectory
 */
function find(parts, isDirectory) {
  if (parts.some((part, i) => part.startsWith('.') && !(part === '.well-known' && i === 0))) return 'refused';
  const base = parts.join('/');
  const index = parts.length === 0 ? 'index.html' : `${base}/index.html`;
  const first = isDirectory ? look(index) : look(base);
  if (first !== null && first !== 'refused') return first;
  if (isDirectory && isFile(path.join(site.root, base))) return 'refused';
  const page = parts.length === 0 ? null : look(`${base}.html`);
  if (page !== null) return page;
  return first === null && !isDirectory && isFound(look(index)) ? 'directory' : first;
}

/** @param {ReturnType<typeof look>} found */
function isFound(found) {
  return found !== null && found !== 'refused';
}

/**
 * Resolves links, and excludes files that are not part of the site and links to the outside.
 * @param {string} name
 * @returns {Found | 'refused' | null}
 */
function look(name) {
  try {
    const real = fs.realpathSync(path.join(site.root, name));
    const stat = fs.statSync(real);
    if (!stat.isFile()) return null;
    const isInside = real.startsWith(site.root === '/' ? '/' : `${site.root}/`);
    const isShown = isInside && isServed(site, name) && isServed(site, path.relative(site.root, real));
    return isShown ? { file: real, name, stat } : 'refused';
  } catch {
    return null;
  }
}

/**
 * The target starts with exactly one slash: //example.com/ would be another host, and so would /\example.com/.
 * @type {(response: Response, status: number, to: string, query?: string) => void}
 */
function redirect(response, status, to, query) {
  const location = to.startsWith('/') ? to.replaceAll('\\', '%5C').replace(/^\/+/, '/') : to;
  const more = query === undefined || location.includes('?') ? '' : `?${query}`;
  response.writeHead(status, { location: location + more, 'content-length': 0 }).end();
}

/** @type {(request: Request, response: Response, status: number, found: Found) => void} */
function send(request, response, status, found) {
  const entry = variantsOf(found);
  const ranges = status === 200 && request.method === 'GET' ? request.headers.range : undefined;
  // Ranges apply to the uncompressed file: ranges of different forms do not fit together.
  const variant = ranges === undefined ? chooseVariant(request.headers['accept-encoding'], entry) : null;
  const size = variant === null ? found.stat.size : variant.bytes;
  const headers = headersOf(found, entry, variant);
  if (status === 200 && isFresh(request, headers)) return notModified(response, headers);
  headers['accept-ranges'] = 'bytes';
  const range = ranges === undefined ? null : rangeOf(request, size, headers);
  if (range === 'none') return sendText(response, 416, 'Range not satisfiable', { 'content-range': `bytes */${size}` });
  if (range) headers['content-range'] = `bytes ${range.start}-${range.end}/${size}`;
  headers['content-length'] = range ? range.end - range.start + 1 : size;
  response.writeHead(range ? 206 : status, headers);
  if (request.method === 'HEAD' || headers['content-length'] === 0) return void response.end();
  const stream =
    variant === null
      ? fs.createReadStream(found.file, range || {})
      : fs.createReadStream(variant.file ?? PACK, { start: variant.offset, end: variant.offset + size - 1 });
  stream.on('error', () => response.destroy());
  response.on('close', () => stream.destroy());
  stream.pipe(response);
}

/** @type {(found: Found, entry: Entry, variant: Variant | null) => Headers} */
function headersOf({ name, stat }, entry, variant) {
  const version = entry.digest ?? `${stat.size.toString(36)}-${Math.floor(stat.mtimeMs).toString(36)}`;
  /** @type {Headers} */
  const headers = {
    'content-type': typeOf(name),
    etag: `"${version}${variant === null ? '' : `-${variant.coding}`}"`,
    'last-modified': stat.mtime.toUTCString(),
    'cache-control': hasDigest(name) ? 'public, max-age=31536000, immutable' : 'public, max-age=0, must-revalidate',
    'x-content-type-options': 'nosniff',
  };
  if (variant !== null) headers['content-encoding'] = variant.coding;
  if (entry.variants.length > 0) headers.vary = 'accept-encoding';
  return headers;
}

/**
 * File names with a digest, as written by bundlers, are immutable. A long word is not a digest.
 * @param {string} name
 */
function hasDigest(name) {
  if (!/(?:^|\/)(?:assets|static|_next|_nuxt|_astro|_app\/immutable)\//.test(name)) return false;
  const [, digest = '', suffix = ''] = /[.-](\w{8}|[0-9a-f]{8,64})(?:\.chunk)?\.(\w+)$/.exec(name) ?? [];
  if (!/^(?:m?js|css|woff2?|png|jpe?g|svg|webp|avif)$/.test(suffix)) return false;
  const hasDigit = /\d/.test(digest) && /[a-z]/i.test(digest);
  const isMixed = /[a-z].*[A-Z]|[A-Z]{2}.*[a-z]/.test(digest) && /^(?:m?js|css)$/.test(suffix);
  return (hasDigit && /[A-Z]|^[0-9a-f]+$/.test(digest)) || isMixed;
}

/** @type {(response: Response, headers: Headers) => void} */
function notModified(response, headers) {
  const { 'content-type': _type, 'content-encoding': _encoding, ...kept } = headers;
  response.writeHead(304, kept).end();
}

/**
 * RFC 9110 section 13.2.2.
 * @type {(request: Request, headers: Headers) => boolean}
 */
function isFresh(request, headers) {
  const tags = request.headers['if-none-match'];
  if (tags !== undefined)
    return tags.trim() === '*' || tags.split(',').some((tag) => tag.trim().replace(/^W\//, '') === headers.etag);
  const since = Date.parse(request.headers['if-modified-since'] || '');
  return since >= Date.parse(headers['last-modified']);
}

/**
 * One byte range; null for the whole file, 'none' for a range beyond its end (RFC 9110 section 14).
 * @type {(request: Request, size: number, headers: Headers) => { start: number, end: number } | 'none' | null}
 */
function rangeOf(request, size, headers) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range || '');
  const condition = request.headers['if-range'];
  if (!match || (match[1] === '' && match[2] === '')) return null;
  // The date is the same for all forms, so it does not identify the form that the client has a part of.
  const isSame = condition === headers.etag || (!headers.vary && condition === headers['last-modified']);
  if (condition !== undefined && !isSame) return null;
  const isSuffix = match[1] === '';
  const start = isSuffix ? Math.max(size - Number(match[2]), 0) : Number(match[1]);
  const end = isSuffix || match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (isSuffix && Number(match[2]) === 0) return 'none';
  if (!isSuffix && match[2] !== '' && Number(match[2]) < Number(match[1])) return null;
  return start > end ? 'none' : { start, end };
}

/** @type {(response: Response, status: number, text: string, headers?: http.OutgoingHttpHeaders) => void} */
function sendText(response, status, text, headers = {}) {
  response
    .writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': text.length + 1, ...headers })
    .end(`${text}\n`);
}
