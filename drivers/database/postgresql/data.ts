// Data directories: made by initdb, or as a copy of the primary's.
import { chmod, chown, mkdir, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../../command';
import { DriverError, checkpoint } from '../../driver';
import type { DriverContext } from '../../driver';
import {
  exists,
  findHome,
  giveFile,
  homeOf,
  makeHome,
  ownerOf,
  readNote,
  requireHome,
  writeNote,
  type Home,
} from '../home';
import { isReplacing, putBack, replaceData } from '../replacement';
import { majorOf, roles, socketDirectory, type Cluster, type PostgresqlEstate } from './cluster';
import { initdbUser, requireTools, runTool, type Programs } from './programs';
import { giveData, quiet } from './server';
import { inSession } from './session';
import type { ServerSpec } from '../../database';

// A segment a minute is archived where something is written: small ones cost less.
const segmentMb = 4;

/** The home of the server, made where it is not there. @throws DriverError conflict */
export async function settleHome(estate: PostgresqlEstate, id: string, ctx: DriverContext): Promise<Home> {
  if ((await findHome(estate, id)) !== 'absent') return requireHome(estate, id);
  return makeHome(
    estate,
    id,
    async (draft) => {
      await rmdir(draft.data); // there is none until there are data
      await furnish(draft);
    },
    ctx,
  );
}

/** The places beside the data. Only the server and the platform get to the socket: group 0 is that of the platform's tools. */
export async function furnish(home: Home): Promise<void> {
  for (const one of ['conf', 'run', 'socket', 'log', 'archive'])
    await mkdir(path.join(home.path, one), { recursive: true, mode: 0o700 });
  for (const one of [home.path, home.conf]) await chmod(one, 0o711);
  await chmod(path.join(home.path, 'socket'), 0o770);
}

/**
 * Data are there, made where there never were any. What an interrupted restore or upgrade left is put back.
 * @throws DriverError conflict where they were lost
 */
export async function settleData(cluster: Cluster, ctx: DriverContext): Promise<void> {
  const { home } = cluster;
  const making = cluster.spec.replica_of === null ? 'init' : 'clone';
  const isMade = (await readNote(home, 'made')) !== null;
  if (isMade && (await isReplacing(home))) {
    await quiet(cluster, 'aside', ctx);
    await quiet(cluster, 'server', ctx);
    await putBack(home, ctx);
  }
  if ((await majorOf(home.data)) !== null && isMade) return;
  if (isMade)
    throw new DriverError(
      'conflict',
      'The data of this server are gone from the host; bring them back, or restore a backup.',
    );
  if ((await readNote(home, 'restoring')) !== null)
    throw new DriverError('transient', 'This server gets its data from a backup, which has not ended.');
  await replaceData(
    home,
    {
      key: making,
      fill: (draft) => (making === 'init' ? initialize(cluster, draft, ctx) : clone(cluster, draft, ctx)),
      stop: () => quiet(cluster, 'server', ctx),
      prove: () => writeNote(home, 'made', { version: cluster.spec.version }),
      goBack: () => Promise.resolve(),
    },
    ctx,
  );
}

/** A new, empty cluster that belongs to the user of the server. The superuser has no password: nobody logs in with one. */
export async function initialize(cluster: Cluster, data: string, ctx: DriverContext): Promise<void> {
  const { programs } = cluster;
  checkpoint(ctx);
  if (initdbUser !== undefined) await chown(data, initdbUser.uid, initdbUser.gid);
  const args = [
    '-D',
    data,
    '-U',
    roles.admin,
    '--auth=reject',
    '--data-checksums',
    '--encoding=UTF8',
    `--wal-segsize=${segmentMb}`,
    ...localeOf(programs),
  ];
  await runTool(path.join(programs.bin, 'initdb'), [...args, ...leftToUs], { as: initdbUser }, ctx);
  await giveData(cluster, data, ctx);
  await toDisk(data, ctx);
}

// The built-in provider sorts alike on every machine, and after every upgrade of its C library; it exists since version 17.
function localeOf({ series }: Programs): string[] {
  return Number(series) >= 17
    ? ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    : ['--locale=C', '--lc-ctype=C.UTF-8'];
}

/** A copy of the primary, which keeps its log for it from now on. */
async function clone(cluster: Cluster, data: string, ctx: DriverContext): Promise<void> {
  const { spec, programs, estate } = cluster;
  requireTools(programs, ['pg_basebackup']);
  const primary = primaryOf(estate, spec, programs);
  if (!(await exists(primary.home.path)))
    throw new DriverError('conflict', 'The primary of this replica is not there.');
  await inSession(primary, {}, async (session) => {
    const { rowCount } = await session.query('select from pg_replication_slots where slot_name = $1', [spec.id]);
    if (rowCount === 0) await session.query('select pg_create_physical_replication_slot($1, true)', [spec.id]);
  });
  await runTool(
    path.join(programs.bin, 'pg_basebackup'),
    ['-D', data, ...connectionOf(primary), '-X', 'stream', '-c', 'fast', '-S', spec.id, '-w', ...leftToUs],
    {},
    ctx,
  );
  await giveData(cluster, data, ctx);
  await giveFile(path.join(data, 'standby.signal'), '', await ownerOf({ ...cluster.home, data }));
  await toDisk(data, ctx);
}

// The programs bring a thousand files to the disk one after the other, which takes minutes where the disk is busy. sync(1)
// brings all of its file system there at once.
const canSync = process.platform === 'linux';
const leftToUs = canSync ? ['--no-sync'] : [];

async function toDisk(tree: string, ctx: DriverContext): Promise<void> {
  if (canSync) await run('sync', ['-f', '--', tree], ctx).catch(() => run('sync', [], ctx)); // busybox knows no -f
}

function primaryOf(estate: PostgresqlEstate, spec: ServerSpec, programs: Programs): Cluster {
  const { server_id: id, port } = spec.replica_of!;
  return { estate, programs, home: homeOf(estate, id), spec: { ...spec, id, port, replica_of: null } };
}

/** For the programs of PostgreSQL: the socket, as the administrator. */
export function connectionOf({ home, spec }: Cluster): string[] {
  return ['-h', socketDirectory(home), '-p', String(spec.port), '-U', roles.admin];
}
