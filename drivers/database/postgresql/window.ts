// The points in time that a restore can reach.
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { findServerDirectory } from '../../hosted_server/server_directory';
import { stateOf } from '../../hosted_server/unit';
import { leadingOn } from './archiving';
import { backupsFound } from './backups';
import { systemIdentifierOf, type PostgresqlContext } from './cluster';

/** The archive is behind when a file of the log waits longer. */
const archivedWithinMs = 3 * 60_000;

/** null where there is none. */
export async function windowOf(
  engine: PostgresqlContext,
  id: string,
): Promise<{ earliest: string; latest: string } | null> {
  const serverDirectory = await findServerDirectory(engine, id);
  if (typeof serverDirectory === 'string') return null;
  const systemIdentifier = await systemIdentifierOf(serverDirectory.data).catch(() => null);
  const [first] = await leadingOn(
    serverDirectory,
    (await backupsFound(engine, id)).filter((one) => one.system_identifier === systemIdentifier),
  );
  if (first === undefined) return null;
  const waiting = await oldestWaiting(path.join(serverDirectory.data, 'pg_wal', 'archive_status'));
  const { state } = await stateOf(engine, id);
  const isBehind = waiting !== null && (state.state !== 'running' || Date.now() - waiting > archivedWithinMs);
  const latest = new Date(isBehind ? waiting : Date.now()).toISOString();
  return { earliest: first.taken_at, latest: latest > first.taken_at ? latest : first.taken_at };
}

/** Since when a file of the log waits for its archive, null where none does. */
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
