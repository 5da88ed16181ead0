// The recovery window of a server.
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { driverContext, type DriverContext } from '../../../../core/driver';
import { openServerDirectory, serverDirectoryOf, type ServerDirectory } from '../../../hosted_server/server_directory';
import { stateOf } from '../../../hosted_server/unit';
import { archivedSince, leadingOn } from './archiving';
import { backupsFound, backupsHere, type Manifest } from './known_backups';
import { dataMajorOf, systemIdentifierOf, type PostgresqlContext } from '../cluster';
import { storedHistory, storedUntil } from './stored_archive';

/** The archive is late when a WAL file waits longer. */
const archivedWithinMs = 3 * 60_000;
const storeAnswersWithinMs = 3_000;

interface Window {
  earliest: string;
  latest: string;
}

/** null where there is no window. */
export async function windowOf(engine: PostgresqlContext, id: string, ctx: DriverContext): Promise<Window | null> {
  const found = await openServerDirectory(engine, id);
  if (found === 'foreign') return null;
  const serverDirectory = found === 'absent' ? serverDirectoryOf(engine, id) : found;
  const systemIdentifier = await systemIdentifierOf(serverDirectory.data).catch(() => null);
  const backups = await backupsKnown(engine, id, ctx);
  const [first] = leadingOn(
    await archivedSince(serverDirectory),
    backups.filter((one) => one.system_identifier === systemIdentifier),
  );
  if (first === undefined) return storedWindow(engine, serverDirectory, backups, ctx);
  const waiting = await oldestWaiting(path.join(serverDirectory.data, 'pg_wal', 'archive_status'));
  const { state } = await stateOf(engine, id);
  const isBehind = waiting !== null && (state.state !== 'running' || Date.now() - waiting > archivedWithinMs);
  const latest = new Date(isBehind ? waiting : Date.now()).toISOString();
  return { earliest: first.taken_at, latest: latest > first.taken_at ? latest : first.taken_at };
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
  ctx: DriverContext,
): Promise<Window | null> {
  const major = await dataMajorOf(serverDirectory.data);
  const newest = backups.filter(({ version }) => major === null || version === major).at(-1);
  if (!engine.store || newest === undefined) return null;
  const soon = driverContext(storeAnswersWithinMs, ctx.signal);
  const { id } = serverDirectory;
  try {
    const history = await storedHistory(engine, id, newest.system_identifier, soon);
    const own = backups.filter((one) => one.system_identifier === newest.system_identifier);
    const [first] = leadingOn(history?.since ?? null, own);
    const latest = first && (await storedUntil(engine, id, newest.system_identifier, soon));
    return first && latest
      ? { earliest: first.taken_at, latest: latest > first.taken_at ? latest : first.taken_at }
      : null;
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
