// The recovery window of a server: the moments that a restore has a plan for.
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { driverContext, type DriverContext } from '../../../../core/driver';
import type { RecoveryWindow } from '../../../hosted_server';
import { openServerDirectory, serverDirectoryOf, type ServerDirectory } from '../../../hosted_server/server_directory';
import { stateOf } from '../../../hosted_server/unit';
import { backupsFound, backupsHere, type Manifest } from './known_backups';
import { dataMajorOf, systemIdentifierOf, type PostgresqlContext } from '../cluster';
import { pointIn, recoverableOf, type Recoverable } from './restore_plan';
import { storedUntil } from './stored_archive';

/** The archive is late when a WAL file waits longer. */
const archivedWithinMs = 3 * 60_000;
const storeAnswersWithinMs = 3_000;

/** null where there is no window. Backups of other versions do not count: they become copies only. */
export async function windowOf(
  engine: PostgresqlContext,
  id: string,
  ctx: DriverContext,
): Promise<RecoveryWindow | null> {
  const found = await openServerDirectory(engine, id);
  if (found === 'foreign') return null;
  const serverDirectory = found === 'absent' ? serverDirectoryOf(engine, id) : found;
  const systemIdentifier = await systemIdentifierOf(serverDirectory.data).catch(() => null);
  const major = await dataMajorOf(serverDirectory.data);
  const backups = (await backupsKnown(engine, id, ctx)).filter(({ version }) => major === null || version === major);
  const soon = driverContext(storeAnswersWithinMs, ctx.signal);
  const here =
    systemIdentifier === null ? null : await recoverableOf(engine, serverDirectory, backups, systemIdentifier, soon);
  if (!here?.backups.length) return storedWindow(engine, serverDirectory, backups, soon);
  const waiting = await oldestWaiting(path.join(serverDirectory.data, 'pg_wal', 'archive_status'));
  const { state } = await stateOf(engine, id);
  const isBehind = waiting !== null && (state.state !== 'running' || Date.now() - waiting > archivedWithinMs);
  return reachOf(here, new Date(isBehind ? waiting : Date.now()).toISOString());
}

/**
 * The moments up to `until` for which there is a plan: what a plan depends on changes only with a backup and with a
 * timeline.
 */
function reachOf(from: Recoverable, until: string): RecoveryWindow | null {
  const { backups, history } = from;
  const taken = backups.map(({ taken_at }) => taken_at);
  const [first] = taken;
  if (first === undefined) return null;
  const latest = until > first ? until : first;
  const turns = [...taken, ...history.timelines.map(({ since }) => since)];
  const starts = [...new Set(turns)].filter((at) => at >= first && at <= latest).sort();
  const parts = starts.map((at, index) => ({ from: at, to: before(starts[index + 1]) ?? latest }));
  const reached = parts.filter((part) => pointIn(from, part.from) !== null);
  const [oldest, newest] = [reached[0], reached.at(-1)];
  if (!oldest || !newest) return null;
  const gaps = parts.filter((part) => !reached.includes(part) && part.from > oldest.from && part.from < newest.from);
  return { earliest: oldest.from, latest: newest.to, ...(gaps.length > 0 && { gaps }) };
}

function before(moment: string | undefined): string | undefined {
  return moment === undefined ? undefined : new Date(Date.parse(moment) - 1).toISOString();
}

/** Falls back to local manifests where the store is unavailable. */
async function backupsKnown(engine: PostgresqlContext, id: string, ctx: DriverContext): Promise<Manifest[]> {
  const soon = driverContext(storeAnswersWithinMs, ctx.signal);
  return backupsFound(engine, id, soon).catch(() => backupsHere(engine, id));
}

/** Window of a server whose data, or whose host, were lost: up to the last upload. */
async function storedWindow(
  engine: PostgresqlContext,
  serverDirectory: ServerDirectory,
  backups: Manifest[],
  soon: DriverContext,
): Promise<RecoveryWindow | null> {
  const newest = backups.at(-1);
  if (!engine.store || newest === undefined) return null;
  const of = newest.system_identifier;
  try {
    const from = await recoverableOf(
      engine,
      serverDirectory,
      backups.filter(({ version }) => version === newest.version),
      of,
      soon,
    );
    const latest = from?.history.isStored && (await storedUntil(engine, serverDirectory.id, of, soon));
    return from && latest ? reachOf(from, latest) : null;
  } catch {
    return null;
  }
}

/** Age of the oldest WAL file waiting to be archived, as a time; null where none is waiting. */
async function oldestWaiting(directory: string): Promise<number | null> {
  const waiting = (await readdir(directory).catch(() => [])).filter((file) => file.endsWith('.ready'));
  const times = await Promise.all(
    waiting.map((file) =>
      stat(path.join(directory, file)).then(
        ({ mtimeMs }) => mtimeMs,
        () => Infinity,
      ),
    ),
  );
  return times.length === 0 ? null : Math.min(...times);
}
