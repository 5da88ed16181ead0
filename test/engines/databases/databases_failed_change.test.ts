/** @tier heavy @quarter 1 @covers jobs/databases/database drivers/hosted_server/replacement.ts */
// A change that fails leaves the database in service, with a reason: whatever needs `available` works at once.
import { mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import {
  describeEngine,
  describePostgresqlWithTools,
  openHall,
  type Hall,
} from '../../support/databases/database_hall';
import { waitFor } from '../../support/wait_for';

const ENGINES = {
  postgresql: (place: string) => truncateSync(path.join(place, 'base/base.tar.gz'), 5_000),
  mariadb: (place: string) => writeFileSync(path.join(place, 'dump.sql.gz'), gzipSync('select 1; create nonsense;')),
  redis: (place: string) => writeFileSync(path.join(place, 'dump.rdb'), 'REDIS0011 nonsense'),
};

for (const [engine, damage] of Object.entries(ENGINES)) {
  const tests = () => {
    let hall: Hall;
    beforeAll(async () => void (hall = await openHall()), 60_000);
    afterAll(() => hall?.close(), 60_000);

    const backupOf = async (id: string) => {
      const { status, body } = await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} });
      expect([status, body.code]).toEqual([201, undefined]);
      return waitFor('the backup', async () => {
        const found = (await hall.call('GET', `/v2/databases/${id}/backups/${body.id}`)).body;
        return ['completed', 'failed'].includes(found.status) ? found : null;
      });
    };

    test('a restore from a damaged backup: available, the reason, and everything works', async () => {
      const { id } = await hall.create({ name: 'kept', engine });
      const backup = await backupOf(id);
      expect(backup.status).toBe('completed');
      const pid = await hall.serverPid(id);
      damage(path.join(hall.databaseDir, 'backups', id, backup.id));
      const after = await hall.act(id, 'restore', { backup_id: backup.id });
      expect(after.status).toBe('available');
      expect(after.status_reason).toMatch(/^The restore failed\. .+ The data are as before\.$/);
      expect(after.status_reason.match(/\bbefore\b/g)).toHaveLength(1);
      if (engine === 'postgresql') {
        expect(after.status_reason).toMatch(
          /The file base\.tar\.gz of the backup is damaged\. gzip: stdin: unexpected/,
        );
        // What failed did so before the server was touched.
        expect(await hall.serverPid(id)).toBe(pid);
      }
      expect(after.status_reason).not.toMatch(/\/(tmp|var)\//);

      expect((await hall.call('POST', `/v2/databases/${id}/credentials/rotate`, { body: {} })).status).toBe(200);
      expect((await backupOf(id)).status).toBe('completed');
      const changed = await hall.call('PATCH', `/v2/databases/${id}`, { body: { storage_gb: after.storage_gb + 1 } });
      expect(changed.status).toBe(200);
      expect(await hall.settled(id)).toMatchObject({ status: 'available', status_reason: null });
      expect(await hall.act(id, 'restart')).toMatchObject({ status: 'available', status_reason: null });
      expect(readdirSync(path.join(hall.databaseDir, id)).filter((name) => /next|before|fetched/.test(name))).toEqual(
        [],
      );
    }, 240_000);

    test('what an earlier version left as failed comes back where its server runs', async () => {
      const { id } = await hall.create({ name: 'revived', engine });
      await hall.service.sql(
        `update databases set status = 'failed', status_reason = 'gone', next_at = now(), deadline_at = now(),
          generation = generation + 1,
          restoring_from = '{"backup_id": null, "point_in_time": null}' where id = $1`,
        [id],
      );
      await waitFor('the database', async () => {
        const { body } = await hall.call('GET', `/v2/databases/${id}`);
        return body.status === 'available' ? body : null;
      });
      expect(await hall.service.sql('select restoring_from from databases where id = $1', [id])).toEqual([
        { restoring_from: null },
      ]);
    }, 120_000);
  };
  if (engine === 'postgresql') describePostgresqlWithTools(tests);
  else describeEngine(engine as 'mariadb', tests);
}

describePostgresqlWithTools(() => {
  let hall: Hall;
  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  test('a change that cannot be applied says so at once, gives the database back, and goes on', async () => {
    const { id } = await hall.create({ name: 'stuck', engine: 'postgresql' });
    const place = `/v2/databases/${id}`;
    const told = (form: RegExp) =>
      waitFor('the reason', async () => {
        const { body } = await hall.call('GET', place);
        return form.test(body.status_reason ?? '') ? body : null;
      });
    // The configuration cannot be written.
    const obstacle = path.join(hall.databaseDir, id, 'conf', 'postgresql.conf.new');
    mkdirSync(obstacle);
    writeFileSync(path.join(obstacle, 'file'), '');
    await hall.call('PATCH', place, { body: { database_package: 's-1vcpu-2gb' } });
    expect(await told(/The host reported the error \w+\. The platform tries again\.$/)).toMatchObject({
      status: 'updating',
    });
    await hall.service.sql('update databases set deadline_at = now(), next_at = now() where id = $1', [id]);
    expect(
      await told(/^The change of the database could not be applied\. .+ The platform tries again\.$/),
    ).toMatchObject({
      status: 'available',
    });
    expect(
      (await hall.call('POST', `${place}/users`, { body: { username: 'more', access: 'read_only' } })).status,
    ).toBe(201);
    rmSync(obstacle, { recursive: true });
    await hall.service.sql('update databases set next_at = now() where id = $1', [id]);
    const applied = await waitFor('the change', async () => {
      const { body } = await hall.call('GET', place);
      return body.status_reason === null ? body : null;
    });
    expect(applied).toMatchObject({ status: 'available', database_package: 's-1vcpu-2gb' });
  }, 120_000);

  test('a replica and an endpoint that were given up come back where they run', async () => {
    const { id } = await hall.create({ name: 'followed', engine: 'postgresql' });
    const { body: replica } = await hall.call('POST', `/v2/databases/${id}/replicas`, { body: { name: 'reader' } });
    const { body: endpoint } = await hall.call('POST', `/v2/databases/${id}/endpoints`, {
      body: { name: 'reads', target: 'replicas', replica_id: replica.id },
    });
    const places = [
      [`/v2/databases/${id}/replicas/${replica.id}`, 'available'],
      [`/v2/databases/${id}/endpoints/${endpoint.id}`, 'active'],
    ] as const;
    const settled = async () => {
      for (const [place, status] of places)
        await waitFor(place, async () => ((await hall.call('GET', place)).body.status === status ? true : null));
    };
    await settled();
    for (const table of ['database_replicas', 'database_endpoints'])
      await hall.service.sql(
        `update ${table} set status = 'failed', status_reason = 'gone', deadline_at = now(), next_at = now(),
          generation = generation + 1
          where database_id = $1`,
        [id],
      );
    await settled();
  }, 120_000);
});
