// Brings the control database of a restored backup to a moment after it: its server replays the write-ahead log, as for
// a recovery to a point in time (PostgreSQL manual, "Continuous Archiving and Point-in-Time Recovery").
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { driverContext } from '../../core/driver';
import { run } from '../../core/process/command';
import { openEmbedded } from '../platform/embedded';
import { engineUser } from '../platform/embedded/engine_user';
import { openSession, type OwnSession } from '../platform/session';

const REPLAYED_WITHIN_MS = 4 * 3_600_000;
const CHOWN_WITHIN_MS = 600_000;

interface Recovery {
  config: Config;
  /** Has data-NN and the password of its server; they are moved to `postgres` of `directory`. */
  prepared: { data: string; password: string };
  /** Made for it. The user of PostgreSQL can enter it. */
  directory: string;
  /** Segments of the log. */
  log: string;
  /** RFC 3339. A commit of after it is in the log. */
  moment: string;
}

/**
 * May be called again after it was cut off. @returns what `inspect` reads of the recovered database
 * @throws StartupError where the log cannot be replayed
 */
export async function recoverControlDatabase<T>(
  { config, prepared, directory, log, moment }: Recovery,
  inspect: (session: OwnSession) => Promise<T>,
): Promise<T> {
  const home = path.join(directory, 'postgres');
  await mkdir(home, { recursive: true, mode: 0o711 });
  if (existsSync(prepared.password)) await rename(prepared.password, path.join(home, 'password'));
  for (const name of existsSync(prepared.data) ? await readdir(prepared.data) : []) {
    await writeFile(path.join(prepared.data, name, 'recovery.signal'), '', { mode: 0o600 });
    await giveToEngine(config, path.join(prepared.data, name));
    await rename(path.join(prepared.data, name), path.join(home, name));
  }
  await giveToEngine(config, log);
  const engine = await openEmbedded({
    ...{ dataDir: directory, user: config.postgresUser, binaries: config.pgBin ?? undefined },
    ...{ flags: recoveryFlags(log, moment), startWithinMs: REPLAYED_WITHIN_MS },
  });
  try {
    const session = await openSession(engine.url);
    return await inspect(session).finally(() => session.close());
  } finally {
    await engine.close();
  }
}

/** A server that is not to recover, since it has, does not read them. */
function recoveryFlags(log: string, moment: string): string[] {
  const source = `'${path.join(log, 'SEGMENT').replaceAll("'", `'\\''`)}'`;
  const command = `cp ${source.replaceAll('%', '%%').replace('SEGMENT', '%f')} "%p"`;
  return [
    ...['-c', `restore_command=${command}`, '-c', 'recovery_target_action=promote', '-c', 'hot_standby=off'],
    ...['-c', 'recovery_target_timeline=current'],
    // `Z` is a name of a zone, which the server does not know before it has read their files.
    ...['-c', `recovery_target_time=${new Date(moment).toISOString().replace('Z', '+00')}`],
  ];
}

/** PostgreSQL refuses data of another user. */
async function giveToEngine(config: Config, directory: string): Promise<void> {
  const { uid, gid } = engineUser(config.postgresUser).spawn;
  if (uid !== undefined) await run('chown', ['-R', `${uid}:${gid}`, '--', directory], driverContext(CHOWN_WITHIN_MS));
}
