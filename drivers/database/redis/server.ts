// The server process: configuration, start, stop and observation.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { DatabaseServer } from '../../database';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { shellQuoted } from '../../hosted_server/driver';
import {
  writeFileFor,
  serverDirectoryOf,
  socketOf,
  ownerOf,
  removeNote,
  type EngineContext,
  type ServerDirectory,
} from '../../hosted_server/server_directory';
import { waitForAnswer } from '../../hosted_server/readiness';
import { runServerTask, startServer, stopServer } from '../../hosted_server/unit';
import type { ProxiedContext } from '../proxied';
import { digest, hasProxiedData, noteStarted, requireProgram, writeCertificate, type Started } from '../proxied_server';
import { configuration, fileNames, loopback, settings, type RedisPlace } from './config';
import { withServer, type SendCommand } from './connection';

export type RedisContext = ProxiedContext & { name: 'redis' | 'valkey' };

const graceMs = 20_000;

/** Its first task gives the data directory to the server's user. */
export function setUp(engine: RedisContext, spec: DatabaseServer, data: string, ctx: DriverContext): Promise<void> {
  return runServerTask(engine, spec, 'setup', data, { command: ':', threads: 16 }, ctx);
}

/** As EngineCapabilities.hasData: the append-only file exists since the first start. */
export function hasData(engine: RedisContext, id: string): Promise<boolean> {
  return hasProxiedData(engine, id, (name) => name.startsWith('appendonly'));
}

/** Starts the server with the current spec, and waits for its first response. @throws NotReady */
export async function start(
  engine: RedisContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  ctx: DriverContext,
): Promise<void> {
  const { path: program, version } = requireProgram(engine, spec.version);
  const owner = await ownerOf(serverDirectory);
  // Remove the note first: after a crash in between, the next call restarts the server with the new configuration.
  await removeNote(serverDirectory, 'started');
  await writeFileFor(
    path.join(serverDirectory.conf, fileNames.config),
    configuration(spec, placeOf(serverDirectory, version), version),
    owner,
  );
  await writeCertificates(engine, serverDirectory, spec);
  const command = `exec ${shellQuoted(program)} ${shellQuoted(path.join(serverDirectory.conf, fileNames.config))}`;
  await startServer(
    engine,
    serverDirectory,
    spec,
    { command, threads: 64, readable: program.startsWith('/usr/') ? [] : [path.dirname(program)] },
    ctx,
  );
  await noteStarted(serverDirectory, await startedWith(engine, serverDirectory, spec));
  await waitUntilReady(engine, serverDirectory, spec, ctx);
}

export async function stop(engine: EngineContext, id: string, ctx: DriverContext): Promise<void> {
  await stopServer(engine, id, graceMs, ctx);
}

/** Waits until the server responds. @throws NotReady @throws DriverError transient when it has exited */
export function waitUntilReady(
  engine: EngineContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  ctx: DriverContext,
): Promise<void> {
  return waitForAnswer(engine, spec.id, () => withServer(serverDirectory, spec, (send) => send('PING'), ctx), ctx);
}

/**
 * Replaces the certificates of the running server: its own, and on a replica that of its primary. Connections continue.
 */
export async function renewCertificate(
  engine: RedisContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  send: SendCommand,
): Promise<void> {
  await writeCertificates(engine, serverDirectory, spec);
  const authority =
    spec.replica_of === null ? [] : ['tls-ca-cert-file', path.join(serverDirectory.conf, fileNames.authority)];
  // In one command: a mismatched key is rejected. Before 7.0 setting either file name reloads both.
  await send(
    'CONFIG',
    'SET',
    'tls-cert-file',
    path.join(serverDirectory.conf, fileNames.certificate),
    'tls-key-file',
    path.join(serverDirectory.conf, fileNames.key),
    ...authority,
  );
  await noteStarted(serverDirectory, await startedWith(engine, serverDirectory, spec));
}

async function writeCertificates(
  engine: EngineContext,
  serverDirectory: ServerDirectory,
  server: DatabaseServer,
): Promise<void> {
  await writeCertificate(serverDirectory, server);
  if (server.replica_of === null) return;
  await writeFileFor(
    path.join(serverDirectory.conf, fileNames.authority),
    await certificateOf(engine, server.replica_of.server_id),
    await ownerOf(serverDirectory),
  );
}

async function certificateOf(engine: EngineContext, primaryId: string): Promise<string> {
  try {
    return await readFile(path.join(serverDirectoryOf(engine, primaryId).conf, fileNames.certificate), 'utf8');
  } catch {
    throw new DriverError('transient', 'The primary of this replica has not been started yet.', 1_000);
  }
}

export async function startedWith(
  engine: RedisContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
): Promise<Started> {
  const { version } = requireProgram(engine, spec.version);
  const authority = spec.replica_of === null ? '' : await certificateOf(engine, spec.replica_of.server_id);
  // The role is changed at runtime, also for former primaries.
  const lines = settings({ ...spec, replica_of: null }, placeOf(serverDirectory, version), version);
  return {
    settings: digest([...lines, version, spec.admin_password, JSON.stringify(spec.size)].join('\n')),
    certificate: digest(spec.tls.certificate + spec.tls.key + authority),
  };
}

// Remote clients connect through the access proxy, which listens on the other addresses of the host.
function placeOf(serverDirectory: ServerDirectory, engineVersion: string): RedisPlace {
  const { data, conf } = serverDirectory;
  return { data, conf, socket: socketOf(serverDirectory), addresses: loopback(engineVersion) };
}
