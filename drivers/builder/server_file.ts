// Distinguishes Node.js programs from browser scripts by the content of the file.
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

/** The file that starts a server; null where no file with a usual name does. */
export async function findServerFile(files: SourceFiles): Promise<string | null> {
  for (const name of names)
    for (const ending of endings) {
      const file = `${name}${ending}`;
      // A file called server.js is not a browser script.
      if ((await files.has(file)) && (name === 'server' || (await isNodeServer(files, file)))) return file;
    }
  return null;
}

/** Whether the file opens a port, judged by its calls. A file too large to be written by hand is not a server. */
export async function isNodeServer(files: SourceFiles, file: string): Promise<boolean> {
  const text = await files.read(file).catch(() => null);
  if (text === null) return false;
  return /^server\.[mc]?ts$/.test(path.posix.basename(file)) || (listens.test(text) && isOutsideOfBrowsers.test(text));
}
