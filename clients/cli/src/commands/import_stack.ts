// import: the files of another platform as platform.yaml. The server reads them, and names what it needs beside them.
import * as fs from 'node:fs';
import path from 'node:path';
import { choice, maybe, sessionCommand, several, toggle, tuple } from '../command';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { printOne, printRows, type Row } from '../output/print';
import { clean } from '../output/terminal';
import type { Session } from '../session';

interface Imported extends Row {
  document: string;
  kind: string;
  not_taken_over: Row[];
  missing_files: string[];
}

const FILE = 'platform.yaml';
const KINDS = ['cloud_foundry', 'compose', 'digitalocean', 'fly', 'heroku', 'kamal', 'railway', 'render'] as const;
/** Of each line the first that is there. */
const NAMES = [
  ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'],
  ...[['render.yaml'], ['fly.toml'], ['railway.json', 'railway.toml'], ['.do/app.yaml', '.do/deploy.template.yaml']],
  ...[['config/deploy.yml'], ['manifest.yml'], ['heroku.yml'], ['app.json'], ['Procfile']],
];
const BYTES_MAX = 524_288;
/** A file may name others, which name others. */
const ROUNDS_MAX = 10;
const FOUND = {
  FILE: (row: Row) => `${String(row.path)}:${String(row.line)}`,
  'NOT TAKEN OVER': 'what',
  REASON: 'reason',
  INSTEAD: (row: Row) => String(row.nearest ?? ''),
};

export const importStack = sessionCommand<
  {
    readonly kind?: (typeof KINDS)[number] | undefined;
    readonly profile?: readonly string[] | undefined;
    readonly force?: boolean | undefined;
  },
  [string?]
>({
  brief: 'Write platform.yaml from files of another platform',
  text:
    'From compose.yaml, render.yaml, app.json with Procfile and heroku.yml, fly.toml, railway.json, ' +
    '.do/app.yaml, manifest.yml of Cloud Foundry, or config/deploy.yml of Kamal. Prints what was not taken ' +
    'over, and what does nearly the same. Values that look like secrets are left out: svc plan names them.',
  target: 'server',
  flags: {
    kind: choice('What the files are of', KINDS),
    profile: several('Profile of Compose whose services are taken over, too', 'name'),
    force: toggle(`Overwrite ${FILE}`),
  },
  args: tuple(maybe('folder', 'The folder, or one file; this folder without it')),
  async run(session, flags, given = '.') {
    const isPrinted = flags.json || flags.field !== undefined;
    if (!isPrinted && !flags.force && fs.lstatSync(FILE, { throwIfNoEntry: false }))
      throw usageFailure(`${FILE} is there already. Overwrite it with --force.`);
    const { folder, names } = beginningOf(given);
    const imported = await importFrom(session, folder, names, flags);
    if (isPrinted) return printOne(imported, flags);
    if (flags.force) fs.rmSync(FILE, { force: true });
    fs.writeFileSync(FILE, imported.document, { flag: 'wx' });
    if (imported.not_taken_over.length) printRows(imported.not_taken_over, FOUND, {});
    notice(`Wrote ${FILE}. See what it would change: svc plan`);
  },
});

async function importFrom(
  session: Session,
  folder: string,
  names: readonly string[],
  { kind, profile }: { kind?: string | undefined; profile?: readonly string[] | undefined },
): Promise<Imported> {
  const files = new Map<string, string | null>(names.map((name) => [name, readWithin(folder, name)]));
  for (let round = 1; ; round += 1) {
    const sent = [...files].flatMap(([name, content]) => (content === null ? [] : [{ path: name, content }]));
    const body = { files: sent, ...(kind !== undefined && { kind }), ...(profile && { profiles: profile }) };
    const found = await session.request<Imported>('POST', '/v2/stack/import', { body, key: 'without_key' });
    const more = found.missing_files.filter((name) => !files.has(name));
    for (const name of more) files.set(name, readWithin(folder, name));
    if (round >= ROUNDS_MAX || !more.some((name) => typeof files.get(name) === 'string')) return found;
  }
}

/** The folder, and the paths of the files in it from which the import begins. */
function beginningOf(given: string): { folder: string; names: string[] } {
  const stats = fs.statSync(given, { throwIfNoEntry: false });
  if (!stats) throw new Failure(`${given} is not there.`, EXIT.usage);
  if (!stats.isDirectory()) {
    const parent = path.dirname(path.resolve(given));
    const isBelow = ['config', '.do'].includes(path.basename(parent));
    const folder = isBelow ? path.dirname(parent) : parent;
    return { folder, names: [path.relative(folder, path.resolve(given)).split(path.sep).join('/')] };
  }
  const names = NAMES.flatMap((some) => some.filter((name) => fs.existsSync(path.join(given, name))).slice(0, 1));
  if (names.length) return { folder: given, names };
  throw new Failure(`${given} has no file that can be imported.`, EXIT.usage, [
    `Looked for ${NAMES.flat().join(', ')}`,
  ]);
}

/**
 * The text of a file within the folder, after all symbolic links; null for others, which the files may name: a file of
 * somebody else must not send what lies elsewhere on this computer.
 */
function readWithin(folder: string, name: string): string | null {
  const root = fs.realpathSync(folder);
  let file: string;
  try {
    file = fs.realpathSync(path.join(root, name));
  } catch {
    return null;
  }
  const inside = path.relative(root, file);
  if (inside.startsWith('..') || path.isAbsolute(inside)) {
    notice(`${clean(name)} leads out of the folder, so it is not read.`);
    return null;
  }
  const content = readRegular(file, name);
  try {
    return content && new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    throw usageFailure(`${name} is not UTF-8.`);
  }
}

/** The bytes of what was found there, and of no link that takes its place meanwhile; null for what is no file. */
function readRegular(file: string, name: string): Buffer | null {
  // Windows has neither of both; a pipe must not be waited for.
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
  if (!fs.statSync(file).isFile()) return null;
  const descriptor = openFile(file, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stats = fs.fstatSync(descriptor);
    if (!stats.isFile()) return null;
    if (stats.size > BYTES_MAX) throw usageFailure(`${name} has more than ${BYTES_MAX} bytes.`);
    return fs.readFileSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

function openFile(file: string, name: string, flags: number): number {
  try {
    return fs.openSync(file, flags);
  } catch (error) {
    throw usageFailure(`${name} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'}).`);
  }
}
