// The files of the repository, without asking git: it need not be installed.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(__dirname, '../../..');
/** `sh WITHOUT_DISKS COMMAND...` in a mount namespace of its own keeps no disk of another test in use. */
export const WITHOUT_DISKS = path.join(ROOT, 'test/support/processes/without_disks.sh');

/** Names that .gitignore leaves out, anywhere in the tree. */
const ignored = new Set([
  '.git',
  ...readFileSync(path.join(ROOT, '.gitignore'), 'utf8')
    .split('\n')
    .map((line) => line.trim().replace(/^\/|\/$/g, ''))
    .filter(Boolean),
]);

/** Paths of all files, relative to the root. */
export function repositoryFiles(): string[] {
  return walk('').sort();
}

export function readSource(file: string): string {
  return readFileSync(path.join(ROOT, file), 'utf8');
}

/** Headings of a page as the addresses that Git hosts make of them. */
export function anchorsOf(page: string): string[] {
  return [...readSource(page).matchAll(/^#+ (.+)$/gm)].map(([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** Written by a program, or by somebody else. */
export function isForeign(file: string): boolean {
  return (
    /^(schema|resolvers)\/types\.ts$/.test(file) ||
    /\.min\.(js|css)$/.test(file) ||
    file.endsWith('package-lock.json') ||
    file.startsWith('test/golden/') ||
    /^test\/starters\/[^/]+\//.test(file)
  );
}

function walk(folder: string): string[] {
  const entries = readdirSync(path.join(ROOT, folder), { withFileTypes: true }).filter(
    ({ name }) => !ignored.has(name) && !ignored.has(path.join(folder, name)),
  );
  return entries.flatMap((entry) =>
    entry.isDirectory() ? walk(path.join(folder, entry.name)) : entry.isFile() ? [path.join(folder, entry.name)] : [],
  );
}
