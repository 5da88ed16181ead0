// The process: written down, started, stopped, and looked at.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { DatabaseServer } from '../../database';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { shellQuoted } from '../../hosted_server/driver';
import {
  writeFileFor,
  serverDirectoryOf,
  ownerOf,
  removeNote,
  type EngineContext,
  type ServerDirectory,
} from '../../hosted_server/server_directory';
import { waitForAnswer } from '../../hosted_server/readiness';
import { runServerTask, startServer, stopServer } from '../../hosted_server/unit';
import type { ProxiedContext } from '../proxied';
import { digest, hasProxiedData, noteStarted, requireProgram, writeCertificate, type Started } from '../proxied_server';
import { configuration, fileNames, settings } from './config';
import { withServer, type SendCommand } from './connection';

export type RedisContext = ProxiedContext & { name: 'redis' | 'valkey' };

const graceMs = 20_000;

/** Its first task gives the data directory to its user. */
export function setUp(engine: RedisContext, spec: DatabaseServer, data: string, ctx: DriverContext): Promise<void> {
  return runServerTask(engine, spec, 'setup', data, { command: ':', threads: 16 }, ctx);
}

/** As EngineCapabilities.hasData: the file of the commands is there since the first start. */
export function hasData(engine: RedisContext, id: string): Promise<boolean> {
  return hasProxiedData(engine, id, (name) => name.startsWith('appendonly'));
}

/** Starts the server with what the spec says now, and waits a while for its answer. @throws NotReady */
export async function start(
  engine: RedisContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  ctx: DriverContext,
): Promise<void> {
  const { path: program, version } = requireProgram(engine, spec.version);
  const owner = await ownerOf(serverDirectory);
  // Away first: killed in the middle, the next call starts it again with all that is new.
  await removeNote(serverDirectory, 'started');
  await writeFileFor(
    path.join(serverDirectory.conf, fileNames.config),
    configuration(spec, serverDirectory, version),
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

/** Waits until it answers. @throws NotReady @throws DriverError transient when it has ended */
export function waitUntilReady(
  engine: EngineContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  ctx: DriverContext,
): Promise<void> {
  return waitForAnswer(engine, spec.id, () => withServer(serverDirectory, spec, (send) => send('PING'), ctx), ctx);
}

/**
 * Replaces the certificates of the running server: its own, and for a replica that of its primary. Connections go on.
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
  // In one command: a key of another certificate is refused. Before 7.0 the file names alone, one by one, reload both.
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
  // The role is changed live, and so is what a primary once was.
  const lines = settings({ ...spec, replica_of: null }, serverDirectory, version);
  return {
    settings: digest([...lines, version, spec.admin_password, JSON.stringify(spec.size)].join('\n')),
    certificate: digest(spec.tls.certificate + spec.tls.key + authority),
  };
}
