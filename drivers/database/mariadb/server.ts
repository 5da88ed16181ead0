// The process: made, written down, started, stopped.
import { createHash } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import type { EngineFound } from '../../../core/host_facts';
import type { ServerSpec } from '../../database';
import { DriverError } from '../../driver';
import type { DriverContext } from '../../driver';
import type { GateEstate } from '../gate';
import { findHome, giveFile, ownerOf, readNote, removeNote, writeNote, type Estate, type Home } from '../home';
import { answering } from '../readiness';
import { runTask, startServer, stopServer, type Program } from '../unit';
import { clientConfiguration, configuration, fileNames, firstStatements, logFileMb, settings } from './config';
import { withServer, type Ask } from './connection';

/** `found`: the servers of this host. */
export interface MariadbEstate extends GateEstate {
  found: EngineFound[];
}

/** What the running process was started with. */
interface Started {
  settings: string;
  certificate: string;
}

// It writes its changed pages first; killed, it mends itself at the next start. Told to end before it takes connections,
// it goes on with its start, takes none, and never ends (10.11): one that has not answered yet is killed.
const graceMs = 60_000;
const serverThreads = 64;

/** The program of the spec's version. @throws DriverError unsupported */
export function programOf(estate: MariadbEstate, version: string): EngineFound {
  const found = estate.found.find(({ series }) => series === version);
  if (found === undefined) throw new DriverError('unsupported', `This host has no MariaDB ${version}.`);
  return found;
}

/** A program that belongs to a server. @throws DriverError unsupported */
export function toolOf(found: EngineFound, name: string): string {
  const root = path.dirname(path.dirname(found.path));
  const file = ['bin', 'sbin', 'scripts'].map((place) => path.join(root, place, name)).find(isProgram);
  if (file === undefined)
    throw new DriverError('unsupported', `This host has no program ${name}, which belongs to MariaDB.`);
  return file;
}

/** Makes the system tables in an empty directory, which becomes the server's user's. */
export async function install(
  estate: MariadbEstate,
  spec: ServerSpec,
  data: string,
  ctx: DriverContext,
): Promise<void> {
  const found = programOf(estate, spec.version);
  const options = [
    '--no-defaults',
    `--basedir=${path.dirname(path.dirname(found.path))}`,
    `--datadir=${data}`,
    '--auth-root-authentication-method=socket',
    '--skip-test-db',
    `--innodb-log-file-size=${logFileMb(spec.size.memory_mb)}M`,
  ];
  const command = [toolOf(found, 'mariadb-install-db'), ...options].map(shellQuoted).join(' ');
  await runTask(estate, spec, 'setup', data, { command, threads: serverThreads, readable: readableOf(found) }, ctx);
}

/** Starts the server with what the spec says now, and waits a while for its answer. @throws NotReady */
export async function start(estate: MariadbEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<void> {
  const found = programOf(estate, spec.version);
  const owner = await ownerOf(home);
  // Away first: killed in the middle, the next call starts it again with all that is new.
  await removeNote(home, 'started');
  await removeNote(home, 'answered');
  const files = {
    [fileNames.config]: configuration(spec, home),
    [fileNames.first]: firstStatements(spec),
    [fileNames.client]: clientConfiguration(spec, home),
  };
  for (const [name, content] of Object.entries(files)) await giveFile(path.join(home.conf, name), content, owner);
  await giveCertificate(home, spec);
  const command = `exec ${shellQuoted(found.path)} ${shellQuoted(`--defaults-file=${path.join(home.conf, fileNames.config)}`)}`;
  const program: Program = { command, threads: serverThreads, readable: readableOf(found) };
  await startServer(estate, home, spec, program, ctx);
  await writeNote(home, 'started', startedWith(estate, home, spec));
  await awaken(estate, home, spec, ctx);
}

export async function stop(estate: Estate, id: string, ctx: DriverContext): Promise<void> {
  const home = await findHome(estate, id);
  const hasAnswered = typeof home !== 'string' && (await readNote(home, 'answered')) !== null;
  await stopServer(estate, id, hasAnswered ? graceMs : 0, ctx);
}

/** Waits until it answers. @throws NotReady @throws DriverError transient when it has ended */
export async function awaken(estate: Estate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<void> {
  await answering(estate, spec.id, () => withServer(home, spec, (ask) => ask('SELECT 1'), ctx), ctx);
  await noteAnswer(home);
}

/** Remembers that the process takes connections. */
export async function noteAnswer(home: Home): Promise<void> {
  if ((await readNote(home, 'answered')) === null) await writeNote(home, 'answered', {});
}

/** What differs between the running process and the spec: `settings` need a restart, `certificate` does not. */
export async function outdated(
  estate: MariadbEstate,
  home: Home,
  spec: ServerSpec,
): Promise<'settings' | 'certificate' | null> {
  const now = await readNote<Started>(home, 'started');
  const wanted = startedWith(estate, home, spec);
  if (now?.settings !== wanted.settings) return 'settings';
  return now.certificate === wanted.certificate ? null : 'certificate';
}

/** Replaces the certificate of the running server. Connections go on. */
export async function renewCertificate(estate: MariadbEstate, home: Home, spec: ServerSpec, ask: Ask): Promise<void> {
  await giveCertificate(home, spec);
  await ask('FLUSH SSL');
  await writeNote(home, 'started', startedWith(estate, home, spec));
}

async function giveCertificate(home: Home, { tls }: ServerSpec): Promise<void> {
  const owner = await ownerOf(home);
  await giveFile(path.join(home.conf, fileNames.certificate), tls.certificate, owner);
  await giveFile(path.join(home.conf, fileNames.key), tls.key, owner);
}

function startedWith(estate: MariadbEstate, home: Home, spec: ServerSpec): Started {
  const lines = [
    ...settings(spec, home),
    programOf(estate, spec.version).version,
    spec.admin_password,
    JSON.stringify(spec.size),
  ];
  return { settings: digest(lines.join('\n')), certificate: digest(spec.tls.certificate + spec.tls.key) };
}

function readableOf({ path: program }: EngineFound): string[] {
  return program.startsWith('/usr/') ? [] : [path.dirname(path.dirname(program))];
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
