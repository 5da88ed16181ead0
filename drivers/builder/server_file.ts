// Tells a program of Node.js from a script for browsers, where nothing but the file says which it is.
import path from 'node:path';
import type { SourceFiles } from './source_files';

const names = ['server', 'app', 'index', 'main'];
const endings = ['.js', '.mjs', '.cjs'];
const listens = /\.listen\s*\(|\bserve\s*\(|\bcreateServer\s*\(/;
const isOutsideOfBrowsers = new RegExp(
  [
    /\brequire\s*\(\s*['"`]/,
    /\bfrom\s*['"](?:node:|https?['"]|http2['"]|net['"]|express|fastify|koa|hono|@hapi|@hono|restify|polka)/,
    /\bimport\s*\(?\s*['"](?:node:|https?['"])/,
    /\bprocess\.(?:env|argv)\b/,
    /\b(?:Deno|Bun)\.serve\s*\(/,
    /\bfrom\s*['"](?:jsr:|npm:|https:\/\/deno\.land)/,
  ]
    .map(({ source }) => source)
    .join('|'),
);

/** The file that starts a server; null where none of the usual names is one. */
export async function findServerFile(files: SourceFiles): Promise<string | null> {
  for (const name of names)
    for (const ending of endings) {
      const file = `${name}${ending}`;
      // Nobody calls a script for browsers server.js.
      if ((await files.has(file)) && (name === 'server' || (await isNodeServer(files, file)))) return file;
    }
  return null;
}

/** Whether the file opens a port, by what it calls. A file that is too large to be written by hand is none. */
export async function isNodeServer(files: SourceFiles, file: string): Promise<boolean> {
  const text = await files.read(file).catch(() => null);
  if (text === null) return false;
  return /^server\.[mc]?ts$/.test(path.posix.basename(file)) || (listens.test(text) && isOutsideOfBrowsers.test(text));
}
