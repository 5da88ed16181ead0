// PostgreSQL from the first request to the last trace: a real worker, a real server, real clients.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import {
  connect,
  describeEngine,
  hasPostgresqlTools,
  openHall,
  refusal,
  testWhere,
  type Hall,
} from '../support/databases/database_hall';
import { waitFor } from '../support/wait_for';

describeEngine('postgresql', () => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  const addressOf = async (id: string): Promise<string> =>
    (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].connection_string;
  const as = (address: string, user: { username: string; password: string }): string =>
    address.replace(/\/\/[^@]*@/, `//${user.username}:${user.password}@`);
  const shown = async (address: string, ...settings: string[]): Promise<Record<string, string>> => {
    let rows: { name: string; setting: string }[] = [];
    await connect(
      address,
      async (client) =>
        void ({ rows } = await client.query(
          'select name, current_setting(name) as setting from pg_settings where name = any($1)',
          [settings],
        )),
    );
    return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
  };

  test('a database is created, used, rotated, stopped, started, resized and deleted without a trace', async () => {
    const database = await hall.create({ name: 'orders', engine: 'postgresql' });
    expect([database.status, database.status_reason]).toEqual(['available', null]);
    const { body: login } = await hall.call('GET', `/v2/databases/${database.id}/credentials`);
    const address: string = login.endpoints[0].connection_string;

    await connect(address, async (client) => {
      await client.query('create table orders (id int primary key)');
      await client.query('insert into orders select generate_series(1, 100)');
    });
    expect(await refusal(address.replace('sslmode=require', 'sslmode=disable'))).toMatch(
      /no encryption|no pg_hba|SSL/i,
    );

    const rotated = await hall.call('POST', `/v2/databases/${database.id}/credentials/rotate`);
    expect(rotated.body.password).not.toBe(login.password);
    expect(await refusal(address)).toMatch(/password authentication failed/);
    const renewed: string = rotated.body.endpoints[0].connection_string;
    await connect(renewed, async (client) => void (await client.query('insert into orders values (101)')));

    expect((await hall.act(database.id, 'stop')).status).toBe('stopped');
    expect(await refusal(renewed)).toMatch(/ECONNREFUSED/);
    expect((await hall.act(database.id, 'start')).status).toBe('available');
    await connect(renewed, async (client) =>
      expect((await client.query('select count(*)::int as count from orders')).rows).toEqual([{ count: 101 }]),
    );
    const before = await hall.serverPid(database.id);
    expect((await hall.act(database.id, 'restart')).status).toBe('available');
    expect(await hall.serverPid(database.id)).not.toBe(before);

    expect(await shown(renewed, 'max_connections', 'shared_buffers', 'max_slot_wal_keep_size')).toEqual({
      max_connections: '23',
      shared_buffers: '64MB',
      max_slot_wal_keep_size: '256MB',
    });
    const roomier = await hall.call('PATCH', `/v2/databases/${database.id}`, { body: { storage_gb: 5 } });
    expect([roomier.body.status, roomier.body.storage_gb]).toEqual(['updating', 5]);
    expect((await hall.settled(database.id)).status).toBe('available');
    expect(await shown(renewed, 'max_connections', 'max_slot_wal_keep_size')).toEqual({
      max_connections: '23',
      max_slot_wal_keep_size: '1280MB',
    });
    const larger = await hall.call('PATCH', `/v2/databases/${database.id}`, {
      body: { database_package: 's-1vcpu-1gb' },
    });
    expect([larger.body.status, larger.body.storage_gb]).toEqual(['updating', 10]);
    expect((await hall.settled(database.id)).status).toBe('available');
    expect(await shown(renewed, 'max_connections', 'shared_buffers')).toEqual({
      max_connections: '53',
      shared_buffers: '256MB',
    });
    await connect(renewed, async (client) =>
      expect((await client.query('select count(*)::int as count from orders')).rows).toEqual([{ count: 101 }]),
    );

    await hall.remove(database.id);
    expect(existsSync(path.join(hall.databaseDir, database.id))).toBe(false);
    expect(existsSync(path.join(hall.databaseDir, 'backups', database.id))).toBe(false);
    expect(await hall.service.sql('select * from database_ports where owner_id = $1', [database.id])).toEqual([]);
  }, 180_000);

  test('no setting, view or function tells a path or a password of the host', async () => {
    const { id } = await hall.create({ name: 'curious', engine: 'postgresql' });
    const address = await addressOf(id);
    await connect(address, async (client) => {
      for (const role of ['', 'set role none']) {
        if (role) await client.query(role);
        const { rows } = await client.query<{ name: string; setting: string }>('select name, setting from pg_settings');
        expect(
          rows.filter(({ setting }) => /\/(?!dev\/shm)[a-z]+\/.*/.test(setting) && setting.startsWith('/')),
        ).toEqual([]);
        expect(JSON.stringify(rows)).not.toContain(hall.databaseDir);
        expect(JSON.stringify(rows)).not.toMatch(/password='/);
      }
      for (const name of ['archive_command', 'restore_command', 'ssl_cert_file', 'ssl_key_file', 'ssl_ca_file']) {
        const { rows } = await client.query(`show ${name}`);
        expect([name, JSON.stringify(rows)]).toEqual([name, expect.not.stringMatching(/"\/|\s\/|\\"\//)]);
      }
      for (const name of [
        'data_directory',
        'config_file',
        'hba_file',
        'ident_file',
        'external_pid_file',
        'log_directory',
      ])
        await expect([name, await client.query(`show ${name}`).catch(({ message }: Error) => message)]).toEqual([
          name,
          expect.stringMatching(/permission denied|must be superuser|pg_read_all_settings/),
        ]);
      const secret = [
        ...['unix_socket_directories', 'primary_conninfo', 'shared_preload_libraries', 'dynamic_library_path'].map(
          (name) => `show ${name}`,
        ),
        ...['pg_file_settings', 'pg_hba_file_rules', 'pg_authid', 'pg_shadow'].map((view) => `select * from ${view}`),
        ...["pg_ls_dir('.')", "pg_read_file('postgresql.conf')", 'pg_ls_logdir()', "pg_stat_file('.')"].map(
          (call) => `select ${call}`,
        ),
        ...['pg_current_logfile()', "pg_read_binary_file('x')", "lo_import('/etc/passwd')"].map(
          (call) => `select ${call}`,
        ),
        "copy pg_class to program 'id'",
        "copy pg_class to '/tmp/x'",
        "alter system set archive_command = 'id'",
        "load '/tmp/x'",
      ];
      for (const statement of secret)
        expect([statement, await client.query(statement).catch(({ message }: Error) => message)]).toEqual([
          statement,
          expect.stringMatching(/permission denied|must be superuser|privilege|pg_read_all_settings|access to library/),
        ]);
    });
    // The command works where it stands. Without pg_basebackup there is no backup that an archive would lead on.
    const archive = path.join(hall.databaseDir, id, 'archive');
    if (hasPostgresqlTools())
      await waitFor(
        'a file of the archive',
        async () =>
          (existsSync(archive) &&
            readdirSync(archive, { recursive: true }).some((name) => /\.gz$/.test(String(name)))) ||
          null,
        150_000,
      );
    await hall.remove(id);
  }, 240_000);

  const hasPsql = spawnSync('psql', ['--version']).status === 0;
  const withPsql = testWhere(hasPsql || Boolean(process.env.CI), 'this machine has no psql');

  withPsql(
    'users come, change their passwords and go; none of them gets into another database',
    async () => {
      const [{ id }, other] = [
        await hall.create({ name: 'shop', engine: 'postgresql' }),
        await hall.create({ name: 'neighbour', engine: 'postgresql' }),
      ];
      const [address, neighbour] = [await addressOf(id), await addressOf(other.id)];
      const place = `/v2/databases/${id}/users`;
      await connect(
        address,
        async (client) => void (await client.query('create table orders as select generate_series(1, 3) as id')),
      );
      const make = async (
        username: string,
        access: string,
      ): Promise<{ id: string; username: string; password: string }> => {
        const made = await hall.call('POST', place, { body: { username, access } });
        expect([made.status, made.body.access]).toEqual([201, access]);
        return made.body;
      };
      const [reader, writer] = [await make('reports', 'read_only'), await make('importer', 'read_write')];

      // As a user would: the program of PostgreSQL, with the address as it is shown.
      const psql = (where: string, statement: string): string => {
        const { status, stdout, stderr } = spawnSync('psql', [where, '-XAtc', statement], {
          encoding: 'utf8',
          env: { PATH: process.env.PATH },
        });
        return status === 0 ? stdout.trim() : stderr.trim();
      };
      expect(psql(as(address, reader), 'select count(*) from orders')).toBe('3');
      expect(psql(as(address, reader), 'insert into orders values (4)')).toMatch(/permission denied/);
      expect(psql(as(address, writer), 'insert into orders values (4) returning id')).toMatch(/^4/);
      for (const statement of [
        'insert into orders values (5)',
        'update orders set id = 6',
        'delete from orders',
        'truncate orders',
        'create table mine (id int)',
      ]) {
        await connect(
          as(address, reader),
          async (client) => void (await expect(client.query(statement)).rejects.toThrow(/permission denied/)),
        );
      }
      await connect(
        as(address, writer),
        async (client) => void (await expect(client.query('drop table orders')).rejects.toThrow(/must be owner/)),
      );

      const { body: listed } = await hall.call('GET', `${place}?sort=username`);
      expect(
        listed.data.map(({ username, access, is_default, password }: Record<string, unknown>) => [
          username,
          access,
          is_default,
          password,
        ]),
      ).toEqual([
        ['app', 'admin', true, null],
        ['importer', 'read_write', false, null],
        ['reports', 'read_only', false, null],
      ]);
      expect((await hall.call('GET', `${place}/${reader.id}`)).body).toMatchObject({
        username: 'reports',
        access: 'read_only',
        password: null,
      });

      const rotated = await hall.call('POST', `${place}/${writer.id}/rotate`);
      expect(rotated.body.password).not.toBe(writer.password);
      expect(await refusal(as(address, writer))).toMatch(/password authentication failed/);
      await connect(as(address, rotated.body), async (client) => {
        const held = client.query('select pg_sleep(30)').catch((error: Error) => error.message);
        expect((await hall.call('DELETE', `${place}/${writer.id}`)).status).toBe(204);
        expect(await held).toMatch(/terminat/i);
      });
      expect(await refusal(as(address, rotated.body))).toMatch(
        /password authentication failed|does not exist|not permitted/,
      );
      expect((await hall.call('GET', `${place}/${writer.id}`)).status).toBe(404);

      expect(await refusal(address.replace(/:\d+\//, `:${new URL(neighbour).port}/`))).toMatch(
        /password authentication failed/,
      );
      expect(await refusal(as(neighbour, reader))).toMatch(/password authentication failed/);
    },
    120_000,
  );
});
