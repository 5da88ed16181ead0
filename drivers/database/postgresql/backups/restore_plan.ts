// Plan of a restore: the backup, and the WAL timeline. A host that has lost the data of a server, or never had them,
// reads their history from the store.
import type { RestoreFrom } from '../../../database';
import { DriverError, type DriverContext } from '../../../../core/driver';
import { serverDirectoryOf, type ServerDirectory } from '../../../hosted_server/server_directory';
import { archivedSince, leadingOn } from './archiving';
import { backupMissing, backupsFound, type Manifest } from './known_backups';
import { systemIdentifierOf, type Cluster, type PostgresqlContext } from '../cluster';
import type { RestorePlan } from './restore_archive';
import { storedHistory } from './stored_archive';
import { backupFor, timelineAt, timelinesOf } from './timelines';

/** @throws DriverError invalid where no backup covers the target */
export async function planOf({ engine, spec }: Cluster, from: RestoreFrom, ctx: DriverContext): Promise<RestorePlan> {
  const all = await backupsFound(engine, from.server_id, ctx);
  const source = serverDirectoryOf(engine, from.server_id);
  const named = all.find(({ id }) => id === from.backup_id);
  if (from.backup_id !== null && named === undefined) throw backupMissing();
  const plan =
    from.until === null
      ? named && (await planOfBackup(engine, source, named, ctx))
      : await planUntil(engine, source, named === undefined ? all : [named], from.until, ctx);
  if (!plan) throw new DriverError('invalid', 'No backup leads to this point in time.');
  const { version } = plan.backup;
  if (version !== spec.version)
    throw new DriverError('invalid', `A backup of PostgreSQL ${version} cannot be restored into ${spec.version}.`);
  return plan;
}

async function planOfBackup(
  engine: PostgresqlContext,
  source: ServerDirectory,
  backup: Manifest,
  ctx: DriverContext,
): Promise<RestorePlan> {
  const history = await historyOf(engine, source, backup.system_identifier, ctx);
  return { backup, timeline: backup.timeline, until: null, source, history };
}

/** The newest backup that covers the target. After a loss of data, the server has had several clusters. */
async function planUntil(
  engine: PostgresqlContext,
  source: ServerDirectory,
  backups: Manifest[],
  until: string,
  ctx: DriverContext,
): Promise<RestorePlan | null> {
  let best: RestorePlan | null = null;
  for (const systemIdentifier of new Set(backups.map(({ system_identifier }) => system_identifier))) {
    const history = await historyOf(engine, source, systemIdentifier, ctx);
    const timeline = timelineAt(history.timelines, until);
    const own = backups.filter((one) => one.system_identifier === systemIdentifier);
    const backup = backupFor(leadingOn(history.since, own), history.timelines, until, timeline);
    if (backup !== null && (best === null || backup.taken_at > best.backup.taken_at))
      best = { backup, timeline, until, source, history };
  }
  return best;
}

/** History from the host where it has the data, else from the store. */
async function historyOf(
  engine: PostgresqlContext,
  source: ServerDirectory,
  systemIdentifier: string,
  ctx: DriverContext,
): Promise<RestorePlan['history']> {
  const isHere = (await systemIdentifierOf(source.data).catch(() => null)) === systemIdentifier;
  const stored = isHere ? null : await storedHistory(engine, source.id, systemIdentifier, ctx);
  if (stored !== null) return { ...stored, isStored: true };
  return { since: await archivedSince(source), timelines: await timelinesOf(source), isStored: false };
}
