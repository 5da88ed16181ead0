// Major upgrade: a staging server with empty data loads a dump of the old server, while only the platform can connect
// to either. The old data are kept until the new server responds, and put back if anything fails.
import path from 'node:path';
import { CommandFailed } from '../../../core/process/command';
import { DriverError, driverContext } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { removeServerTree, ownerOf, writeNote } from '../../hosted_server/server_directory';
import { isReplacing, replaceData } from '../../hosted_server/replacement';
import { dataMajorOf, systemIdentifierOf, type Cluster } from './cluster';
import { configure } from './configuration';
import { connectionOf, makeDirectories, initialize } from './data';
import { ensureServer, ensureContent } from './ensure';
import { requireNoFurtherDatabases } from './further_databases';
import { programsOf, requireTools, runPiped, type Programs } from './programs';
import { stagingDirectoryOf, rollBackOnFailure, stopAll, verifyData } from './backups/restore';
import { nextDisk } from '../disk_size';
import { startPostgres, whenReady } from './server';
import { inSession, sqlIdentifier, sqlString } from './session';
import { firstTimeline } from './backups/timelines';

const readyWithinMs = 120_000;
const tools = ['pg_dump', 'pg_restore'];

/**
 * `cluster` has the new version. @throws DriverError unsupported, with what to install; or the reason of the failure
 */
export async function upgrade(cluster: Cluster, fromVersion: string, ctx: DriverContext): Promise<void> {
  const { serverDirectory, spec, engine } = cluster;
  if ((await dataMajorOf(serverDirectory.data)) === spec.version && !(await isReplacing(serverDirectory)))
    return void (await ensureServer(cluster, ctx));
  const old: Cluster = {
    ...cluster,
    spec: { ...spec, version: fromVersion },
    programs: await programsOf(engine, fromVersion),
  };
  const bin = toolsOf(cluster.programs, old.programs);
  const disk = await nextDisk(engine, serverDirectory, spec);
  await rollBackOnFailure(old, ctx, () =>
    replaceData(
      serverDirectory,
      {
        key: `upgrade-${spec.version}`,
        disk,
        fill: (temporary) => copyContent(cluster, old, { temporary, bin }, ctx).catch(toDriverError),
        stop: () => stopAll(cluster, ctx),
        verify: async () => {
          await verifyData(cluster, ctx);
          await writeNote(serverDirectory, 'made', { version: spec.version });
          await writeNote(serverDirectory, 'timelines', firstTimeline);
        },
        rollBack: () => Promise.resolve(),
      },
      ctx,
    ),
  );
  await removeServerTree(stagingDirectoryOf(serverDirectory).path, ctx);
  await ensureServer(cluster, ctx);
}

// A retry would fail again: the cause is in the data or the programs.
function toDriverError(cause: unknown): never {
  if (!(cause instanceof CommandFailed)) throw cause;
  throw Object.assign(
    new DriverError(
      'invalid',
      'The data of this database could not be copied to the new version. The database is back on the old version.',
    ),
    { cause },
  );
}

// The tools of the newer version support both versions; the older tools are the fallback.
function toolsOf(newer: Programs, older: Programs): string {
  const whole = [newer, older].find((one) => tools.every((tool) => one.tools.includes(tool)));
  if (whole === undefined) requireTools(newer, tools);
  return (whole ?? newer).bin;
}

async function copyContent(
  cluster: Cluster,
  old: Cluster,
  { temporary, bin }: { temporary: string; bin: string },
  ctx: DriverContext,
): Promise<void> {
  const { serverDirectory, spec } = cluster;
  await stopAll(cluster, ctx);
  await removeServerTree(stagingDirectoryOf(serverDirectory).path, ctx);
  const staging: Cluster = { ...cluster, serverDirectory: { ...stagingDirectoryOf(serverDirectory), data: temporary } };
  await makeDirectories(staging.serverDirectory);
  await initialize(staging, temporary, ctx);
  await startPrivate(staging, 'staging', ctx);
  await ensureContent(staging, driverContext(readyWithinMs, ctx.signal), 'staging');
  await startPrivate(old, 'server', ctx);
  await whenReady(old, 'server', {}, async () => undefined, driverContext(readyWithinMs, ctx.signal));
  await requireNoFurtherDatabases(old);
  const database = spec.database_name ?? 'postgres';
  const dump: [string, ...string[]] = [
    path.join(bin, 'pg_dump'),
    ...connectionOf(old),
    '-w',
    '-Fc',
    '-Z',
    '0',
    '-d',
    database,
  ];
  await runPiped(
    dump,
    [path.join(bin, 'pg_restore'), ...connectionOf(staging), '-w', '--exit-on-error', '-d', database],
    ctx,
  );
  await copySettings(old, staging, database);
  await inSession(staging, { data: temporary, database, statementMs: 3_600_000 }, (session) =>
    session.query('analyze'),
  );
  await stopAll(cluster, ctx);
}

async function startPrivate(cluster: Cluster, which: 'server' | 'staging', ctx: DriverContext): Promise<void> {
  const { serverDirectory } = cluster;
  await configure(
    cluster,
    serverDirectory.data,
    await systemIdentifierOf(serverDirectory.data),
    await ownerOf(serverDirectory),
    { kind: 'private' },
    ctx,
  );
  await startPostgres(cluster, which, serverDirectory.data, ctx);
}

// Settings of roles are not part of a database dump.
async function copySettings(old: Cluster, staging: Cluster, database: string): Promise<void> {
  const { rows } = await inSession(old, {}, (session) =>
    session.query<{ role: string; here: boolean; settings: string[] }>(
      `select r.rolname as role, s.setdatabase <> 0 as here, s.setconfig as settings from pg_db_role_setting s
        join pg_roles r on r.oid = s.setrole
     where not r.rolsuper and r.rolname not like 'platform\\_%'`,
    ),
  );
  await inSession(staging, { data: staging.serverDirectory.data }, async (session) => {
    for (const { role, here, settings } of rows) {
      for (const setting of settings) {
        const [key = '', ...value] = setting.split('=');
        if (key === 'role') continue;
        const place = here ? ` in database ${sqlIdentifier(database)}` : '';
        const values = key === 'search_path' ? value.join('=') : sqlString(value.join('='));
        // Settings unknown to the new version are skipped.
        await session
          .query(`alter role ${sqlIdentifier(role)}${place} set ${sqlIdentifier(key)} = ${values}`)
          .catch(() => undefined);
      }
    }
  });
}
