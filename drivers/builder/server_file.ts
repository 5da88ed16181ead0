// Distinguishes Node.js programs from browser scripts by the content of the file.
import path from 'node:path';
import type { SourceFiles } from './source_files';

const names = ['server', 'app', 'index', 'main'];
const endings = ['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts'];
const listens = /\.listen\s*\(|\bserve\s*\(|\bcreateServer\s*\(/;
const isOutsideOfBrowsers = new RegExp(
  [
    /\brequire\s*\(\s*['"`]/,
    /\bfrom\s*['"](?:node:|https?['"]|http2['"]|net['"]|express|fastify|koa|hono|@hapi|@hono|restify|polka)/,
    /\bimport\s*(?:\(\s*)?['"](?:node:|https?['"])/,
    /\bprocess\.(?:env|argv)\b/,
    /\b(?:Deno|Bun)\.serve\s*\(/,
    /\bfrom\s*['"](?:jsr:|npm:|https:\/\/deno\.land)/,
  ]
    .map(({ source }) => source)
    .join('|'),
);
/** Syntax that Node.js does not remove (https://nodejs.org/api/typescript.html#typescript-features). */
const compiled =
  /^[ \t]*(?:export\s+)?(?:const\s+)?enum\s|^[ \t]*(?:export\s+)?namespace\s|^[ \t]*@\w+\(|\(\s*(?:private|public)\s/m;
/** An import of a file without its suffix, or of one that a compiler would make. */
const unresolved = /\b(?:from|import)\s*(?:\(\s*)?['"]\.{1,2}\/(?:[^'"]*\/)?(?:[^'"./]+|[^'"/]+\.js)['"]/;

/** The file that starts a server; null where no file with a usual name does. */
export async function findServerFile(
  files: SourceFiles,
  directories = ['.'],
  isWanted: (file: string) => boolean = () => true,
): Promise<string | null> {
  for await (const file of usualFiles(files, directories)) {
    if (!isWanted(file)) continue;
    // A file called server.js is not a browser script.
    if (/^server\.[mc]?js$/.test(file) || (await opensPort(files, file))) return file;
  }
  return null;
}

/** The first file with a usual name, whatever it does. */
export async function findUsualFile(files: SourceFiles, directories: string[]): Promise<string | null> {
  for await (const file of usualFiles(files, directories)) return file;
  return null;
}

async function* usualFiles(files: SourceFiles, directories: string[]): AsyncGenerator<string> {
  for (const directory of directories)
    for (const name of names)
      for (const ending of endings) {
        const file = path.posix.join(directory, `${name}${ending}`);
        if (await files.has(file)) yield file;
      }
}

/** Whether the file opens a port, judged by its calls. A file too large to be written by hand is not a server. */
export async function isNodeServer(files: SourceFiles, file: string): Promise<boolean> {
  if (/^server\.[mc]?ts$/.test(path.posix.basename(file)) && (await files.has(file))) return true;
  return opensPort(files, file);
}

/** Judged by its calls. */
export async function opensPort(files: SourceFiles, file: string): Promise<boolean> {
  const text = (await files.read(file).catch(() => null)) ?? '';
  return listens.test(text) && isOutsideOfBrowsers.test(text);
}

/** By the suffix. */
export function isTypeScript(file: string): boolean {
  return /\.[mc]?ts$/.test(file);
}

/** Whether Node.js runs a file of TypeScript as it is, judged by the file itself. */
export async function isRunnableTypeScript(files: SourceFiles, file: string): Promise<boolean> {
  const text = (await files.read(file).catch(() => null)) ?? '';
  if (/\b(?:Deno|Bun)\.\w|\bfrom\s*['"](?:jsr:|npm:|https:|bun)/.test(text)) return false;
  return !compiled.test(text) && !unresolved.test(text) && !importsTypes(text);
}

/** Imports of types without the word `type`: Node.js looks for them, and does not start. */
function importsTypes(text: string): boolean {
  const statements = /^[ \t]*import\b(?!\s+type\b)[^;'"{}]{0,200}\{([^{}]{0,2000})\}\s*from\b.*$/gm;
  const names = new Set(
    [...text.matchAll(statements)]
      .flatMap(([, list = '']) => list.split(','))
      .filter((one) => !/^\s*type\s/.test(one))
      .map((one) => one.trim().split(/\W+/).at(-1) ?? ''),
  );
  const rest = text.replace(statements, '');
  /** Whether all uses of a name are those of a type. */
  const isTypeAlone = new Map<string, boolean>();
  for (const { 0: word, index } of rest.matchAll(/\w+/g))
    if (names.has(word) && isTypeAlone.get(word) !== false)
      isTypeAlone.set(word, isType(rest.slice(Math.max(0, index - 20), index)));
  return [...isTypeAlone.values()].includes(true);
}

/** Whether a name stands where only a type can. */
function isType(before: string): boolean {
  return /(?:[:<|&]|\b(?:as|implements|keyof|satisfies))\s*$/.test(before);
}

/** Whether the file exports what Bun serves by itself: an application with the method `fetch`. */
export async function isServedByBun(files: SourceFiles, file: string): Promise<boolean> {
  const text = (await files.read(file).catch(() => null)) ?? '';
  return /^export default\b/m.test(text) && /\bnew (?:Hono|Elysia)\b|\bfetch\b/.test(text);
}
