/** @tier heavy @quarter 2 @covers drivers/endpoint jobs/databases/database_endpoint */
// Endpoints with a port of their own: pools before a server, and connections spread over replicas.
import { existsSync, readdirSync } from 'node:fs';
import pg from 'pg';
import { connect, describeEngine, openHall, verdict, type Hall } from '../../support/databases/database_hall';
import { processesWith, signalAll } from '../../support/processes/processes';
import { waitFor } from '../../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
const missing = ['pgbouncer', 'haproxy'].filter((program) => !process.env.CI && !existsSync(`/usr/sbin/${program}`));
const describeBoth: (name: string, tests: () => void) => void = missing.length
  ? (name, tests) => describe.skip(`${name} (not installed: ${missing.join(', ')})`, tests)
  : (_, tests) => tests();

describeEngine('postgresql', () =>
  describeBoth('endpoints', () => {
    let hall: Hall;
    let id: string;
    let pooled: any;

    beforeAll(async () => {
      hall = await openHall();
      ({ id } = await hall.create({ name: 'main', engine: 'postgresql', engine_version: '15' }));
      pooled = await endpoint({ name: 'pooled', pool_mode: 'transaction', pool_size: 2 });
    }, 120_000);
    afterAll(() => hall?.close(), 60_000);

    const children = (kind: string, own = '') => `/v2/databases/${id}/${kind}${own && `/${own}`}`;

    async function rested(place: string, withinMs = 60_000): Promise<any> {
      return waitFor(
        place,
        async () => {
          const { body } = await hall.call('GET', place);
          return ['provisioning', 'updating'].includes(body.status) ? null : body;
        },
        withinMs,
      );
    }

    async function endpoint(body: object): Promise<any> {
      const made = await hall.call('POST', children('endpoints'), { body });
      expect([made.status, made.text]).toEqual([201, expect.anything()]);
      const active = await rested(children('endpoints', made.body.id));
      expect([active.status, active.status_reason]).toEqual(['active', null]);
      return active;
    }

    /** Address of the default user, at the port of an endpoint. */
    async function addressOf(port?: number): Promise<string> {
      const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
      return body.endpoints[0].connection_string.replace(/:\d+\//, `:${port ?? body.endpoints[0].port}/`);
    }

    const programs = (endpointId: string) =>
      processesWith(`/endpoints/${endpointId}/conf/`)
        .filter(({ args }) => /^\/usr\/sbin\/(pgbouncer|haproxy)/.test(args))
        .map(({ pid }) => pid);

    async function one(address: string, sql: string): Promise<any> {
      let row: any;
      await connect(address, async (client) => void ([row] = (await client.query(sql)).rows));
      return row;
    }

    test('many clients share the few connections of a pool', async () => {
      const { body } = await hall.call('GET', '/v2/databases/engines');
      expect(body.data.find((engine: any) => engine.id === 'postgresql').features).toContain('pooling');
      expect(pooled).toMatchObject({ pool_mode: 'transaction', pool_size: 2, host: '127.0.0.1' });
      const address = await addressOf(pooled.port);
      await connect(
        address,
        async (client) => void (await client.query('create table notes as select generate_series(1, 5) as id')),
      );
      const pids = new Set<number>();
      await Promise.all(
        Array.from({ length: 12 }, () =>
          connect(
            address,
            async (client) =>
              void pids.add((await client.query('select pg_backend_pid() as pid, pg_sleep(0.05)')).rows[0].pid),
          ),
        ),
      );
      expect(pids.size).toBeLessThanOrEqual(2);
      expect(
        (
          await one(
            await addressOf(),
            `select count(*)::int as count from pg_stat_activity
              where usename = 'app' and pid <> pg_backend_pid() and backend_type = 'client backend'`,
          )
        ).count,
      ).toBeLessThanOrEqual(2);
    }, 60_000);

    test('a password that was rotated is locked out at once, and the new one let in', async () => {
      const before = await addressOf(pooled.port);
      const session = new pg.Client({
        connectionString: before.replace(/\?.*$/, ''),
        ssl: { rejectUnauthorized: false },
      });
      session.on('error', () => {});
      await session.connect();
      expect((await hall.call('POST', `/v2/databases/${id}/credentials/rotate`)).status).toBe(200);
      expect(await verdict(before)).toMatch(/SASL authentication failed|password/);
      expect(await verdict(await addressOf(pooled.port))).toBeNull();
      await expect(session.query('select 1')).rejects.toThrow();
      const user = await hall.call('POST', children('users'), { body: { username: 'reader', access: 'read_only' } });
      const readers = (await addressOf(pooled.port)).replace(/\/\/[^@]+@/, `//reader:${user.body.password}@`);
      await hall.settled(id);
      expect(await waitFor('the user in the pool', async () => (await verdict(readers)) ?? 'in')).toBe('in');
      // The server drops the user first; then the pooler is told, and ends all sessions, since it can't tell them
      // apart.
      const witness = new pg.Client({
        connectionString: (await addressOf(pooled.port)).replace(/\?.*$/, ''),
        ssl: { rejectUnauthorized: false },
      });
      const ended = new Promise<void>((resolve) => witness.on('error', () => resolve()));
      await witness.connect();
      expect((await hall.call('DELETE', children('users', user.body.id))).status).toBe(204);
      await waitFor('the end of the user', async () => (await verdict(readers)) !== null || null);
      await ended;
    }, 90_000);

    test('a pool is changed while its clients stay; killed, it comes back', async () => {
      const [before] = programs(pooled.id);
      const address = await addressOf(pooled.port);
      await connect(address, async (client) => {
        await client.query('select 1');
        const changed = await hall.call('PATCH', children('endpoints', pooled.id), { body: { pool_size: 3 } });
        expect(changed.body).toMatchObject({ status: 'updating', pool_size: 3, port: pooled.port });
        expect((await rested(children('endpoints', pooled.id))).status).toBe('active');
        await client.query('select 1');
      });
      expect(programs(pooled.id)).toEqual([before]);
      signalAll(programs(pooled.id));
      await waitFor(
        'the pooler',
        async () => (programs(pooled.id).some((pid) => pid !== before) && (await verdict(address)) === null) || null,
        60_000,
      );
      const logged = (words: RegExp) =>
        waitFor(
          String(words),
          async () => {
            const { body } = await hall.call('GET', `/v2/databases/${id}/logs?source=pooler&limit=100`);
            return body.data.find(({ message }: { message: string }) => words.test(message)) ?? null;
          },
          60_000,
        );
      expect(await logged(/SIGKILL.*being restarted/)).toMatchObject({ level: 'error', source: 'pooler' });
      expect(await verdict(address.replace('//app:', '//app:not'))).not.toBeNull();
      expect((await logged(/^ERROR: .*password authentication failed/)).message).not.toContain('0x');
    }, 120_000);

    test('a public pool lets in whom it allows', async () => {
      const open = await endpoint({
        name: 'open',
        access: 'public',
        pool_mode: 'session',
        pool_size: 2,
        allowed_sources: ['127.0.0.8/30'],
      });
      const address = await addressOf(open.port);
      expect([await verdict(address, '127.0.0.9'), await verdict(address, '127.0.0.17')]).toEqual([
        null,
        expect.anything(),
      ]);
      await hall.call('PATCH', children('endpoints', open.id), { body: { allowed_sources: [] } });
      await rested(children('endpoints', open.id));
      expect(await verdict(address, '127.0.0.9')).not.toBeNull();
      // Its pool gone, it is at the port of the server; nothing of it is left.
      await hall.call('PATCH', children('endpoints', open.id), { body: { pool_mode: null } });
      expect(await rested(children('endpoints', open.id))).toMatchObject({ status: 'active', pool_mode: null });
      await waitFor(
        'the end of the pooler',
        async () => (programs(open.id).length === 0 && !existsSync(`${hall.databaseDir}/endpoints/${open.id}`)) || null,
      );
      expect((await hall.call('DELETE', children('endpoints', open.id))).status).toBe(204);
    }, 120_000);

    test('a stopped database refuses, and is reached again when it is started', async () => {
      await hall.act(id, 'stop');
      await waitFor('the end of the pooler', async () => programs(pooled.id).length === 0 || null);
      expect(await verdict(await addressOf(pooled.port))).toMatch(/ECONNREFUSED/);
      await hall.act(id, 'start');
      const address = await addressOf(pooled.port);
      await waitFor(
        'the pooler',
        async () => (programs(pooled.id).length > 0 && (await verdict(address)) === null) || null,
        60_000,
      );
    }, 120_000);

    test('reads are spread over replicas, of which one may die and one may go', async () => {
      const refused = await hall.call('POST', children('endpoints'), { body: { name: 'reads', target: 'replicas' } });
      expect(refused.body).toMatchObject({ code: 'invalid_state' });
      const made = [];
      for (const name of ['first', 'second'])
        made.push((await hall.call('POST', children('replicas'), { body: { name } })).body);
      for (const replica of made)
        expect((await rested(children('replicas', replica.id), 90_000)).status).toBe('available');
      expect(
        (
          await hall.call('POST', children('endpoints'), {
            body: { name: 'reads', target: 'replicas', pool_mode: 'session' },
          })
        ).body,
      ).toMatchObject({ code: 'engine_feature_unsupported', feature: 'pooling' });
      const reads = await endpoint({ name: 'reads', target: 'replicas' });
      const address = await addressOf(reads.port);
      const ports = async (count: number) => {
        const seen = new Set<string>();
        for (let turn = 0; turn < count; turn += 1)
          seen.add((await one(address, `select current_setting('port') as port`)).port);
        return seen.size;
      };
      await waitFor('both replicas', async () => (await ports(4).catch(() => 0)) === 2 || null, 60_000);
      await waitFor(
        'the rows',
        async () =>
          (await one(address, 'select count(*)::int as count from notes').catch(() => null))?.count === 5 || null,
      );
      await connect(
        address,
        async (client) =>
          void (await expect(client.query('insert into notes values (6)')).rejects.toThrow(/read-only/)),
      );
      hall.killServer(made[0].id);
      // Whoever was just being served by it comes again.
      for (let turn = 0; turn < 6; turn += 1)
        await waitFor(
          'an answer',
          async () =>
            (await one(address, 'select count(*)::int as count from notes').catch(() => null))?.count === 5 || null,
        );
      await waitFor('the replica again', async () => (await ports(4).catch(() => 0)) === 2 || null, 60_000);

      // A pool before one replica alone.
      const single = await endpoint({
        name: 'single',
        target: 'replicas',
        replica_id: made[1].id,
        pool_mode: 'transaction',
        pool_size: 1,
      });
      expect(
        await one(
          await addressOf(single.port),
          'select pg_is_in_recovery() as follows, count(*)::int as count from notes',
        ),
      ).toEqual({ follows: true, count: 5 });

      const [before] = programs(reads.id);
      expect((await hall.call('DELETE', children('replicas', made[1].id))).status).toBe(204);
      await waitFor('the end of its pool', async () => programs(single.id).length === 0 || null);
      await waitFor('one replica', async () => (await ports(3).catch(() => 0)) === 1 || null);
      expect(programs(reads.id)).toEqual([before]);
    }, 240_000);

    test('endpoints go without a trace: one alone, and all with their database', async () => {
      const [{ port }] = (await hall.service.sql<{ port: number }>(
        'select port from database_ports where owner_id = $1',
        [pooled.id],
      )) as [{ port: number }];
      expect((await hall.call('DELETE', children('endpoints', pooled.id))).status).toBe(204);
      await waitFor(
        'the end of the row',
        async () =>
          (await hall.service.sql('select 1 from database_endpoints where id = $1', [pooled.id])).length === 0 || null,
      );
      expect([
        programs(pooled.id),
        await hall.service.sql('select 1 from database_ports where port = $1', [port]),
        readdirSync(`${hall.databaseDir}/endpoints`).includes(pooled.id),
      ]).toEqual([[], [], false]);
      expect(await verdict(await addressOf(port))).toMatch(/ECONNREFUSED/);
      await hall.remove(id);
      await waitFor(
        'the end of all endpoints',
        async () =>
          (await hall.service.sql('select 1 from database_endpoints where database_id = $1', [id])).length === 0 ||
          null,
      );
      expect([
        processesWith('/endpoints/dbe_')
          .map(({ args }) => args)
          .filter((args) => args.includes(hall.databaseDir)),
        readdirSync(`${hall.databaseDir}/endpoints`),
      ]).toEqual([[], []]);
    }, 120_000);
  }),
);
