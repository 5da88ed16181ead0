// The files of the embedded server: its folder, password and data. Everything here is safe in a race and under kill -9.
import { execFile, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { promisify } from 'node:util';
import { makePassableDirectory, passageCommand } from '../../../core/directory';
import { StartupError } from '../../../core/startup_error';
import { type Binaries, findBinaries } from './binaries';
import { type EngineUser, changeOwner, reaches } from './engine_user';

export interface Cluster {
  bin: string;
  engine: EngineUser;
  data: string;
  /** A named pipe. Processes that need the server hold its writing end (supervisor.ts). */
  fifo: string;
  log: string;
  password: string;
  passwordFile: string;
}

const LEFTOVER_MS = 300_000;

/** Creates the folder, the password, the pipe and the data of the server below `dataDir`, unless they exist. */
export async function prepareCluster(dataDir: string, engine: EngineUser, chosen?: string): Promise<Cluster> {
  const home = prepareDirectory(dataDir, engine);
  sweep(home);
  const existing = majorsIn(home);
  const binaries = findBinaries({ engine, home, chosen, existing });
  requireSameMajor(home, existing, binaries.major);
  const passwordFile = path.join(home, 'password');
  const cluster: Cluster = {
    bin: binaries.bin,
    engine,
    data: path.join(home, `data-${binaries.major}`),
    fifo: path.join(home, 'alive'),
    log: path.join(home, 'postgres.log'),
    password: readPassword(home, passwordFile),
    passwordFile,
  };
  makeFifo(cluster.fifo);
  if (!fs.existsSync(cluster.data)) await initialize(home, cluster, binaries);
  requireSameOwner(cluster);
  return cluster;
}

function prepareDirectory(dataDir: string, engine: EngineUser): string {
  const wanted = path.resolve(dataDir, 'postgres');
  makePassableDirectory(path.resolve(dataDir));
  makePassableDirectory(wanted);
  const home = fs.realpathSync(wanted);
  if (reaches(engine, home)) return home;
  throw new StartupError(
    `PostgreSQL runs as the user ${engine.name}, who cannot reach ${home}: let other users enter each folder above ` +
      `(${passageCommand(home) ?? 'chmod o+x'}), or choose another PLATFORM_DATA_DIR`,
  );
}

/**
 * Removes what killed processes left half made; not at once, since an initdb outlives its killed parent for some
 * seconds.
 */
function sweep(home: string): void {
  for (const name of fs.readdirSync(home)) {
    if (!/^(?:init|copy)-/.test(name)) continue;
    const made = fs.statSync(path.join(home, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (made < Date.now() - LEFTOVER_MS)
      fs.rmSync(path.join(home, name), { recursive: true, force: true, maxRetries: 3 });
  }
}

function majorsIn(home: string): number[] {
  const majors = fs.readdirSync(home).map((name) => Number(/^data-(\d+)$/.exec(name)?.[1]));
  return majors.filter((major) => !Number.isNaN(major));
}

/** An empty start next to the data of another major version would look like the loss of all rows. */
function requireSameMajor(home: string, existing: number[], major: number): void {
  if (!existing.length || existing.includes(major)) return;
  throw new StartupError(
    `${home} holds the data of PostgreSQL ${existing.join(', ')}, but this is PostgreSQL ${major}: set PG_BIN to ` +
      'the programs of the old version, or dump with them and move the old folder away',
  );
}

function requireSameOwner({ data, engine }: Cluster): void {
  const owner = fs.statSync(data).uid;
  if (owner === engine.uid) return;
  throw new StartupError(
    `${data} belongs to uid ${owner}, but PostgreSQL runs as ${engine.name}: change its owner (chown -R), or ` +
      'PLATFORM_POSTGRES_USER',
  );
}

/** The password is written to a temporary file and hard-linked, so that no process reads a partial one. */
function readPassword(home: string, file: string): string {
  if (!fs.existsSync(file)) {
    const aside = fs.mkdtempSync(path.join(home, 'init-'));
    const draft = path.join(aside, 'password');
    fs.writeFileSync(draft, randomBytes(24).toString('hex'), { mode: 0o600, flush: true });
    ifMissing(() => fs.linkSync(draft, file));
    fs.rmSync(aside, { recursive: true });
    syncFolder(home);
  }
  return fs.readFileSync(file, 'utf8').trim();
}

function makeFifo(fifo: string): void {
  if (fs.existsSync(fifo)) return;
  const run = spawnSync('mkfifo', ['-m', '600', fifo], { encoding: 'utf8' });
  if (!fs.existsSync(fifo))
    throw new StartupError(`cannot make the named pipe ${fifo}: ${firstLine(run.stderr) || 'mkfifo failed'}`);
}

/** initdb aside, then a rename: a killed initdb leaves no half-made data, and of several racing processes one wins. */
async function initialize(home: string, cluster: Cluster, { bin, major }: Binaries): Promise<void> {
  const aside = fs.mkdtempSync(path.join(home, 'init-'));
  fs.chmodSync(aside, 0o711);
  const [draft, passwordFile] = [path.join(aside, 'data'), path.join(aside, 'password')];
  fs.mkdirSync(draft, { mode: 0o700 });
  fs.writeFileSync(passwordFile, cluster.password, { mode: 0o600 });
  for (const file of [draft, passwordFile]) changeOwner(cluster.engine, file);
  await initdb(bin, major, draft, passwordFile, cluster.engine);
  ifMissing(() => fs.renameSync(draft, cluster.data));
  fs.rmSync(aside, { recursive: true });
  syncFolder(home);
}

async function initdb(
  bin: string,
  major: number,
  data: string,
  passwordFile: string,
  engine: EngineUser,
): Promise<void> {
  // The builtin provider sorts alike on every machine; it exists since version 17.
  const locale = major >= 17 ? ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : ['--locale=C'];
  const flags = [
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'scram-sha-256',
    '--pwfile',
    passwordFile,
    '-E',
    'UTF8',
    ...locale,
  ];
  try {
    await promisify(execFile)(path.join(bin, 'initdb'), flags, engine.spawn);
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw new StartupError(`initdb failed: ${firstLine(stderr) || firstLine(message)}`);
  }
}

function ifMissing(make: () => void): void {
  try {
    make();
  } catch (error) {
    if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

/** Without it, a power failure can undo a rename that later commits rely on. */
function syncFolder(folder: string): void {
  const handle = fs.openSync(folder, 'r');
  fs.fsyncSync(handle);
  fs.closeSync(handle);
}

function firstLine(text: string | undefined): string {
  return (text ?? '').trim().split('\n')[0] ?? '';
}
