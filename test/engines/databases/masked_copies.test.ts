/** @tier heavy @quarter 1 @covers drivers/database/masks drivers/database/postgresql/masks drivers/database/mariadb */
// Copies whose values are replaced: of 1,000 planted values none is left, in answers, in a dump, or in a byte of the
// files of the copy; whatever a rule tries, it has the rights of the owner alone.
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { createConnection, type Connection } from 'mysql2/promise';
import {
  connect,
  describeEngine,
  describePostgresqlWithTools,
  openHall,
  type Hall,
} from '../../support/databases/database_hall';
import { waitFor } from '../../support/wait_for';
import type { MaskRule } from '../../../core/mask_rules';
import { planMask, type MaskCatalog } from '../../../drivers/database/masks/mask';
import { readCatalog as readMariadb } from '../../../drivers/database/mariadb/mask_catalog';
import { readCatalog as readPostgresql } from '../../../drivers/database/postgresql/masks/catalog';

jest.setTimeout(600_000);

/* oxlint-disable typescript/no-explicit-any -- the OpenAPI check types what the service sends */
let hall: Hall;
let serial = 0;

/** Found nowhere else. */
const planted = (kind: string, n: number): string => `${kind}planted${String(n).padStart(4, '0')}z`;
const COUNT = 250;
const KINDS = ['mail', 'name', 'phone', 'iban'];
const PLANTED = /(?:mail|name|phone|iban)planted\d{4}z/;

const addressOf = async (id: string): Promise<string> =>
  (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].connection_string;

async function backUp(id: string): Promise<string> {
  const asked = await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} });
  expect(asked.status).toBe(201);
  const place = `/v2/databases/${id}/backups/${asked.body.id}`;
  const made = await waitFor(
    'the backup',
    async () => {
      const { body } = await hall.call('GET', place);
      return ['completed', 'failed'].includes(body.status) ? body : null;
    },
    60_000,
  );
  expect(made.status).toBe('completed');
  return made.id;
}

/** The copy at rest: available, or failed. */
async function copy(engine: string, backup_id: string, mask: object[], more: object = {}): Promise<any> {
  const body = { name: `copy-${(serial += 1)}`, engine, copy_of: { backup_id }, mask, ...more };
  const made = await hall.call('POST', '/v2/databases', { body });
  expect(made.status).toBe(201);
  return hall.settled(made.body.id, 240_000);
}

/** Files below the directory of a server in which a planted value is found. */
function filesWithPlanted(directory: string): string[] {
  const found: string[] = [];
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isFile() && statSync(file).size > 0 && PLANTED.test(readFileSync(file, 'latin1'))) found.push(file);
  }
  return found;
}

const rule = (table: string, column: string, method: string, value?: string): object => ({
  ...{ table, column, rule: method, ...(value !== undefined && { value }) },
});

function expectRefused(catalog: MaskCatalog, refused: [object, RegExp][]): void {
  for (const [one, reason] of refused) expect(() => planMask(catalog, [one as MaskRule])).toThrow(reason);
}

async function connectTo<T>(id: string, work: (client: Parameters<Parameters<typeof connect>[1]>[0]) => Promise<T>) {
  let result: T | undefined;
  await connect(await addressOf(id), async (client) => void (result = await work(client)));
  return result as T;
}

describePostgresqlWithTools(() => {
  let backup: string;
  let original: string;

  const query = async (id: string, ...statements: string[]): Promise<any[]> => {
    let rows: any[] = [];
    await connect(await addressOf(id), async (client) => {
      for (const statement of statements) ({ rows } = await client.query(statement));
    });
    return rows;
  };

  beforeAll(async () => {
    hall = await openHall();
    original = (await hall.create({ name: 'people', engine: 'postgresql' })).id;
    await query(
      original,
      `create table people (id int generated always as identity primary key, email text unique not null, name text,
        phone varchar(40), iban varchar(40), uid uuid default gen_random_uuid(), born date, note text,
        label text generated always as (name || ' ' || phone) stored, client_ip inet)`,
      `create table orders (id serial primary key,
        mail varchar(60) not null references people (email) on update cascade,
        total numeric) `,
      'create table events (at date not null, who text, primary key (at, who)) partition by range (at)',
      `create table events_2030 partition of events for values from ('2030-01-01') to ('2031-01-01')`,
      `insert into people (email, name, phone, iban) select 'mailplanted' || lpad(n::text, 4, '0') || 'z',
        'nameplanted' || lpad(n::text, 4, '0') || 'z', 'phoneplanted' || lpad(n::text, 4, '0') || 'z',
        'ibanplanted' || lpad(n::text, 4, '0') || 'z' from generate_series(1, ${COUNT}) n`,
      'insert into orders (mail, total) select email, id from people, generate_series(1, 2)',
      // Dead rows, and statistics.
      'update orders set total = total + 1',
      `insert into events select '2030-05-05', email from people`,
      'create view shown as select name from people',
      'create materialized view mails as select email, name from people',
      'create index on people (lower(name))',
      `create function fired() returns trigger language plpgsql as $$ begin
        insert into orders (mail, total) values (old.email, -1); return new; end $$`,
      'create trigger fires after update on people for each row execute function fired()',
      'alter table people enable always trigger fires',
      'create rule kept as on update to events do instead nothing',
      'alter table events enable always rule kept',
      'alter table orders enable row level security, force row level security',
      'create policy everything on orders for select using (true)',
      'create policy nothing on orders for update using (false)',
      'analyze',
    );
    backup = await backUp(original);
  }, 180_000);
  afterAll(() => hall?.close(), 60_000);

  const MASK = [
    rule('people', 'email', 'hash'),
    rule('orders', 'mail', 'hash'),
    rule('people', 'name', 'fake_name'),
    rule('public.people', 'phone', 'set_null'),
    rule('people', 'iban', 'expression', `'DE' || lpad((length(iban) + id)::text, 6, '0')`),
    rule('people', 'note', 'constant', "it's ; -- x"),
    rule('people', 'uid', 'hash'),
    rule('events', 'who', 'hash'),
  ];

  test('none of the planted values is in the copy, and it is whole', async () => {
    const made = await copy('postgresql', backup, MASK);
    expect([made.status, made.status_reason]).toEqual(['available', null]);
    expect(made.unmasked_columns).toEqual(['public.people.client_ip']);
    const [row] = await query(
      made.id,
      `select (select count(*)::int from people) as people, (select count(*)::int from orders) as orders,
        (select count(*)::int from people join orders on mail = email) as joined,
        (select count(distinct email)::int from people) as mails, (select count(*)::int from events) as events,
        (select count(*)::int from people join events on who = left(email, 32)) as seen,
        (select count(*)::int from mails m join people p using (email, name)) as refreshed,
        (select count(*)::int from people where phone is null and iban like 'DE%' and note = 'it''s ; -- x') as rest,
        (select tgenabled from pg_trigger where tgname = 'fires') as trigger,
        (select ev_enabled from pg_rewrite where rulename = 'kept') as rule,
        (select relforcerowsecurity from pg_class where relname = 'orders') as forced,
        (select count(*)::int from pg_roles where rolname ~ 'loader') as loaders`,
    );
    expect(row).toEqual({
      ...{ people: COUNT, orders: 2 * COUNT, joined: 2 * COUNT, mails: COUNT, events: COUNT, seen: COUNT },
      ...{ refreshed: COUNT, rest: COUNT, trigger: 'A', rule: 'A', forced: true, loaders: 0 },
    });
    const stats = await query(made.id, 'select * from pg_stats');
    expect(stats.length).toBeGreaterThan(0);
    expect(JSON.stringify(stats)).not.toMatch(PLANTED);
    const dumped = spawnSync('pg_dump', ['--enable-row-security', await addressOf(made.id)], { encoding: 'utf8' });
    expect([dumped.status, PLANTED.test(dumped.stdout)]).toEqual([0, false]);
    await hall.act(made.id, 'stop');
    expect(filesWithPlanted(path.join(hall.databaseDir, made.id))).toEqual([]);
    // It is looked for where it is.
    expect(filesWithPlanted(path.join(hall.databaseDir, original)).length).toBeGreaterThan(0);
    expect(KINDS.map((kind) => PLANTED.test(planted(kind, 7)))).toEqual([true, true, true, true]);
    await hall.remove(made.id);
  });

  test('hashes of two copies differ', async () => {
    const [one, other] = [await copy('postgresql', backup, MASK), await copy('postgresql', backup, MASK)];
    const mails = async (id: string) => (await query(id, 'select email from people order by id')).map((r) => r.email);
    const [first, second] = [await mails(one.id), await mails(other.id)];
    expect(first.filter((mail) => second.includes(mail))).toEqual([]);
    for (const { id } of [one, other]) await hall.remove(id);
  });

  test('rules that do not fit are told by the catalog', async () => {
    const catalog = await connectTo(original, (client) => readPostgresql(client as never));
    expectRefused(catalog, [
      [rule('people', 'x', 'hash'), /column `public.people.x`/],
      [rule('people', 'label', 'hash'), /is generated from other columns/],
      [rule('people', 'id', 'constant', '1'), /is an identity/],
      [rule('people', 'email', 'set_null'), /cannot be null/],
      [rule('people', 'email', 'constant', 'x'), /are unique/],
      [rule('people', 'email', 'hash'), /Give both the rule `hash`/],
      [rule('people', 'born', 'fake_name'), /of the type date/],
      [rule('shown', 'name', 'hash'), /is a view/],
      [rule('mails', 'name', 'hash'), /is a materialized view/],
      [rule('events_2030', 'who', 'hash'), /is a partition: name the table `public.events`/],
      [rule('events', 'at', 'expression', 'at'), /to which partition/],
    ]);
  });

  test('a mask that fails says why without values, and leaves nothing', async () => {
    const failing: [object, RegExp][] = [
      [rule('nobody', 'x', 'hash'), /table `nobody`/],
      [rule('people', 'born', 'constant', 'secret'), /does not take the values of the rules for `born`.*date: "…"/],
      [rule('people', 'name', 'expression', 'nothing_of_this(name)'), /function nothing_of_this/i],
      [rule('people', 'name', 'expression', `(name || phone)::int::text`), /integer: "…"/],
      ...[
        `pg_read_file('/etc/passwd')`,
        `(select rolpassword from pg_authid limit 1)`,
        `set_config('session_replication_role', 'origin', false)`,
        `set_config('role', 'platform_admin', false)`,
        `(select a from dblink('host=127.0.0.1 dbname=postgres', 'select 1') as x (a text))`,
      ].map((value): [object, RegExp] => [
        rule('people', 'name', 'expression', value),
        /denied|must be|does not exist/,
      ]),
    ];
    for (const [one, reason] of failing) {
      const made = await copy('postgresql', backup, [one]);
      expect([one, made.status, made.status_reason]).toEqual([one, 'failed', expect.stringMatching(reason)]);
      expect(made.status_reason).not.toMatch(PLANTED);
      expect((await hall.call('POST', `/v2/databases/${made.id}/start`)).status).toBe(409);
      expect(readdirSync(hall.databaseDir)).not.toContain(made.id);
      await hall.remove(made.id);
    }
  });

  test('one that is deleted in the middle leaves nothing', async () => {
    const mask = [rule('people', 'name', 'expression', `pg_sleep(0.5)::text || name`)];
    const body = { name: `copy-${(serial += 1)}`, engine: 'postgresql', copy_of: { backup_id: backup }, mask };
    const { id } = (await hall.call('POST', '/v2/databases', { body })).body;
    await waitFor('the server', async () => readdirSync(hall.databaseDir).includes(id) || null, 60_000);
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    await hall.remove(id);
    expect(readdirSync(hall.databaseDir)).not.toContain(id);
  });

  test('a backup whose files are gone fails the copy', async () => {
    const lost = await backUp(original);
    rmSync(path.join(hall.databaseDir, 'backups', original, lost), { recursive: true });
    const made = await copy('postgresql', lost, MASK);
    expect([made.status, made.status_reason]).toEqual(['failed', expect.any(String)]);
    await hall.remove(made.id);
  });
});

describeEngine('mariadb', () => {
  let backup: string;
  let original: string;

  const query = async (id: string, ...statements: string[]): Promise<any[]> => {
    const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    const login = { host: '127.0.0.1', port: body.endpoints[0].port, user: 'app', password: body.password };
    const connection: Connection = await createConnection({ ...login, database: 'app' });
    let rows: any = [];
    try {
      for (const statement of statements) [rows] = await connection.query(statement);
    } finally {
      await connection.end();
    }
    return rows as any[];
  };

  beforeAll(async () => {
    hall = await openHall();
    original = (await hall.create({ name: 'people', engine: 'mariadb' })).id;
    await query(
      original,
      `create table people (id int auto_increment primary key, email varchar(60) not null unique, name text,
        phone varchar(40), iban varchar(40), born date, note text, client_ip varchar(40),
        label varchar(100) as (concat(name, phone)) stored) with system versioning`,
      `create table orders (id int auto_increment primary key, mail varchar(60) not null, total int,
        foreign key (mail) references people (email) on update cascade)`,
      `create table events (at date not null, who varchar(60), key (who)) partition by range columns (at)
        (partition p0 values less than ('2031-01-01'))`,
      `insert into people (email, name, phone, iban) select concat('mailplanted', lpad(seq, 4, '0'), 'z'),
        concat('nameplanted', lpad(seq, 4, '0'), 'z'), concat('phoneplanted', lpad(seq, 4, '0'), 'z'),
        concat('ibanplanted', lpad(seq, 4, '0'), 'z') from seq_1_to_${COUNT}`,
      'insert into orders (mail, total) select email, id from people',
      `insert into events select '2030-05-05', email from people`,
      'create view shown as select name from people',
      'update people set born = now()',
      `create trigger fires after update on people for each row
        insert into orders (mail, total) values (old.email, -1)`,
      'analyze table people persistent for all',
    );
    backup = await backUp(original);
  }, 180_000);
  afterAll(() => hall?.close(), 60_000);

  const MASK = [
    rule('people', 'email', 'hash'),
    rule('orders', 'mail', 'hash'),
    rule('people', 'name', 'fake_name'),
    rule('people', 'phone', 'set_null'),
    rule('people', 'iban', 'expression', `concat('DE', lpad(length(iban) + id, 6, '0'))`),
    rule('people', 'note', 'constant', "it's ; ? -- x"),
    rule('events', 'who', 'fake_email'),
  ];

  test('none of the planted values is in the copy, and it is whole', async () => {
    const made = await copy('mariadb', backup, MASK);
    expect([made.status, made.status_reason]).toEqual(['available', null]);
    expect(made.unmasked_columns).toEqual(['people.client_ip']);
    const [row] = await query(
      made.id,
      `select (select count(*) from people) as people, (select count(*) from orders) as orders,
        (select count(*) from people join orders on mail = email) as joined,
        (select count(distinct email) from people) as mails, (select count(distinct who) from events) as events,
        (select count(*) from people where phone is null and iban like 'DE%' and note = 'it''s ; ? -- x') as rest,
        (select count(*) from people for system_time all) as history,
        (select count(*) from information_schema.triggers where trigger_name = 'fires') as triggers`,
    );
    expect(row).toEqual({
      ...{ people: COUNT, orders: COUNT, joined: COUNT, mails: COUNT, events: COUNT, rest: COUNT, history: COUNT },
      triggers: 1,
    });
    await hall.act(made.id, 'stop');
    expect(filesWithPlanted(path.join(hall.databaseDir, made.id))).toEqual([]);
    expect(filesWithPlanted(path.join(hall.databaseDir, original)).length).toBeGreaterThan(0);
    await hall.remove(made.id);
  });

  test('rules that do not fit are told by the catalog', async () => {
    const { body } = await hall.call('GET', `/v2/databases/${original}/credentials`);
    const login = { host: '127.0.0.1', port: body.endpoints[0].port, user: 'app', password: body.password };
    const connection = await createConnection(login);
    const run = async (text: string, values: unknown[] = []) => (await connection.query(text, values))[0] as never;
    const catalog = await readMariadb('app', run as never);
    await connection.end();
    expect(catalog.triggers).toEqual(['fires']);
    expectRefused(catalog, [
      [rule('nobody', 'x', 'hash'), /table `nobody`/],
      [rule('people', 'label', 'hash'), /is generated from other columns/],
      [rule('people', 'email', 'set_null'), /cannot be null/],
      [rule('people', 'email', 'hash'), /Give both the rule `hash`/],
      [rule('shown', 'name', 'hash'), /is a view/],
      [rule('events', 'at', 'expression', 'at'), /to which partition/],
    ]);
  });

  test('a mask that fails says why without values, and leaves nothing', async () => {
    const failing: [object, RegExp][] = [
      [rule('people', 'born', 'constant', 'x'), /does not take the values of the rules for `born`/],
      [rule('people', 'name', 'expression', 'nothing_of_this(name)'), /nothing_of_this/],
      [rule('people', 'name', 'expression', '(select authentication_string from mysql.user limit 1)'), /denied/],
      [rule('people', 'name', 'expression', `(select 1 into outfile '/tmp/masked')`), /syntax|outfile/i],
    ];
    for (const [one, reason] of failing) {
      const made = await copy('mariadb', backup, [one]);
      expect([one, made.status, made.status_reason]).toEqual([one, 'failed', expect.stringMatching(reason)]);
      expect(made.status_reason).not.toMatch(PLANTED);
      expect(readdirSync(hall.databaseDir)).not.toContain(made.id);
      await hall.remove(made.id);
    }
  });

  test('LOAD_FILE reads nothing', async () => {
    const made = await copy('mariadb', backup, [rule('people', 'note', 'expression', `load_file('/etc/passwd')`)]);
    expect(made.status).toBe('available');
    expect(await query(made.id, 'select count(note) as n from people')).toEqual([{ n: 0 }]);
    await hall.remove(made.id);
  });
});
