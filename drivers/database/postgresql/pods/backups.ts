// Backups and restores of a PostgreSQL in a pod, in the format of servers of a host, and in the same place: a backup of
// either can be restored into the other. A base backup comes over the replication protocol, with the write-ahead log
// that it needs.
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { DriverError, StillRunning, type DriverContext } from '../../../../core/driver';
import type { BackupMade, DatabaseServer, RestoreFrom } from '../../../database';
import { exists } from '../../../hosted_server/server_directory';
import { fetchFiles, importBackup } from '../../../hosted_server/stored_backups';
import { diskBytes } from '../../disk_size';
import { imageOf, unsupported, type PodEngine } from '../../kubernetes/pod_engine';
import { replacePodData } from '../../kubernetes/replacement';
import { findServerPod, requireServerPod } from '../../kubernetes/server_pods';
import { requireFailoverServer } from '../failover/cluster';
import { hasFailover } from '../failover/driver';
import { cancelWork, runInBackground } from '../background_work';
import { backupOf } from '../backups/backups';
import { backupMissing, manifestOf } from '../backups/known_backups';
import { baseFiles, type BackupSource } from '../backups/make_backup';
import { backupsOf, roles, type PostgresqlContext } from '../cluster';
import { programsOf, type Programs } from '../programs';
import type { NetworkAddress } from '../session';
import { DATA, programOf, RESTORED } from './program';
import { podAddressOf, ensureContent, withPod } from './server';

/** `host`: programs and backups of this host. */
export type PostgresqlPods = PodEngine & { host: PostgresqlContext };

const TOOLS = ['pg_basebackup', 'pg_dump'];

/** Where the server takes writes. @throws NotReady @throws DriverError conflict */
export async function locatePrimary(
  engine: PodEngine,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<NetworkAddress> {
  const find = hasFailover(server) ? requireFailoverServer : requireServerPod;
  return podAddressOf(engine, server, await find(engine, server, ctx));
}

/** @throws DriverError unsupported, with what to install */
export async function backup(
  engine: PostgresqlPods,
  server: DatabaseServer,
  backupId: string,
  ctx: DriverContext,
): Promise<BackupMade> {
  const at = await locatePrimary(engine, server, ctx);
  const source: BackupSource = {
    ...{ engine: engine.host, spec: server, programs: await programsFor(engine.host, server.version) },
    withConnection: (work) => withConnection(at, work),
    inSession: (work) => withPod(at, ({ session }) => work(session)),
    identify: () => identify(at),
  };
  return backupOf(source, backupId, () => Promise.resolve(), ctx);
}

/** @throws DriverError unsupported for a point in time, invalid for a damaged backup: nothing is changed then */
export async function restore(
  engine: PostgresqlPods,
  server: DatabaseServer,
  from: RestoreFrom,
  ctx: DriverContext,
): Promise<void> {
  if (hasFailover(server))
    throw unsupported(
      'A database with automatic failover cannot be restored yet. Restore its backup into a new database with a ' +
        'package of one node.',
    );
  if (from.backup_id === null || from.until !== null)
    throw unsupported('Databases in the cluster cannot go back to a point in time yet. Restore a backup.');
  const id = { serverId: from.server_id, backupId: from.backup_id };
  const staging = stagingOf(engine, server.id);
  await mkdir(staging, { recursive: true, mode: 0o700 });
  const work = (own: DriverContext): Promise<void> => replaceData(engine, server, { key: from.id, id }, own);
  const failure = await runInBackground(engine.host, `restore-${from.id}`, staging, work, ctx).then(
    () => null,
    (error: unknown) => error,
  );
  if (!(failure instanceof StillRunning)) await rm(staging, { recursive: true, force: true });
  if (failure !== null) throw failure;
}

/** Ends a restore of this process. */
export async function cancelRestore(engine: PostgresqlPods, serverId: string, ctx: DriverContext): Promise<void> {
  const staging = stagingOf(engine, serverId);
  await cancelWork(engine.host, staging, ctx);
  await rm(staging, { recursive: true, force: true });
}

function stagingOf({ directory }: PostgresqlPods, serverId: string): string {
  return path.join(directory, `.pods-${serverId}`);
}

async function replaceData(
  engine: PostgresqlPods,
  server: DatabaseServer,
  { key, id }: { key: string; id: { serverId: string; backupId: string } },
  ctx: DriverContext,
): Promise<void> {
  await importBackup(engine.host, id, ctx);
  const made = await manifestOf(path.join(backupsOf(engine.host, id.serverId), id.backupId));
  if (made === null) throw backupMissing();
  if (made.version !== server.version)
    throw new DriverError(
      'invalid',
      `A backup of PostgreSQL ${made.version} cannot be restored into ${server.version}.`,
    );
  const present = await findServerPod(engine, server, ctx);
  const image = imageOf(engine, server, present);
  await replacePodData(
    engine,
    {
      ...{ key: `restore ${key}`, server, bytes: diskBytes(engine, server) },
      program: (claim) => programOf(engine, server, { claim, image, isNew: false }),
      withFiles: async (load) => {
        const base = await baseOf(engine, server.id, id, ctx);
        const paths = baseFiles.map((file) => path.join(base, path.basename(file)));
        for (const file of paths) await requireWhole(file, ctx);
        await load(paths.map((file, index) => ({ file, script: loadScripts[index] ?? '' })));
      },
      verify: (found) => withPod(podAddressOf(engine, server, found), (client) => ensureContent(server, client)),
    },
    ctx,
  );
}

/** In the order of `baseFiles`. What a killed call has written is removed; RESTORED comes last. */
const loadScripts = [
  `set -e; umask 077; rm -rf ${RESTORED} ${DATA}; mkdir ${DATA}; tar -xzf - -C ${DATA}; cd ${DATA}; ` +
    'rm -f standby.signal recovery.signal postmaster.pid; : > postgresql.auto.conf',
  `set -e; umask 077; tar -xzf - -C ${DATA}/pg_wal; sync; touch ${RESTORED}; sync`,
];

/** Directory of the base files: of the backup, or one to which they are downloaded. */
async function baseOf(
  engine: PostgresqlPods,
  serverId: string,
  id: { serverId: string; backupId: string },
  ctx: DriverContext,
): Promise<string> {
  const here = path.join(backupsOf(engine.host, id.serverId), id.backupId, 'base');
  if (await exists(path.join(here, 'base.tar.gz'))) return here;
  const to = path.join(stagingOf(engine, serverId), 'fetched');
  await fetchFiles(engine.host, id, { names: baseFiles, to }, ctx);
  return to;
}

/** Before anything is sent: what cannot be unpacked now cannot be unpacked later. @throws DriverError invalid */
async function requireWhole(file: string, { signal }: DriverContext): Promise<void> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  await pipeline(createReadStream(file), createGunzip(), nowhere, { signal }).catch((error: unknown) => {
    if (!/^Z_/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    throw new DriverError('invalid', `The file ${path.basename(file)} of the backup is damaged.`);
  });
}

/** Programs connect to newer servers never, to older ones always. @throws DriverError unsupported */
async function programsFor(host: PostgresqlContext, version: string): Promise<Programs> {
  const [found] = host.found
    .filter(({ series, tools }) => Number(series) >= Number(version) && TOOLS.every((tool) => tools.includes(tool)))
    .sort((a, b) => Number(a.series) - Number(b.series));
  if (found !== undefined) return programsOf(host, found.series);
  throw unsupported(
    `Backups of PostgreSQL ${version} need ${TOOLS.join(' and ')} of that version or a newer one on the machine of ` +
      `the platform. Install the package postgresql-client-${version}.`,
  );
}

/** Neither the password nor the authority is in arguments or variables. */
async function withConnection<T>(
  { host, port, authority, serverName, password }: NetworkAddress,
  work: (connection: { args: string[]; env: Record<string, string> }) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'postgresql-'));
  const [root, pass] = [path.join(directory, 'root.crt'), path.join(directory, 'pgpass')];
  try {
    await writeFile(root, authority, { mode: 0o600 });
    const escaped = password.replaceAll(/[\\:]/g, '\\$&');
    await writeFile(pass, `*:*:*:${roles.admin}:${escaped}\n`, { mode: 0o600 });
    const env = { PGHOSTADDR: host, PGSSLMODE: 'verify-full', PGSSLROOTCERT: root, PGPASSFILE: pass };
    return await work({ args: ['-h', serverName, '-p', String(port), '-U', roles.admin], env });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function identify(at: NetworkAddress): ReturnType<BackupSource['identify']> {
  return withPod(at, async ({ session }) => {
    const { rows } = await session.query<{ system_identifier: string; timeline: number }>(
      `select system_identifier::text, timeline_id as timeline
        from pg_catalog.pg_control_system(), pg_catalog.pg_control_checkpoint()`,
    );
    const [found] = rows;
    if (found === undefined) throw new DriverError('transient', 'The server does not say which one it is.');
    return found;
  });
}
