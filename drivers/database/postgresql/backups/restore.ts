// Restores: a staging server replays the WAL after a backup up to the target. When its data are complete, they replace
// those of the server; the old data are kept until the server responds with the new ones.
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailed, run } from '../../../../core/process/command';
import { failureTextOf } from '../../../../core/log/failure_text';
import type { RestoreFrom } from '../../../database';
import { DriverError, checkpoint, driverContext } from '../../../../core/driver';
import type { DriverContext } from '../../../../core/driver';
import {
  exists,
  removeServerTree,
  readNote,
  removeNote,
  writeNote,
  writeFileFor,
  type ServerDirectory,
} from '../../../hosted_server/server_directory';
import { isReplacing, replaceData } from '../../../hosted_server/replacement';
import { fetchFiles } from '../../../hosted_server/stored_backups';
import { noteArchivedSince } from './archiving';
import { baseFiles } from './make_backup';
import { backupsOf, dataMajorOf, systemIdentifierOf, type Cluster } from '../cluster';
import { configure } from '../configuration';
import { makeDirectories } from '../data';
import { ensureServer, ensureContent } from '../ensure';
import { readLog } from '../log';
import { completeArchive, fetchArchive, type RestorePlan } from './restore_archive';
import { LOW_PRIORITY } from '../programs';
import { endOf, assignOwner, stopPostgres, startPostgres } from '../server';
import { inSession, isUnavailable } from '../session';
import { nextDisk } from '../../disk_size';
import { planOf } from './restore_plan';
import { noteTimeline, timelineIn } from './timelines';

const answersWithinMs = 60_000;

/** @throws DriverError invalid where no backup covers the target; nothing is changed then */
export async function restore(cluster: Cluster, from: RestoreFrom, ctx: DriverContext): Promise<void> {
  const { serverDirectory, spec } = cluster;
  const plan = await planOf(cluster, from, ctx);
  if ((await readNote(serverDirectory, 'made')) === null)
    await writeNote(serverDirectory, 'restoring', { id: from.id });
  const disk = await nextDisk(cluster.engine, serverDirectory, spec);
  await rollBackOnFailure(cluster, ctx, () =>
    replaceData(
      serverDirectory,
      {
        key: `restore-${from.id}`,
        disk,
        fill: (temporary) => replay(cluster, plan, temporary, ctx),
        stop: () => stopAll(cluster, ctx),
        verify: async () => {
          await verifyData(cluster, ctx);
          await noteNewTimeline(cluster, plan);
          await writeNote(serverDirectory, 'made', { version: spec.version });
        },
        rollBack: () => Promise.resolve(),
      },
      ctx,
    ),
  );
  await removeNote(serverDirectory, 'restoring');
  await removeServerTree(stagingDirectoryOf(serverDirectory).path, ctx);
  await ensureServer(cluster, ctx);
}

/** If the work fails while the old data are in place, or in place again, their server is started again. */
export async function rollBackOnFailure(old: Cluster, ctx: DriverContext, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const isOld =
      !ctx.signal.aborted &&
      !(await isReplacing(old.serverDirectory)) &&
      (await dataMajorOf(old.serverDirectory.data)) !== null;
    // The server in place may run all the time: what failed did so before it was stopped.
    if (isOld) await stopPostgres(old, 'staging', ctx);
    // Whoever looks at it next says why it does not start. This error is why the work failed.
    if (isOld) await ensureServer(old, ctx).catch(() => undefined);
    throw error;
  }
}

/** Stops the server and the staging server. */
export async function stopAll(cluster: Cluster, ctx: DriverContext): Promise<void> {
  for (const which of ['staging', 'server'] as const) await stopPostgres(cluster, which, ctx);
}

/** A server directory within the directory, for a staging server with data that are not in place. */
export function stagingDirectoryOf(serverDirectory: ServerDirectory): ServerDirectory {
  const at = path.join(serverDirectory.path, 'staging');
  return {
    id: serverDirectory.id,
    path: at,
    data: path.join(at, 'data'),
    conf: path.join(at, 'conf'),
    run: path.join(at, 'run'),
  };
}

/** Verifies that the server responds with the new data, and applies users; it is closed to clients meanwhile. */
export async function verifyData(cluster: Cluster, ctx: DriverContext): Promise<void> {
  const { serverDirectory } = cluster;
  const owner = await assignOwner(cluster, serverDirectory.data, ctx);
  await configure(
    cluster,
    serverDirectory.data,
    await systemIdentifierOf(serverDirectory.data),
    owner,
    { kind: 'private' },
    ctx,
  );
  await startPostgres(cluster, 'server', serverDirectory.data, ctx);
  await ensureContent(cluster, driverContext(answersWithinMs, ctx.signal));
  await stopPostgres(cluster, 'server', ctx);
}

// The step `fill` of the replacement. It has no steps of its own: what a killed call has written is removed by the next
// one, so none of it would be found done.
async function replay(cluster: Cluster, plan: RestorePlan, temporary: string, ctx: DriverContext): Promise<void> {
  const { serverDirectory } = cluster;
  await stopPostgres(cluster, 'staging', ctx);
  await completeArchive(cluster, plan, ctx);
  const base = await baseOf(cluster, plan, ctx);
  const { low_priority } = cluster.spec;
  await unpack(path.join(base, 'base.tar.gz'), temporary, low_priority, ctx);
  await unpack(path.join(base, 'pg_wal.tar.gz'), path.join(temporary, 'pg_wal'), low_priority, ctx);
  await removeServerTree(fetchedBaseOf(serverDirectory), ctx);
  await removeServerTree(stagingDirectoryOf(serverDirectory).path, ctx);
  const staging: Cluster = { ...cluster, serverDirectory: stagingDirectoryOf(serverDirectory) };
  await makeDirectories(staging.serverDirectory);
  const archive = await fetchArchive(staging, plan, ctx);
  const owner = await assignOwner(cluster, temporary, ctx);
  await writeFileFor(path.join(temporary, 'recovery.signal'), '', owner);
  // The staging server sees its own directory only, which has a copy of the archive.
  const target: Record<string, string> =
    plan.until === null ? { recovery_target: 'immediate' } : { recovery_target_time: withOffset(plan.until) };
  try {
    await recover(staging, temporary, { archive, timeline: plan.timeline, target }, ctx);
  } catch (error) {
    if (!ctx.signal.aborted) await stopPostgres(staging, 'staging', ctx);
    throw error;
  }
}

// A file that cannot be unpacked now cannot be unpacked later.
async function unpack(file: string, to: string, isLow: true | undefined, ctx: DriverContext): Promise<void> {
  const [program = '', ...args] = [...(isLow ? LOW_PRIORITY : []), 'tar', '-xzf', file, '-C', to];
  await run(program, args, ctx).catch((error: unknown) => {
    if (!(error instanceof CommandFailed) || error.code === null) throw error;
    const message = `The file ${path.basename(file)} of the backup is damaged. ${failureTextOf(error.stderr) ?? ''}`;
    throw Object.assign(new DriverError('invalid', message.trim()), { cause: error });
  });
}

/** Directory of the base files: of the backup, or one to which they are downloaded. */
async function baseOf({ engine, serverDirectory }: Cluster, plan: RestorePlan, ctx: DriverContext): Promise<string> {
  const id = { serverId: plan.source.id, backupId: plan.backup.id };
  const here = path.join(backupsOf(engine, id.serverId), id.backupId, 'base');
  if (await exists(path.join(here, 'base.tar.gz'))) return here;
  const to = fetchedBaseOf(serverDirectory);
  await fetchFiles(engine, id, { names: baseFiles, to }, ctx);
  return to;
}

function fetchedBaseOf(serverDirectory: ServerDirectory): string {
  return path.join(serverDirectory.path, 'fetched');
}

// Recovers to the target; a WAL that ends before the target is replayed completely.
async function recover(
  staging: Cluster,
  temporary: string,
  { archive, timeline, target }: { archive: string; timeline: number; target: Record<string, string> },
  ctx: DriverContext,
): Promise<void> {
  const owner = await assignOwner(staging, temporary, ctx);
  for (const desired of [target, {}]) {
    const settings = {
      restore_command:
        `if test -f "${archive}/%f.gz"; then gzip -dc "${archive}/%f.gz" > "%p"; ` + `else cp "${archive}/%f" "%p"; fi`,
      recovery_target_timeline: timeline,
      recovery_target_action: 'promote',
      hot_standby: 'off',
      ...desired,
    };
    await configure(
      staging,
      temporary,
      await systemIdentifierOf(temporary),
      owner,
      { kind: 'recovery', settings },
      ctx,
    );
    await startPostgres(staging, 'staging', temporary, ctx);
    const failure = await promoted(staging, temporary, ctx);
    if (failure === null) return stopPostgres(staging, 'staging', ctx);
    await stopPostgres(staging, 'staging', ctx);
    if (!(await endedTooEarly(staging.serverDirectory))) throw failure;
  }
  throw new DriverError('transient', 'The write-ahead log of the server could not be replayed.');
}

// `Z` is a time zone name, and the server reads this setting before its time zone files.
function withOffset(time: string): string {
  return new Date(time).toISOString().replace('Z', '+00');
}

async function promoted(staging: Cluster, data: string, ctx: DriverContext): Promise<DriverError | null> {
  for (;;) {
    checkpoint(ctx);
    const isOpen = await inSession(staging, { data }, async (session) => {
      const { rows } = await session.query<{ follows: boolean }>('select pg_is_in_recovery() as follows');
      return rows[0]?.follows === false;
    }).catch((error: unknown) => {
      if (isUnavailable(error)) return false;
      throw error;
    });
    if (isOpen) return null;
    const end = await endOf(staging, 'staging');
    if (end !== null) return end;
    await sleep(100);
  }
}

async function endedTooEarly(serverDirectory: ServerDirectory): Promise<boolean> {
  for (let position: string | null = null, more = true; more;) {
    const chunk = await readLog(serverDirectory, position);
    if (chunk.lines.some(({ text }) => text.includes('recovery ended before configured recovery target was reached')))
      return true;
    ({ position, more } = chunk);
  }
  return false;
}

async function noteNewTimeline({ serverDirectory }: Cluster, plan: RestorePlan): Promise<void> {
  const { timelines, since, isStored } = plan.history;
  const timeline = await timelineIn(serverDirectory.data);
  if (isStored && since !== null && plan.source.id === serverDirectory.id)
    await noteArchivedSince(serverDirectory, since);
  await noteTimeline(serverDirectory, timelines, {
    timeline,
    parent: plan.timeline,
    since: new Date().toISOString(),
    point: plan.until ?? plan.backup.taken_at,
  });
}
