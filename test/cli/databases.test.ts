/** @tier heavy @quarter 4 @covers clients/cli/src/commands/databases.ts clients/cli/src/commands/psql.ts */
// Databases by the command line: created, opened, backed up and restored.
import * as fs from 'node:fs';
import path from 'node:path';
import { buildCli, openHome, type Home } from '../support/cli/svc';
import { hasPostgresqlTools, openHall, testWhere, type Hall } from '../support/databases/database_hall';

let hall: Hall;
let home: Home;
beforeAll(async () => {
  buildCli();
  hall = await openHall();
  home = openHome(hall.service);
});
afterAll(async () => {
  home?.remove();
  await hall?.close();
});

test('a database is created, opened without a secret on a command line, backed up and restored', async () => {
  const created = await home.output(['db', 'create', 'orders', '--wait', '--timeout', '90s', '--json']);
  expect(JSON.parse(created)).toMatchObject({ name: 'orders', engine: 'postgresql', status: 'available' });
  const address = new URL((await home.output(['db', 'url', 'orders'])).trim());
  // What a program of that name gets to see.
  const bin = path.join(home.directory, 'bin');
  fs.mkdirSync(bin);
  const program = [
    ...['#!/bin/sh', 'echo "$@"', 'test -s "$PGSSLROOTCERT" && env | grep ^PG | sort'],
    ...['env | grep -c SVC_TOKEN', 'exit 7'],
  ].join('\n');
  fs.writeFileSync(path.join(bin, 'psql'), program, { mode: 0o755 });
  const env = { PATH: `${bin}:${process.env.PATH}` };
  const { code, stdout } = await home.svc(['db', 'psql', 'orders', '--', '-Atc', 'select 1'], { env });
  expect([code, stdout.split('\n')]).toEqual([
    7,
    [
      '-Atc select 1',
      `PGDATABASE=${address.pathname.slice(1)}`,
      `PGHOST=${address.hostname}`,
      `PGPASSWORD=${decodeURIComponent(address.password)}`,
      `PGPORT=${address.port}`,
      'PGSSLMODE=verify-full',
      expect.stringMatching(/^PGSSLROOTCERT=.*ca\.pem$/),
      `PGUSER=${address.username}`,
      '0',
      '',
    ],
  ]);
  await home.output(['init', 'shop']);
  expect(await home.output(['attach', 'orders', '--prefix', 'ORDERS'])).toContain(
    'variables\tORDERS_URL, ORDERS_HOST,',
  );
  expect(await home.output(['env'])).toMatch(/^ORDERS_URL\tboth\torders$/m);
  expect(await home.output(['env', 'ls', '--json'])).toContain('"managed_by": "att_');
  expect(await home.output(['attachments'])).toMatch(/^orders\tdatabase\tORDERS_URL, /);
  await home.output(['detach', 'orders', '--yes']);
  expect(await home.output(['env'])).toBe('');
  expect(await home.svc(['db', 'url', 'lost'])).toMatchObject({ code: 4, stderr: expect.stringContaining('orders') });
  expect(await home.svc(['db', 'restore', 'orders'])).toMatchObject({ code: 2 });
}, 120_000);

testWhere(hasPostgresqlTools(), 'PostgreSQL with its tools is not installed')(
  'psql opens a database, and a backup restores it',
  async () => {
    const psql = (sql: string): Promise<string> => home.output(['db', 'psql', 'orders', '--', '-qAtc', sql]);
    expect(
      await psql(
        `create table notes (content text); insert into notes values (1);
          select ssl from pg_stat_ssl where pid = pg_backend_pid()`,
      ),
    ).toBe('t\n');
    const taken = JSON.parse(await home.output(['db', 'backup', 'orders', '--note', 'before', '--wait', '--json']));
    expect(taken).toMatchObject({ status: 'completed', note: 'before' });
    expect(await home.output(['db', 'backups', 'orders'])).toContain(`${taken.id}\tmanual\tcompleted\t`);
    const proven = JSON.parse(await home.output(['db', 'prove', 'orders', '--wait', '--json']));
    expect(proven).toMatchObject({ id: taken.id, proof_status: 'proven', proof_rows: 1 });
    expect(await home.output(['db', 'backups', 'orders'])).toMatch(/\tbefore\tproven\t[^\t]+\t\d+/);
    await home.output(['db', 'download', 'orders', 'orders.dump']);
    const file = path.join(home.folder, 'orders.dump');
    const whole = fs.readFileSync(file);
    expect([fs.statSync(file).mode & 0o777, whole.subarray(0, 5).toString()]).toEqual([0o600, 'PGDMP']);
    expect(await home.svc(['db', 'download', 'orders', 'orders.dump'])).toMatchObject({ code: 2 });
    expect(await home.svc(['db', 'download', 'orders', 'no/such/folder'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no\/such\/folder could not be written: /),
    });
    expect(fs.readdirSync(home.folder).filter((name) => name.endsWith('.part'))).toEqual([]);
    await psql('delete from notes');
    const refused = await home.svc(['db', 'restore', 'orders', '--backup', taken.id]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
    await home.output(['db', 'restore', 'orders', '--backup', taken.id, '--yes', '--wait']);
    expect(await psql('select count(*) from notes')).toBe('1\n');
    const before = await home.output(['db', 'url', 'orders']);
    expect(await home.svc(['db', 'rotate', 'orders'])).toMatchObject({ code: 2 });
    await home.output(['db', 'rotate', 'orders', '--immediate', '--yes']);
    expect(await home.output(['db', 'url', 'orders'])).not.toBe(before);
    expect(await psql('select count(*) from notes')).toBe('1\n');
    await home.output(['db', 'rm', 'orders', '--yes']);
    expect(await home.svc(['db', 'url', 'orders'])).toMatchObject({ code: 4 });
    expect(await home.output(['db', 'backups', '--deleted'])).toContain(`orders\t${taken.id}\tmanual\tcompleted\t`);
    expect(await home.output(['db', 'backups', 'other', '--deleted'])).toBe('');
    expect(await home.svc(['db', 'backups'])).toMatchObject({ code: 2, stderr: expect.stringContaining('--deleted') });
    const lost = await home.svc(['db', 'create', 'orders', '--from-backup', 'bkp_lost']);
    expect(lost).toMatchObject({ code: 4, stderr: expect.stringContaining('no backup bkp_lost') });
    await home.output(['db', 'create', 'orders', '--from-backup', taken.id, '--wait', '--timeout', '90s']);
    expect(await psql('select count(*) from notes')).toBe('1\n');
  },
  120_000,
);
