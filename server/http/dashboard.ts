// The dashboard at `/`: static files of clients/dashboard, served from memory. Each page of it is the same document,
// which finds by the path what to show.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import express, { type Request, type Response, type Router } from 'express';
import Negotiator from 'negotiator';
import { dashboardFolder } from '../dashboard_folder';
import { formPage } from '../plain_page';

interface File {
  type: string;
  /** Coding -> content; `identity` always. */
  bodies: Map<string, Buffer>;
  digest: string;
}

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** Ending of a file that the build has compressed -> its coding. */
const CODINGS: Record<string, string> = { '.br': 'br', '.gz': 'gzip' };
const PREFERENCE = ['br', 'gzip', 'identity'];
const DOCUMENT = 'index.html';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

/** The terminal of a run: xterm writes style elements, and colours of single characters into attributes. */
const TERMINAL = /^\/applications\/[^/]+\/runs\/[^/]+\/terminal\/?$/;

const HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  // With no-referrer, browsers would send no origin with the requests of the page.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};
const DOCUMENT_HEADERS = {
  ...HEADERS,
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
  'Cache-Control': 'no-cache',
};
// Their names have a digest of their content.
const ASSET_HEADERS = { ...HEADERS, 'Cache-Control': 'public, max-age=31536000, immutable' };

interface Dashboard {
  /** Files of the page, and `/` for browsers. */
  files: Router;
  /** The document for every other path, for browsers: behind all routes of the API. */
  pages: Router;
}

/**
 * @param folder with the built files; they are read once, now
 * @param elsewhere other origins that the pages may call, such as that of object storage; asked with each document
 */
export function dashboard(folder = dashboardFolder(), elsewhere: () => readonly string[] = () => []): Dashboard {
  const found = readFiles(folder);
  const [files, pages] = [express.Router(), express.Router()];
  files.get('/assets/:name', (request, response, next) => {
    const file = found.get(`assets/${request.params.name}`);
    if (file) sendFile(request, response, file, ASSET_HEADERS);
    else next();
  });
  files.get('/', (request, response) => {
    response.vary('Accept');
    if (acceptsPages(request)) sendDocument(request, response, found.get(DOCUMENT), elsewhere());
    else response.redirect(302, '/v2/docs');
  });
  pages.get('*path', (request, response, next) => {
    if (!acceptsPages(request) || request.path.startsWith('/assets/')) return next();
    response.vary('Accept');
    sendDocument(request, response, found.get(DOCUMENT), elsewhere());
  });
  return { files, pages };
}

/** A browser that opens a page names HTML; programs that ask for anything get what they got before. */
function acceptsPages({ headers }: Request): boolean {
  return /\btext\/html\b/i.test(headers.accept ?? '');
}

function readFiles(folder: string): Map<string, File> {
  const files = new Map<string, File>();
  if (!existsSync(path.join(folder, DOCUMENT))) return files;
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, '/'));
  for (const name of names.filter((one) => !(path.extname(one) in CODINGS))) {
    const content = readFileSync(path.join(folder, name));
    const bodies = new Map([['identity', content]]);
    for (const [ending, coding] of Object.entries(CODINGS))
      if (names.includes(name + ending)) bodies.set(coding, readFileSync(path.join(folder, name + ending)));
    const digest = createHash('sha256').update(content).digest('base64url').slice(0, 22);
    files.set(name, { type: TYPES[path.extname(name)] ?? 'application/octet-stream', bodies, digest });
  }
  return files;
}

function sendDocument(
  request: Request,
  response: Response,
  file: File | undefined,
  elsewhere: readonly string[],
): void {
  if (file) return sendFile(request, response, file, documentHeaders(request.path, elsewhere));
  const { headers, html } = formPage(
    'The dashboard is not built',
    'The API is running. To build the dashboard, run the command below in the folder of the platform, and start again.',
    '<pre>npm ci &amp;&amp; npm run build</pre>' +
      '<p><a href="/v2/docs">Reference of the API</a> · <a href="/graphql">GraphQL</a></p>',
  );
  response.writeHead(503, headers).end(html);
}

function documentHeaders(path: string, elsewhere: readonly string[]): Record<string, string> {
  const policy = POLICY.replace("connect-src 'self'", ["connect-src 'self'", ...elsewhere].join(' '));
  const styled = TERMINAL.test(path) ? policy.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'") : policy;
  return { ...DOCUMENT_HEADERS, 'Content-Security-Policy': styled };
}

function sendFile(request: Request, response: Response, file: File, headers: Record<string, string>): void {
  const accepted = new Negotiator(request).encodings([...file.bodies.keys()]);
  const coding = PREFERENCE.find((one) => accepted.includes(one)) ?? 'identity';
  const etag = `"${file.digest}-${coding}"`;
  response.set(headers).set('ETag', etag).vary('Accept-Encoding');
  if (hasEtag(request.headers['if-none-match'], etag)) return void response.status(304).end();
  const body = file.bodies.get(coding) as Buffer;
  response.set({ 'Content-Type': file.type, 'Content-Length': String(body.length) });
  if (coding !== 'identity') response.set('Content-Encoding', coding);
  response.end(request.method === 'HEAD' ? undefined : body);
}

function hasEtag(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((one) => one.trim().replace(/^W\//, '') === etag) ?? false;
}
