// Upgrades and rollbacks end while the service restarts: it writes into the activity what became of them when it runs.
import { repeatWork } from '../../core/process/background';
import { PLATFORM, recordOperatorEvent } from '../../models/projects/activity';
import { named } from '../../db/statement';
import type { Platform } from '../platform/platform';
import { installationOrNull } from '../upgrade/installation';
import { readJournal, type Journal } from '../upgrade/journal';

const CHECK_EVERY_MS = 60_000;
// Of several processes one writes it.
const LOCK = named(`select pg_advisory_xact_lock(hashtext('platform-api upgrade note'))`);
const NOTED = named(`select 1 from activity where resource_type = 'installation' and resource_id = $1
  and action = $2 limit 1`);

/** Stops with the returned function. */
export function startUpgradeNote({ database }: Pick<Platform, 'database'>): () => Promise<void> {
  const installation = installationOrNull();
  if (installation === null) return async () => {};
  let noted: string | null = null;
  const work = repeatWork({ name: 'upgrade_note', everyMs: CHECK_EVERY_MS }, async () => {
    const journal = readJournal(installation, 'last');
    if (!journal?.ended_at || journal.started_at === noted) return;
    await noteUpgrade(database, journal);
    noted = journal.started_at;
  });
  work.runNow();
  return () => work.stop();
}

/** Once for each: the entry is about the moment at which it began. */
export async function noteUpgrade(
  database: Pick<Platform['database'], 'transaction'>,
  { kind, from, to, outcome, started_at, by }: Journal,
): Promise<void> {
  const action = `installation.${kind === 'upgrade' ? 'upgrade' : 'rollback'}_${outcome}`;
  await database.transaction(async (sql) => {
    await sql.query(LOCK, []);
    if ((await sql.query(NOTED, [started_at, action])).length) return;
    const resource = { type: 'installation', id: started_at, name: `${from} → ${to ?? '?'}` };
    await recordOperatorEvent(sql, { action, resource, name: by ?? PLATFORM.name });
  });
}
