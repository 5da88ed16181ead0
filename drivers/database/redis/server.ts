// The process: written down, started, stopped, and looked at.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { EngineFound } from '../../../core/host_facts';
import type { ServerSpec } from '../../database';
import { DriverError } from '../../driver';
import type { DriverContext } from '../../driver';
import type { GateEstate } from '../gate';
import { giveFile, homeOf, ownerOf, readNote, removeNote, writeNote, type Estate, type Home } from '../home';
import { answering } from '../readiness';
import { startServer, stopServer } from '../unit';
import { configuration, fileNames, settings } from './config';
import { withServer, type Say } from './connection';

/** `found`: the servers of this host. */
export interface RedisEstate extends GateEstate {
  found: EngineFound[];
}

/** What the running process was started with. */
interface Started {
  settings: string;
  certificate: string;
}

const graceMs = 20_000;

/** The program of the spec's version. @throws DriverError unsupported */
export function programOf(estate: RedisEstate, version: string): EngineFound {
  const found = estate.found.find(({ series }) => series === version);
  if (found === undefined) throw new DriverError('unsupported', `This host has no ${estate.engine} ${version}.`);
  return found;
}

/** Starts the server with what the spec says now, and waits a while for its answer. @throws NotReady */
export async function start(estate: RedisEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<void> {
  const { path: program, version } = programOf(estate, spec.version);
  const owner = await ownerOf(home);
  // Away first: killed in the middle, the next call starts it again with all that is new.
  await removeNote(home, 'started');
  await giveFile(path.join(home.conf, fileNames.config), configuration(spec, home, version), owner);
  await giveCertificates(estate, home, spec);
  const command = `exec ${shellQuoted(program)} ${shellQuoted(path.join(home.conf, fileNames.config))}`;
  await startServer(
    estate,
    home,
    spec,
    { command, threads: 64, readable: program.startsWith('/usr/') ? [] : [path.dirname(program)] },
    ctx,
  );
  await writeNote(home, 'started', await startedWith(estate, home, spec));
  await awaken(estate, home, spec, ctx);
}

export async function stop(estate: Estate, id: string, ctx: DriverContext): Promise<void> {
  await stopServer(estate, id, graceMs, ctx);
}

/** Waits until it answers. @throws NotReady @throws DriverError transient when it has ended */
export function awaken(estate: Estate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<void> {
  return answering(estate, spec.id, () => withServer(home, spec, (say) => say('PING'), ctx), ctx);
}

/** What differs between the running process and the spec: `settings` need a restart, `certificate` does not. */
export async function outdated(
  estate: RedisEstate,
  home: Home,
  spec: ServerSpec,
): Promise<'settings' | 'certificate' | null> {
  const now = await readNote<Started>(home, 'started');
  const wanted = await startedWith(estate, home, spec);
  if (now?.settings !== wanted.settings) return 'settings';
  return now.certificate === wanted.certificate ? null : 'certificate';
}

/** Replaces the certificates of the running server: its own, and for a replica that of its primary. Connections go on. */
export async function renewCertificate(estate: RedisEstate, home: Home, spec: ServerSpec, say: Say): Promise<void> {
  await giveCertificates(estate, home, spec);
  const authority = spec.replica_of === null ? [] : ['tls-ca-cert-file', path.join(home.conf, fileNames.authority)];
  // In one command: a key of another certificate is refused. Before 7.0 the file names alone, one by one, reload both.
  await say(
    'CONFIG',
    'SET',
    'tls-cert-file',
    path.join(home.conf, fileNames.certificate),
    'tls-key-file',
    path.join(home.conf, fileNames.key),
    ...authority,
  );
  await writeNote(home, 'started', await startedWith(estate, home, spec));
}

async function giveCertificates(estate: Estate, home: Home, { tls, replica_of: primary }: ServerSpec): Promise<void> {
  const owner = await ownerOf(home);
  await giveFile(path.join(home.conf, fileNames.certificate), tls.certificate, owner);
  await giveFile(path.join(home.conf, fileNames.key), tls.key, owner);
  if (primary !== null)
    await giveFile(path.join(home.conf, fileNames.authority), await certificateOf(estate, primary.server_id), owner);
}

async function certificateOf(estate: Estate, primaryId: string): Promise<string> {
  try {
    return await readFile(path.join(homeOf(estate, primaryId).conf, fileNames.certificate), 'utf8');
  } catch {
    throw new DriverError('transient', 'The primary of this replica has not been started yet.', 1_000);
  }
}

async function startedWith(estate: RedisEstate, home: Home, spec: ServerSpec): Promise<Started> {
  const { version } = programOf(estate, spec.version);
  const authority = spec.replica_of === null ? '' : await certificateOf(estate, spec.replica_of.server_id);
  // The role is changed live, and so is what a primary once was.
  const lines = settings({ ...spec, replica_of: null }, home, version);
  return {
    settings: digest([...lines, version, spec.admin_password, JSON.stringify(spec.size)].join('\n')),
    certificate: digest(spec.tls.certificate + spec.tls.key + authority),
  };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
