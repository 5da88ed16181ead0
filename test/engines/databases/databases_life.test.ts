/** @tier heavy @quarter 3 @covers drivers/database/postgresql jobs/databases/database */
// What happens around a PostgreSQL server: networks that may come in, its log, its metrics, a newer version, its last
// backup.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import {
  connect,
  describePostgresqlWithTools,
  openHall,
  outsideAddress,
  postgresqlVersions,
  refusal,
  testWhere,
  type Hall,
} from '../../support/databases/database_hall';
import { waitFor } from '../../support/wait_for';

describePostgresqlWithTools(() => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  const addressOf = async (id: string): Promise<string> =>
    (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].connection_string;

  const outside = outsideAddress();
  const withAddress = testWhere(
    outside !== undefined,
    'this machine has no address but those of the loopback interface',
  );

  withAddress(
    'a public endpoint lets in whom it allows, and says when it does',
    async () => {
      const { id } = await hall.create({ name: 'public', engine: 'postgresql' });
      const address = (await addressOf(id)).replace('127.0.0.1', String(outside));
      expect(await refusal(address)).toMatch(/ECONNREFUSED/);
      const active = async (place: string): Promise<void> =>
        void (await waitFor('the endpoint', async () =>
          (await hall.call('GET', place)).body.status === 'active' ? true : null,
        ));

      const made = await hall.call('POST', `/v2/databases/${id}/endpoints`, {
        body: { name: 'outside', access: 'public', allowed_sources: ['203.0.113.0/24'] },
      });
      expect([made.status, made.body.status]).toEqual([201, 'provisioning']);
      const place = `/v2/databases/${id}/endpoints/${made.body.id}`;
      await active(place);
      expect(await refusal(address)).toMatch(/pg_hba/);
      await hall.call('PATCH', place, { body: { allowed_sources: [`${outside}/32`] } });
      await active(place);
      await connect(address, async (client) =>
        expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]),
      );
      await hall.call('DELETE', place);
      await waitFor('the end of the endpoint', async () =>
        refusal(address).then(
          () => true,
          () => null,
        ),
      );
    },
    60_000,
  );

  test('it tells what it says and what it uses', async () => {
    const { id } = await hall.create({ name: 'told', engine: 'postgresql' });
    const address = await addressOf(id);
    await connect(address, async (client) => void (await client.query('select no_such_column').catch(() => {})));
    await waitFor('the line of the mistake', async () => {
      const { body } = await hall.call('GET', `/v2/databases/${id}/logs`);
      return body.data.some(
        ({ source, level, message }: Record<string, string>) =>
          source === 'server' && level === 'error' && /no_such_column/.test(message as string),
      )
        ? true
        : null;
    });
    const { body } = await hall.call('GET', `/v2/databases/${id}/metrics`);
    const names = JSON.stringify(body);
    for (const metric of ['memory_percent', 'connections', 'storage_used_bytes']) expect(names).toContain(metric);
    expect(
      await hall.service.sql(`select distinct metric from metric_points where resource_id = $1 order by metric`, [id]),
    ).toEqual(expect.arrayContaining([{ metric: 'connections' }, { metric: 'storage_used_bytes' }]));
  }, 60_000);

  const versions = postgresqlVersions().map(String);
  const withTwoVersions = testWhere(versions.length > 1, 'this machine has one version of PostgreSQL');

  withTwoVersions(
    'a newer version has the rows; where it can not be reached the old one stays and says why',
    async () => {
      const { id } = await hall.create({ name: 'older', engine: 'postgresql', engine_version: versions.at(-1) });
      const address = await addressOf(id);
      await connect(
        address,
        async (client) => void (await client.query('create table notes as select generate_series(1, 5) as id')),
      );
      const upgraded = await hall.act(id, 'upgrade', { engine_version: versions[0] });
      expect(upgraded.status).toBe('available');
      if (upgraded.engine_version === versions[0]) expect(upgraded.status_reason).toBeNull();
      else
        expect([upgraded.engine_version, upgraded.status_reason]).toEqual([
          versions.at(-1),
          expect.stringMatching(/^The upgrade to .* failed\. .*Install/),
        ]);
      await connect(address, async (client) => {
        expect((await client.query('select count(*)::int as count from notes')).rows).toEqual([{ count: 5 }]);
        expect(String((await client.query('show server_version')).rows[0].server_version)).toMatch(
          new RegExp(`^${upgraded.engine_version}\\b`),
        );
      });
    },
    90_000,
  );

  // Since 17 the view of this column has it no more, so what depends on it can't be carried over.
  const canFail = Number(versions[0]) >= 17 && Number(versions.at(-1)) <= 16;
  const withLostColumn = testWhere(canFail, 'this machine has no two versions of PostgreSQL around 16 and 17');

  withLostColumn(
    'an upgrade that fails leaves the old version, its rows and its server in service, and says why',
    async () => {
      const [newest = '', oldest = ''] = [versions[0], versions.at(-1)];
      const { id } = await hall.create({ name: 'stays', engine: 'postgresql', engine_version: oldest });
      const address = await addressOf(id);
      await connect(address, async (client) => {
        await client.query('create table notes as select generate_series(1, 5) as id');
        await client.query('create view written as select buffers_backend from pg_stat_bgwriter');
      });
      expect(await hall.act(id, 'upgrade', { engine_version: newest })).toMatchObject({
        status: 'available',
        engine_version: oldest,
        status_reason: expect.stringMatching(/^The upgrade to .* failed\. .* runs version/),
      });
      await connect(address, async (client) => {
        expect((await client.query('select count(*)::int as count from notes')).rows).toEqual([{ count: 5 }]);
        expect(String((await client.query('show server_version')).rows[0].server_version)).toMatch(
          new RegExp(`^${oldest}\\b`),
        );
        await client.query('insert into notes values (6)');
      });
      expect((await hall.act(id, 'restart')).status_reason).toBeNull();
    },
    120_000,
  );

  test('a full database takes no more, whatever its user sets; it is read, and more storage frees it', async () => {
    const { id } = await hall.create({ name: 'full', engine: 'postgresql' });
    const address = await addressOf(id);
    await connect(
      address,
      async (client) => void (await client.query('create table notes as select generate_series(1, 5) as id')),
    );
    const expectReason = async (wanted: RegExp | null): Promise<void> => {
      // Any change has the server looked at; without one it is within half a minute.
      await hall.call('PATCH', `/v2/databases/${id}`, { body: { deletion_protection: false } });
      await waitFor(
        'the reason',
        async () => {
          const { status, status_reason } = (await hall.call('GET', `/v2/databases/${id}`)).body;
          return status === 'available' && (wanted ? wanted.test(status_reason ?? '') : status_reason === null)
            ? true
            : null;
        },
        60_000,
      );
    };
    const data = path.join(hall.databaseDir, id, 'data');
    const fill = (megabytes: number): void =>
      expect(spawnSync('fallocate', ['-l', `${megabytes}M`, path.join(data, 'filler')]).status).toBe(0);
    const write = 'insert into notes values (6)';
    fill(1_000);
    await expectReason(/storage is full/);
    await connect(address, async (client) => {
      await expect(client.query(write)).rejects.toThrow(/read-only/);
      expect((await client.query('select count(*)::int as count from notes')).rows).toEqual([{ count: 5 }]);
      // The way to delete something; who writes on by it meets the next limit.
      await client.query('set default_transaction_read_only = off');
      await client.query('delete from notes where id = 5');
    });
    fill(1_300);
    await expectReason(/storage is full/);
    await waitFor('the limit that nobody switches off', async () => {
      let refused: string | null = null;
      await connect(address, async (client) => {
        await client.query('set default_transaction_read_only = off').catch(() => {});
        refused = await client.query(write).then(
          () => null,
          (error: Error) => error.message,
        );
        if (refused)
          expect((await client.query('select count(*)::int as count from notes')).rows).toEqual([{ count: 4 }]);
      }).catch(() => {});
      return refused;
    });
    expect((await hall.call('PATCH', `/v2/databases/${id}`, { body: { storage_gb: 3 } })).body.status).toBe('updating');
    expect(await hall.settled(id)).toMatchObject({ status: 'available', status_reason: null, storage_gb: 3 });
    await connect(address, async (client) => void (await client.query(write)));
  }, 120_000);

  test('the backups of a deleted database are kept until they expire, and nothing else', async () => {
    const { id } = await hall.create({ name: 'gone', engine: 'postgresql' });
    await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} });
    await waitFor('the backup', async () =>
      (await hall.call('GET', `/v2/databases/${id}/backups`)).body.data[0].status === 'completed' ? true : null,
    );
    await hall.remove(id);
    expect((await hall.call('GET', `/v2/databases/${id}`)).status).toBe(404);
    expect(existsSync(path.join(hall.databaseDir, id))).toBe(false);
    expect(readdirSync(path.join(hall.databaseDir, 'backups', id))).toHaveLength(1);
    expect(
      await hall.service.sql(
        `select round(extract(epoch from expires_at - now()) / 86400)::int as days from database_backups
          where database_id = $1`,
        [id],
      ),
    ).toEqual([{ days: 7 }]);

    await hall.service.sql(
      `update database_backups set expires_at = now(), deleted_at = now(), next_at = now() where database_id = $1`,
      [id],
    );
    await waitFor('the end of the backup', async () =>
      (await hall.service.sql('select 1 from database_backups where database_id = $1', [id])).length ? null : true,
    );
    await hall.service.sql('update databases set next_at = now() where id = $1', [id]);
    await waitFor('the end of its row', async () =>
      (await hall.service.sql('select 1 from databases where id = $1', [id])).length ? null : true,
    );
    expect(existsSync(path.join(hall.databaseDir, 'backups', id))).toBe(false);
  }, 60_000);
});
