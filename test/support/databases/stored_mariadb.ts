// A MariaDB whose backup goes to a store, and comes back from it on a machine that has nothing else.
import { rmSync } from 'node:fs';
import type { BackupStore } from '../../../drivers/backup_store';
import { hostFacts } from '../../../drivers/host';
import { claimPorts } from '../processes/claimed_ports';
import { ctx, openServerTrial, settle, specOf } from './database_server';
import { untilDone } from '../engines';
import { mariadbServers } from './hosted_servers';
import { answersFor } from './mariadb_trial';

/** The store is empty afterwards. @param keys of all that is in it */
export async function restoreMariadbElsewhere(store: BackupStore, keys: () => Promise<string[]>): Promise<void> {
  const { mariadb: found } = await hostFacts();
  const ports = await claimPorts();
  const trials = [await openServerTrial(), await openServerTrial()];
  const [one, two] = trials.map(({ runtime, root }) =>
    mariadbServers({ runtime, directory: `${root}/databases`, found, store }),
  );
  try {
    const spec = specOf('mariadb', found[0]!.series, ports.first, { id: 'db_mariadb_stored', tenant: 14 });
    const app = (of: typeof spec, ...statements: string[]) => answersFor(of, 'app', of.users[0]!.password, statements);
    await settle(one!, spec);
    const make = 'CREATE TABLE notes (word VARCHAR(20))';
    expect(await app(spec, make, "INSERT INTO notes VALUES ('kept')")).toEqual(['ok', 'ok']);
    const made = await untilDone((context) => one!.backup(spec, 'bkp_stored', context));
    expect(made.size_bytes).toBeGreaterThan(0);
    expect((await keys()).sort()).toEqual(
      ['dump.sql.gz', 'manifest.json'].map((name) => `${spec.id}/backups/bkp_stored/${name}`),
    );
    await app(spec, "INSERT INTO notes VALUES ('lost')");
    await one!.remove(spec.id, ctx());
    rmSync(`${trials[0]!.root}/databases`, { recursive: true, force: true });

    const same = { ...spec, port: ports.first + 1 };
    expect(await two!.hasData(spec.id)).toBe(false);
    const from = { id: 'rst', server_id: spec.id, backup_id: 'bkp_stored', until: null };
    await untilDone((context) => two!.restore(same, from, context));
    expect(await two!.hasData(spec.id)).toBe(true);
    await settle(two!, same);
    expect(await app(same, 'SELECT word FROM notes')).toEqual([[{ word: 'kept' }]]);
    await two!.removeBackup(spec.id, 'bkp_stored', ctx());
    expect(await keys()).toEqual([]);
    await two!.remove(spec.id, ctx());
  } finally {
    for (const trial of trials) await trial.close();
    await ports.release();
  }
}
