// Plan of a restore: the backup, and the WAL timeline. A host that has lost the data of a server, or never had them,
// reads their history from the store. The recovery window is made of the same plans.
import type { RestoreFrom } from '../../../database';
import { DriverError, type DriverContext } from '../../../../core/driver';
import { serverDirectoryOf, type ServerDirectory } from '../../../hosted_server/server_directory';
import { archivedSince, leadingOn } from './archiving';
import { backupMissing, backupsFound, type Manifest } from './known_backups';
import { systemIdentifierOf, type Cluster, type PostgresqlContext } from '../cluster';
import type { RestorePlan } from './restore_archive';
import { storedHistory } from './stored_archive';
import { backupFor, timelineAt, timelinesOf } from './timelines';

/** What a cluster can be recovered from; a server has had several clusters after an upgrade or a loss of data. */
export interface Recoverable {
  history: RestorePlan['history'];
  /** Backups that allow point-in-time recovery, oldest first. */
  backups: Manifest[];
}

/** @throws DriverError invalid where no backup covers the target */
export async function planOf({ engine, spec }: Cluster, from: RestoreFrom, ctx: DriverContext): Promise<RestorePlan> {
  const all = await backupsFound(engine, from.server_id, ctx);
  const source = serverDirectoryOf(engine, from.server_id);
  const named = all.find(({ id }) => id === from.backup_id);
  if (from.backup_id !== null && named === undefined) throw backupMissing();
  if (named !== undefined && named.version !== spec.version)
    throw new DriverError(
      'invalid',
      `A backup of PostgreSQL ${named.version} cannot be restored into ${spec.version}.`,
    );
  const backups = named === undefined ? all.filter(({ version }) => version === spec.version) : [named];
  const plan =
    from.until === null
      ? named && (await planOfBackup(engine, source, named, ctx))
      : await planUntil(engine, source, backups, from.until, ctx);
  if (!plan) throw new DriverError('invalid', 'No backup leads to this point in time.');
  return plan;
}

/** The cluster of these backups; null where nothing is known of its archive. */
export async function recoverableOf(
  engine: PostgresqlContext,
  source: ServerDirectory,
  backups: Manifest[],
  systemIdentifier: string,
  ctx: DriverContext,
): Promise<Recoverable | null> {
  const history = await historyOf(engine, source, systemIdentifier, ctx);
  if (history === null) return null;
  const own = backups.filter((one) => one.system_identifier === systemIdentifier);
  return { history, backups: leadingOn(history.since, own) };
}

/** The newest backup that covers the target, and the timeline of that time. */
export function pointIn(
  { history, backups }: Recoverable,
  until: string,
): { backup: Manifest; timeline: number } | null {
  const timeline = timelineAt(history.timelines, until);
  const backup = backupFor(backups, history.timelines, until, timeline);
  return backup && { backup, timeline };
}

async function planOfBackup(
  engine: PostgresqlContext,
  source: ServerDirectory,
  backup: Manifest,
  ctx: DriverContext,
): Promise<RestorePlan> {
  const history = (await historyOf(engine, source, backup.system_identifier, ctx)) ?? {
    since: null,
    timelines: await timelinesOf(source),
    isStored: false,
  };
  return { backup, timeline: backup.timeline, until: null, source, history };
}

/** The newest backup that covers the target. */
async function planUntil(
  engine: PostgresqlContext,
  source: ServerDirectory,
  backups: Manifest[],
  until: string,
  ctx: DriverContext,
): Promise<RestorePlan | null> {
  let best: RestorePlan | null = null;
  for (const systemIdentifier of new Set(backups.map(({ system_identifier }) => system_identifier))) {
    const from = await recoverableOf(engine, source, backups, systemIdentifier, ctx);
    const point = from && pointIn(from, until);
    if (point && (best === null || point.backup.taken_at > best.backup.taken_at))
      best = { ...point, until, source, history: from.history };
  }
  return best;
}

/** History from the host where it has the data, else from the store; null for data that neither has. */
async function historyOf(
  engine: PostgresqlContext,
  source: ServerDirectory,
  systemIdentifier: string,
  ctx: DriverContext,
): Promise<RestorePlan['history'] | null> {
  const here = await systemIdentifierOf(source.data).catch(() => null);
  const stored = here === systemIdentifier ? null : await storedHistory(engine, source.id, systemIdentifier, ctx);
  if (stored !== null) return { ...stored, isStored: true };
  if (here !== null && here !== systemIdentifier) return null;
  return { since: await archivedSince(source), timelines: await timelinesOf(source), isStored: false };
}
