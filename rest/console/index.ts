// The console at /v2/docs and GraphiQL at /graphql: every file comes from here, nothing from another host.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { memoize } from '../../core/memoize';
import type { OpenApiDocument } from '../openapi/document';
import { referencePage } from './reference';

interface Page {
  type: string;
  body: Buffer;
  headers: Record<string, string>;
}

const TYPES: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  png: 'image/png',
};

const SWAGGER = dirname(require.resolve('swagger-ui-dist/package.json'));

/** Name in the address -> file. */
const ASSETS: Record<string, string> = {
  'swagger-ui-bundle.js': join(SWAGGER, 'swagger-ui-bundle.js'),
  'swagger-ui.css': join(SWAGGER, 'swagger-ui.css'),
  'favicon.png': join(SWAGGER, 'favicon-32x32.png'),
  ...inFolder('graphiql', ['react.min.js', 'react-dom.min.js', 'graphiql.min.js', 'graphiql.min.css']),
  ...inFolder('browser', ['docs.js', 'docs_spec.js', 'docs.css', 'graphiql_page.js', 'graphiql_page.css']),
};

// Both pages set styles from script, which needs 'unsafe-inline' for styles; scripts are only ever files of ours.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PAGE_HEADERS = {
  'Content-Security-Policy': POLICY,
  'Cache-Control': 'no-cache',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
};

// The URL of an asset contains a digest of all assets, so its content never changes.
const ASSET_HEADERS = { 'Cache-Control': 'public, max-age=31536000, immutable', 'X-Content-Type-Options': 'nosniff' };

/**
 * Pages and assets below /v2/docs by path, compressed for clients that accept it; null for any other path. All are kept
 * in memory.
 * @param document builds the OpenAPI document, at the first request for the reference
 */
export function consolePages(document: () => OpenApiDocument): (path: string, encodings: string) => Page | null {
  const { base, files } = assets();
  const pages = new Map<string, () => Page>();
  for (const [name, body] of files)
    pages.set(`${base}/${name}`, () => ({ type: typeOf(name), body, headers: ASSET_HEADERS }));
  const reference = memoize((): Page => {
    const page = htmlPage('docs.html', base);
    return { ...page, body: Buffer.from(referencePage(document(), page.body.toString())) };
  });
  pages.set('/v2/docs', reference).set('/v2/docs/', reference);
  const compressed = new Map<string, Page>();
  return (path, encodings) => {
    const page = pages.get(path)?.();
    if (!page || page.body.length < COMPRESSED_FROM_BYTES || !/\bgzip\b/.test(encodings)) return page ?? null;
    const found = compressed.get(path) ?? compress(page);
    compressed.set(path, found);
    return found;
  };
}

const COMPRESSED_FROM_BYTES = 4096;

function compress({ type, body, headers }: Page): Page {
  return { type, body: gzipSync(body), headers: { ...headers, 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' } };
}

/** GraphiQL, for GET /graphql of a browser. consolePages() serves its assets. */
export function graphiqlPage(): Page {
  return htmlPage('graphiql_page.html', assets().base);
}

let loaded: { base: string; files: Map<string, Buffer> } | undefined;

function assets(): { base: string; files: Map<string, Buffer> } {
  if (loaded) return loaded;
  const files = new Map(Object.entries(ASSETS).map(([name, file]) => [name, readFileSync(file)]));
  const digest = createHash('sha256');
  for (const [name, body] of files) digest.update(name).update(body);
  loaded = { base: `/v2/docs/assets/${digest.digest('hex').slice(0, 16)}`, files };
  return loaded;
}

function htmlPage(name: string, base: string): Page {
  const text = readFileSync(join(__dirname, 'browser', name), 'utf8').replaceAll('{{assets}}', base);
  return { type: typeOf(name), body: Buffer.from(text), headers: PAGE_HEADERS };
}

function typeOf(name: string): string {
  return TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
}

function inFolder(folder: string, names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, join(__dirname, folder, name)]));
}
