// The server process: installation, configuration, start and stop.
import { accessSync, constants } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { EngineFound } from '../../../core/catalog/host_facts';
import type { DatabaseServer } from '../../database';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { shellQuoted } from '../../hosted_server/driver';
import {
  findServerDirectory,
  writeFileFor,
  ownerOf,
  readNote,
  removeNote,
  socketOf,
  writeNote,
  type EngineContext,
  type ServerDirectory,
} from '../../hosted_server/server_directory';
import { waitForAnswer } from '../../hosted_server/readiness';
import { runServerTask, startServer, stopServer, type Program } from '../../hosted_server/unit';
import type { ProxiedContext } from '../proxied';
import { digest, hasProxiedData, noteStarted, requireProgram, writeCertificate, type Started } from '../proxied_server';
import {
  configuration,
  fileNames,
  firstStatements,
  logFileMb,
  settings,
  temporaryDirectory,
  type MariadbPlace,
} from './config';
import { serverAccessOf, withServer, type Query } from './connection';

// On a stop, it first writes dirty pages; after a kill, it recovers at the next start. If it is stopped before it
// accepts connections, it continues its start, accepts none, and never ends (10.11): a server that has not responded
// yet is killed.
const graceMs = 60_000;
const serverThreads = 64;

/** A program of the server's installation. @throws DriverError unsupported */
export function toolOf(found: Pick<EngineFound, 'path'>, name: string): string {
  const root = path.dirname(path.dirname(found.path));
  const file = ['bin', 'sbin', 'scripts'].map((place) => path.join(root, place, name)).find(isProgram);
  if (file === undefined)
    throw new DriverError('unsupported', `The program ${name} of MariaDB is not installed on this host.`);
  return file;
}

/** Creates the system tables in an empty directory, which is then owned by the server's user. */
export async function install(
  engine: ProxiedContext,
  spec: DatabaseServer,
  data: string,
  ctx: DriverContext,
): Promise<void> {
  const found = requireProgram(engine, spec.version);
  const options = [
    '--no-defaults',
    `--basedir=${path.dirname(path.dirname(found.path))}`,
    `--datadir=${data}`,
    '--auth-root-authentication-method=socket',
    '--skip-test-db',
    `--innodb-log-file-size=${logFileMb(spec.size.memory_mb)}M`,
  ];
  const command = [toolOf(found, 'mariadb-install-db'), ...options].map(shellQuoted).join(' ');
  await runServerTask(
    engine,
    spec,
    'setup',
    data,
    { command, threads: serverThreads, readable: readableOf(found) },
    ctx,
  );
}

/** As EngineCapabilities.hasData: the system tables exist from the start. */
export function hasData(engine: ProxiedContext, id: string): Promise<boolean> {
  return hasProxiedData(engine, id, (name) => name === 'mysql');
}

/** Starts the server with the current spec, and waits for its first response. @throws NotReady */
export async function start(
  engine: ProxiedContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  ctx: DriverContext,
): Promise<void> {
  const found = requireProgram(engine, spec.version);
  const owner = await ownerOf(serverDirectory);
  // Remove the note first: after a crash in between, the next call restarts the server with the new configuration.
  await removeNote(serverDirectory, 'started');
  await removeNote(serverDirectory, 'answered');
  const files = {
    [fileNames.config]: configuration(spec, placeOf(serverDirectory)),
    [fileNames.first]: firstStatements(spec, 'localhost'),
  };
  // Earlier versions kept the administrator's password there.
  await rm(path.join(serverDirectory.conf, 'client.cnf'), { force: true });
  for (const [name, content] of Object.entries(files))
    await writeFileFor(path.join(serverDirectory.conf, name), content, owner);
  await writeCertificate(serverDirectory, spec);
  const temporary = shellQuoted(temporaryDirectory(serverDirectory));
  const command =
    `mkdir -p ${temporary} && exec ${shellQuoted(found.path)} ` +
    `${shellQuoted(`--defaults-file=${path.join(serverDirectory.conf, fileNames.config)}`)}`;
  const program: Program = { command, threads: serverThreads, readable: readableOf(found) };
  await startServer(engine, serverDirectory, spec, program, ctx);
  await noteStarted(serverDirectory, startedWith(engine, serverDirectory, spec));
  await waitUntilReady(engine, serverDirectory, spec, ctx);
}

export async function stop(engine: EngineContext, id: string, ctx: DriverContext): Promise<void> {
  const serverDirectory = await findServerDirectory(engine, id);
  const hasAnswered = typeof serverDirectory !== 'string' && (await readNote(serverDirectory, 'answered')) !== null;
  await stopServer(engine, id, hasAnswered ? graceMs : 0, ctx);
}

/** Waits until the server responds. @throws NotReady @throws DriverError transient when it has exited */
export async function waitUntilReady(
  engine: EngineContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  ctx: DriverContext,
): Promise<void> {
  await waitForAnswer(
    engine,
    spec.id,
    () => withServer(serverAccessOf(serverDirectory), spec, (query) => query('SELECT 1'), ctx),
    ctx,
  );
  await noteAnswer(serverDirectory);
}

/** Records that the process has accepted connections. */
export async function noteAnswer(serverDirectory: ServerDirectory): Promise<void> {
  if ((await readNote(serverDirectory, 'answered')) === null) await writeNote(serverDirectory, 'answered', {});
}

/** Replaces the certificate of the running server. Connections continue. */
export async function renewCertificate(
  engine: ProxiedContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  query: Query,
): Promise<void> {
  await writeCertificate(serverDirectory, spec);
  await query('FLUSH SSL');
  await noteStarted(serverDirectory, startedWith(engine, serverDirectory, spec));
}

/** Digests of the configuration for a start now. */
export function startedWith(engine: ProxiedContext, serverDirectory: ServerDirectory, spec: DatabaseServer): Started {
  const lines = [
    ...settings(spec, placeOf(serverDirectory)),
    requireProgram(engine, spec.version).version,
    spec.admin_password,
    JSON.stringify(spec.size),
  ];
  return { settings: digest(lines.join('\n')), certificate: digest(spec.tls.certificate + spec.tls.key) };
}

function placeOf(serverDirectory: ServerDirectory): MariadbPlace {
  const { data, conf } = serverDirectory;
  return { data, conf, socket: socketOf(serverDirectory), addresses: '127.0.0.1', tls: 'optional' };
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
