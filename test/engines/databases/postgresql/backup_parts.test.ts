/** @tier heavy @quarter 4 @covers drivers/database/postgresql/backups */
// A backup of PostgreSQL is made of a base and a dump: what of it fails, and what that costs.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import type { DatabaseServer } from '../../../../drivers/database';
import { ctx } from '../../../support/databases/database_server';
import { describePostgresqlWithTools } from '../../../support/databases/database_hall';
import { postgresqlServers, type Servers } from '../../../support/databases/hosted_servers';
import {
  openEngineTrial,
  postgresqlSpec,
  rows,
  untilDone,
  wholePostgresql,
  type EngineTrial,
} from '../../../support/engines';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(180_000);

describePostgresqlWithTools(() => {
  let one: EngineTrial;
  let spec: DatabaseServer;
  let programs: string;
  let driver: Servers;

  /** The programs of this host, with a pg_dump that first does something else. */
  beforeAll(async () => {
    one = await openEngineTrial();
    const whole = (await wholePostgresql())!;
    programs = mkdtempSync(path.join(one.trial.root, 'programs-'));
    chmodSync(programs, 0o755);
    const bin = path.join(programs, 'bin');
    mkdirSync(bin, { mode: 0o755 });
    for (const name of readdirSync(path.dirname(whole.path)))
      symlinkSync(path.join(path.dirname(whole.path), name), path.join(bin, name));
    driver = postgresqlServers({
      ...{ runtime: one.trial.runtime, directory: one.directory, disks: one.trial.disks, store: null },
      found: [{ ...whole, path: path.join(bin, 'postgres'), source: 'system' }],
    });
    dumpWith('exec "$real" "$@"');
    spec = postgresqlSpec(whole.series, one.firstPort, { archive: true, replicas: [] });
    await untilDone((context) => driver.ensure(spec, context));
    await rows(spec, "create table notes (note text); insert into notes values ('a')");
  });
  afterAll(() => one?.close());

  function dumpWith(script: string): void {
    const at = path.join(programs, 'bin', 'pg_dump');
    rmSync(at, { force: true });
    writeFileSync(at, `#!/bin/sh\nreal=/usr/lib/postgresql/${spec?.version ?? ''}/bin/pg_dump\n${script}\n`, {
      mode: 0o755,
    });
  }
  const placeOf = (id: string) => path.join(one.directory, 'backups', spec.id, id);
  const baseOf = (id: string) => statSync(path.join(placeOf(id), 'base/base.tar.gz')).ino;

  test('a base is kept while its dump is tried again, and is a point in time at once', async () => {
    const blocker = new Client({
      ...{ host: '127.0.0.1', port: spec.port, database: 'app', user: 'app', password: spec.users[0]!.password },
      ssl: { rejectUnauthorized: false },
    });
    await blocker.connect();
    await blocker.query('begin');
    await blocker.query('lock table notes in access exclusive mode');
    const flag = path.join(one.trial.root, 'killed-once');
    dumpWith(`if test ! -e ${flag}; then : > ${flag}; kill -9 $$; fi; exec "$real" "$@"`);
    const first = driver.backup(spec, 'bkp_kept', ctx());
    await expect(first).rejects.toMatchObject({
      reason: 'transient',
      message: expect.stringMatching(/pg_dump .* signal/),
    });
    const base = baseOf('bkp_kept');
    expect(await driver.window(spec.id, ctx())).not.toBeNull();
    const second = untilDone((context) => driver.backup(spec, 'bkp_kept', context));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await blocker.query('commit');
    await blocker.end();
    const made = await second;
    expect([made.manifest.missing, made.manifest.dump]).toEqual([undefined, undefined]);
    expect(baseOf('bkp_kept')).toBe(base);
    expect(existsSync(path.join(placeOf('bkp_kept'), 'dump'))).toBe(true);
    expect(readdirSync(placeOf('bkp_kept')).filter((name) => /new|temporary/.test(name))).toEqual([]);
  });

  test('a dump that fails costs the download alone, and its reason has neither paths nor passwords', async () => {
    dumpWith(
      `echo 'pg_dump: error: query failed: ERROR:  out of shared memory' >&2
      echo 'HINT:  You might need to increase max_locks_per_transaction.' >&2
      echo 'pg_dump: detail: Query was: LOCK TABLE "/var/lib/x/y" password=hunter2' >&2; exit 1`,
    );
    const made = await untilDone((context) => driver.backup(spec, 'bkp_bare', context));
    expect(made.manifest.missing).toBe(
      'The dump for downloads could not be made; the backup can be restored. pg_dump: error: query failed: ERROR: ' +
        'out of shared memory HINT: You might need to increase max_locks_per_transaction. ' +
        'pg_dump: detail: Query was: LOCK TABLE "…" password=…',
    );
    await expect(driver.openBackup(spec.id, 'bkp_bare')).rejects.toMatchObject({ reason: 'conflict' });
    expect(await driver.backup(spec, 'bkp_bare', ctx())).toEqual(made);
    await rows(spec, 'truncate notes');
    await untilDone((context) =>
      driver.restore(spec, { id: 'v1', server_id: spec.id, backup_id: 'bkp_bare', until: null }, context),
    );
    expect(await rows(spec, 'select note from notes')).toEqual([{ note: 'a' }]);
  });

  test('a dump of another state than that of the base is not made', async () => {
    const flag = path.join(one.trial.root, 'killed-twice');
    dumpWith(`if test ! -e ${flag}; then : > ${flag}; kill -9 $$; fi; exec "$real" "$@"`);
    await expect(driver.backup(spec, 'bkp_before', ctx())).rejects.toMatchObject({ reason: 'transient' });
    await untilDone((context) =>
      driver.restore(spec, { id: 'v2', server_id: spec.id, backup_id: 'bkp_kept', until: null }, context),
    );
    const made = await untilDone((context) => driver.backup(spec, 'bkp_before', context));
    expect(made.manifest.missing).toMatch(/The database was restored or upgraded before the dump was made\.$/);
  });
});
