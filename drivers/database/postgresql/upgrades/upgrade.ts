// Major upgrade: a staging server with empty data loads a dump of the old server, while only the platform can connect
// to either, and with the rights of the tenant alone (docs/decisions/0205). The old data are kept until the new server
// responds, and put back if anything fails.
import { CommandFailed } from '../../../../core/process/command';
import { driverContext } from '../../../../core/driver';
import type { DriverContext } from '../../../../core/driver';
import { removeServerTree, ownerOf, writeNote } from '../../../hosted_server/server_directory';
import { isReplacing, replaceData } from '../../../hosted_server/replacement';
import { dataMajorOf, systemIdentifierOf, type Cluster } from '../cluster';
import { configure } from '../configuration';
import { makeDirectories, initialize, syncTree } from '../data';
import { ensureLogins, ensureServer } from '../ensure';
import { requireNoFurtherDatabases } from '../further_databases';
import { programsOf, requireTools, type Programs } from '../programs';
import { stagingDirectoryOf, rollBackOnFailure, stopAll, verifyData } from '../backups/restore';
import { nextDisk } from '../../disk_size';
import { startPostgres, whenReady } from '../server';
import { firstTimeline } from '../backups/timelines';
import { contentError, dumpContent, loadContent, loadContentWithoutChecks, type Content } from './content';
import { dropLoader, dropFailedLoad, dropUnusedPublic } from './loader';
import { copyRoles, copySettings } from './role_settings';
import { searchPathsOf } from './search_paths';

// A dump locks all tables at once.
const locks = { max_locks_per_transaction: 2_048 };
// What is loaded counts once it is on the disk as a whole.
const unsynced = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', archive_command: 'true' };
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
        fill: (temporary) =>
          copyContent(cluster, old, { temporary, bin }, ctx).catch((error: unknown) => {
            throw contentError(error);
          }),
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

// The tools of the newer version support both versions; the older tools are the fallback.
export function toolsOf(newer: Programs, older: Programs): string {
  const whole = [newer, older].find((one) => tools.every((tool) => one.tools.includes(tool)));
  if (whole === undefined) requireTools(newer, tools);
  return (whole ?? newer).bin;
}

/**
 * `change`: what happens to the old data before they are dumped. `settings`: of both servers. `purpose`: with an
 * article, for sentences.
 */
interface CopyOptions {
  temporary: string;
  bin: string;
  change?: () => Promise<void>;
  settings?: Record<string, string | number>;
  purpose?: string;
}

/** Fills the temporary directory with the content of the old server. Only the platform can connect to either. */
export async function copyContent(
  cluster: Cluster,
  old: Cluster,
  { temporary, bin, change, settings = {}, purpose = 'an upgrade' }: CopyOptions,
  ctx: DriverContext,
): Promise<void> {
  const { serverDirectory, spec } = cluster;
  await stopAll(cluster, ctx);
  await removeServerTree(stagingDirectoryOf(serverDirectory).path, ctx);
  const staging: Cluster = { ...cluster, serverDirectory: { ...stagingDirectoryOf(serverDirectory), data: temporary } };
  await makeDirectories(staging.serverDirectory);
  await initialize(staging, temporary, ctx);
  await startPrivate(staging, 'staging', settings, ctx);
  await ensureLogins(staging, driverContext(readyWithinMs, ctx.signal), 'staging');
  await startPrivate(old, 'server', settings, ctx);
  await whenReady(old, 'server', {}, async () => undefined, driverContext(readyWithinMs, ctx.signal));
  await requireNoFurtherDatabases(old, purpose);
  await change?.();
  const content = { staging, database: spec.database_name ?? 'postgres', bin };
  await copyRoles(old, staging);
  await dumpContent(old, content, [], ctx);
  await loadDump(old, content, ctx);
  await dropUnusedPublic(old, staging, content.database);
  await copySettings(old, staging, content.database);
  await dropLoader(staging, content.database);
  await stopAll(cluster, ctx);
  await syncTree(temporary, ctx);
}

// What does not load as it is, for whatever reason, may do so otherwise.
async function loadDump(old: Cluster, content: Content, ctx: DriverContext): Promise<void> {
  const { staging, database } = content;
  try {
    await loadContent(content, ctx);
  } catch (error) {
    if (!(error instanceof CommandFailed) || ctx.signal.aborted) throw error;
    const paths = await searchPathsOf(old, database);
    // Hashes of enumerations differ between servers, so rows may belong to another partition.
    await dumpContent(old, content, ['--load-via-partition-root'], ctx);
    await dropFailedLoad(staging, database);
    await ensureLogins(staging, driverContext(readyWithinMs, ctx.signal), 'staging');
    await loadContentWithoutChecks(content, paths, ctx);
  }
}

async function startPrivate(
  cluster: Cluster,
  which: 'server' | 'staging',
  settings: Record<string, string | number>,
  ctx: DriverContext,
): Promise<void> {
  const { serverDirectory } = cluster;
  await configure(
    cluster,
    serverDirectory.data,
    await systemIdentifierOf(serverDirectory.data),
    await ownerOf(serverDirectory),
    { kind: 'private', settings: { ...locks, ...settings, ...(which === 'staging' && unsynced) } },
    ctx,
  );
  await startPostgres(cluster, which, serverDirectory.data, ctx);
}
