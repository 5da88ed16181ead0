// After a rotation of the secret key: each value of each sealed column is encrypted with the new key, and nothing needs
// the old one.
import { randomBytes } from 'node:crypto';
import type { Sql } from '../../core/context';
import { loadKeyRing, secretBox, type SecretBox } from '../../core/secrets';
import { reencryptColumns } from '../../models/base/reencrypt';
import { sealedColumns, type SealedColumn } from '../../models/base/sealed_columns';
import { SAMPLE_SETTINGS } from '../support/builds/sample_repository';
import { readSource, repositoryFiles } from '../support/runner/repository';
import { startService, type TestService } from '../support/service';
import { openWorld, type World } from '../support/world';

let service: TestService;
let world: World;
let old: SecretBox;
let rotated: SecretBox;
let fresh: SecretBox;

beforeAll(async () => {
  service = await startService({ settings: SAMPLE_SETTINGS });
  world = openWorld(service);
  const ring = loadKeyRing({ setting: null, dataDir: service.dataDir });
  const added = { id: 'added', key: randomBytes(32) };
  [old, rotated, fresh] = [secretBox(ring), secretBox([added, ...ring]), secretBox([added])];
});
afterAll(() => service.close());

const columns = Object.values<SealedColumn>(sealedColumns);
const places = columns.flatMap((one) => one.tables.map((table) => [`${table}.${one.column}`, table, one] as const));

/** Kinds that have a sealed column. */
const KINDS = [
  ...['environment_variable', 'notifier', 'observer', 'dns_zone', 'email_domain', 'bucket_access_key', 'run'],
  ...['git_integration', 'shared_repository', 'database', 'database_user', 'database_replica', 'approval'],
  ...['database_import', 'volume_backup', 'preview'],
];

/** Rows that no request to the API makes. */
const ROWS = [
  `insert into authorities (id, certificate, key) values ('test', 'PEM', '')`,
  `insert into acme_accounts (authority, key) values ('https://ca.example.com/', '')`,
  `insert into certificates (id, domain_id) select 'www.example.com', id from domains limit 1 on conflict do nothing`,
  `insert into git_repositories (id, project_id, git_integration_id, repository_id, full_name, clone_url, sealed_hook,
      hook_hash) select 'grp_1', project_id, id, '1', 'acme/shop', 'https://git.example.com/acme/shop.git', '', ''
    from git_integrations limit 1`,
  `insert into email_outbox (id, recipients, sealed) values ('mail', '{}', '')`,
  `insert into idempotency_records (scope, fingerprint, answer) values ('scope', 'print', '')`,
  `insert into oauth_records (kind, hash, payload) values ('AccessToken', 'same', ''), ('Session', 'same', '')`,
  // More than two pages.
  `insert into login_attempts (hash, browser_hash, payload, expires_at)
    select 'attempt ' || n, '', '', now() + interval '1 day' from generate_series(1, 1100) n`,
];

interface Value {
  key: string[];
  sealed: string;
}

const valuesOf = (table: string, { column, key }: SealedColumn): Promise<Value[]> =>
  service.sql<Value>(
    `select array[${key.join()}]::text[] as key, ${column} as sealed from ${table} where ${column} is not null`,
  );

/** Every column of every row gets a value, if it has none. */
async function fill(): Promise<void> {
  for (const kind of KINDS) await world.id(kind);
  await world.id('domain');
  for (const row of ROWS) await service.sql(row);
  await service.sql(`update certificates set chain = 'PEM', key = '' where chain is null`);
  for (const [place, table, { column, key, contextOf }] of places) {
    const rows = await service.sql<{ key: string[] }>(
      `select array[${key.join()}]::text[] as key from ${table} where coalesce(${column}, '') = ''`,
    );
    for (const row of rows)
      await service.sql(
        `update ${table} set ${column} = $1 where (${key.join()}) = (${key.map((_, i) => `$${i + 2}`).join()})`,
        [old.seal(`secret of ${place}`, contextOf(...row.key)), ...row.key],
      );
  }
}

/** What a key has sealed, anywhere in the database. */
async function tracesOf({ prefix }: SecretBox): Promise<string[]> {
  const all = await service.sql<{ table: string; column: string }>(
    `select table_name::text as table, column_name::text as column from information_schema.columns
      where table_schema = 'public' and data_type in ('text', 'jsonb', 'json', 'ARRAY', 'character varying')`,
  );
  const traces: string[] = [];
  for (const { table, column } of all) {
    const found = await service.sql(`select 1 as one from "${table}" where "${column}"::text like $1 limit 1`, [
      `%${prefix}%`,
    ]);
    if (found.length) traces.push(`${table}.${column}`);
  }
  return traces.sort();
}

test('all values are encrypted with the new key, and open without the old one', async () => {
  await fill();
  expect(await tracesOf(old)).toEqual(places.map(([place]) => place).sort());
  const before = new Map<string, string>();
  for (const [place, table, column] of places)
    for (const { key, sealed } of await valuesOf(table, column))
      before.set(`${place} ${key.join()}`, old.open(sealed, column.contextOf(...key)));

  const done = await reencryptColumns(service.platform.database, rotated);
  expect(done.map(({ place, unreadable }) => [place, unreadable])).toEqual(places.map(([place]) => [place, 0]));
  expect(done.reduce((sum, { reencrypted }) => sum + reencrypted, 0)).toBe(before.size);
  expect(done.find(({ place }) => place === 'login_attempts.payload')?.reencrypted).toBe(1100);

  expect(await tracesOf(old)).toEqual([]);
  for (const [place, table, column] of places)
    for (const { key, sealed } of await valuesOf(table, column))
      expect([place, key, fresh.open(sealed, column.contextOf(...key))]).toEqual([
        place,
        key,
        before.get(`${place} ${key.join()}`),
      ]);
  expect(await reencryptColumns(service.platform.database, rotated)).toEqual([]);
});

test('a value that no key opens is counted and left, and does not keep the others from it', async () => {
  const lost = secretBox([{ id: 'lost', key: randomBytes(32) }]).seal(
    'x',
    sealedColumns.platformMail.contextOf('lost'),
  );
  const values = [lost, 'v1.lost.AAAA', old.seal('x', 'of another row'), 'plain text', ''];
  for (const [index, value] of values.entries())
    await service.sql('insert into email_outbox (id, recipients, sealed) values ($1, $2, $3)', [
      `unreadable ${index}`,
      [],
      value,
    ]);
  await service.sql('insert into email_outbox (id, recipients, sealed) values ($1, $2, $3)', [
    'whole',
    [],
    old.seal('hello', sealedColumns.platformMail.contextOf('whole')),
  ]);
  expect(await reencryptColumns(service.platform.database, rotated)).toEqual([
    { place: 'email_outbox.sealed', reencrypted: 1, unreadable: values.length },
  ]);
  const stored = await service.sql<{ sealed: string }>(
    `select sealed from email_outbox where id like 'unreadable%' order by id`,
  );
  expect(stored.map(({ sealed }) => sealed)).toEqual(values);
  await service.sql(`delete from email_outbox where id like 'unreadable%'`);
});

test('a value that changes, or goes, after it was read is not written over', async () => {
  const key = await world.fresh('environment_variable');
  const gone = await world.fresh('environment_variable');
  const place = `/v2/applications/${await world.id('application')}/env`;
  const { database } = service.platform;
  let isRead = false;
  /** Requests come between the reading and the writing. */
  const sql: Sql = {
    inTransaction: false,
    due: () => {},
    async query(statement, values) {
      const rows = await database.query(statement, values);
      if (isRead || !statement.text.includes('from environment_variables') || !rows.length) return rows as never;
      isRead = true;
      await service.call('PUT', `${place}/${key}`, { body: { value: 'changed meanwhile' } });
      await service.call('DELETE', `${place}/${gone}`);
      return rows as never;
    },
  };
  // The variables made before it, and these requests, have kept what takes them back.
  expect(await reencryptColumns(sql, rotated)).toEqual([
    { place: 'activity_undos.undo', reencrypted: 4, unreadable: 0 },
  ]);
  expect(isRead).toBe(true);
  // The service still has the old key alone.
  const [row] = await service.sql<{ value: string }>('select value from environment_variables where key = $1', [key]);
  const context = sealedColumns.variable.contextOf(await world.id('application'), key);
  expect(old.open(row?.value as string, context)).toBe('changed meanwhile');
  expect(await reencryptColumns(database, rotated)).toEqual([
    { place: 'environment_variables.value', reencrypted: 1, unreadable: 0 },
  ]);
});

test('nothing is sealed in a row but by the list of columns', () => {
  const sources = repositoryFiles().filter((file) =>
    /^(models|jobs|resolvers|rest|contract|server)\/.*\.ts$/.test(file),
  );
  const sealing = sources.filter((file) => /\bsecrets\.(seal|open)\(/.test(readSource(file)));
  expect(sealing.length).toBeGreaterThan(20);
  expect(sealing.filter((file) => !readSource(file).includes('sealedColumns.'))).toEqual([
    // In the hands of its caller for a day.
    'contract/stack/plan_token.ts',
    'models/base/reencrypt.ts',
    'models/projects/installation_activity.ts',
    // Copies on a disk, which are made again from the database.
    'server/agents/cdn/stored_zones.ts',
    'server/agents/nameserver.ts',
  ]);
});
