/** @tier heavy @quarter 2 @covers jobs/databases/database_backup.ts drivers/database/postgresql */
// What must not be lost: backups, points in time, copies, and a server that somebody kills.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, describePostgresqlWithTools, openHall, type Hall } from '../../support/databases/database_hall';
import { waitFor } from '../../support/wait_for';

describePostgresqlWithTools(() => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  const addressOf = async (id: string): Promise<string> =>
    (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].connection_string;
  const count = async (id: string): Promise<number> => {
    let rows = -1;
    await connect(
      await addressOf(id),
      async (client) => void (rows = (await client.query('select count(*)::int as count from notes')).rows[0].count),
    );
    return rows;
  };
  const run = async (id: string, ...statements: string[]): Promise<void> =>
    connect(await addressOf(id), async (client) => {
      for (const statement of statements) await client.query(statement);
    });

  /** Who has the address gets a file that pg_restore reads; who alters it gets nothing. */
  async function download(place: string): Promise<void> {
    const { status, body } = await hall.call('GET', place);
    expect([status, Date.parse(body.expires_at) > Date.now() + 800_000]).toEqual([200, true]);
    const here = body.url.replace(/^https?:\/\/[^/]+/, hall.service.url);
    const answer = await fetch(here);
    expect([answer.status, answer.headers.get('content-disposition')]).toEqual([
      200,
      expect.stringMatching(/^attachment; filename="app-\d{8}T\d{6}Z\.dump"$/),
    ]);
    const file = path.join(hall.service.dataDir, 'download.dump');
    writeFileSync(file, Buffer.from(await answer.arrayBuffer()));
    const listed = spawnSync('pg_restore', ['--list', file], { encoding: 'utf8' });
    expect([listed.status, listed.stdout]).toEqual([0, expect.stringMatching(/TABLE DATA public notes/)]);
    const [, expires = ''] = /expires=(\d+)/.exec(here) ?? [];
    for (const altered of [
      here.replace(/signature=(.)/, (_: string, first: string) => `signature=${first === 'a' ? 'b' : 'a'}`),
      here.replace(expires, String(Number(expires) + 60)),
      here.replace(expires, '1000000000'),
      here.replace(/[?].*$/, ''),
    ]) {
      expect((await fetch(altered)).status).toBe(404);
    }
  }

  test('rows that were destroyed come back from a backup, from a point in time, and into a copy', async () => {
    const { id } = await hall.create({ name: 'notes', engine: 'postgresql' });
    await run(id, 'create table notes (id int)', 'insert into notes select generate_series(1, 10)');
    const asked = await hall.call('POST', `/v2/databases/${id}/backups`, { body: { note: 'before the change' } });
    expect(asked.status).toBe(201);
    const backup = await waitFor('the backup', async () => {
      const { body } = await hall.call('GET', `/v2/databases/${id}/backups?limit=1`);
      return ['completed', 'failed'].includes(body.data[0].status) ? body.data[0] : null;
    });
    expect([backup.status, backup.size_bytes > 0]).toEqual(['completed', true]);
    await download(`/v2/databases/${id}/backups/${backup.id}/download`);

    await run(id, 'insert into notes select generate_series(11, 30)');
    await sleep(1_500);
    const moment = new Date().toISOString();
    await sleep(1_500);
    await run(id, 'truncate notes', 'insert into notes values (0)');
    // Any change has the server looked at; without one it is within half a minute.
    await hall.call('PATCH', `/v2/databases/${id}`, { body: { deletion_protection: false } });
    await waitFor(
      'the point in time',
      async () => {
        const { point_in_time_window: window } = (await hall.call('GET', `/v2/databases/${id}`)).body;
        return window && window.latest >= moment ? window : null;
      },
      60_000,
    );

    const copy = await hall.create({
      name: 'notes-copy',
      engine: 'postgresql',
      restore_from: { database_id: id, backup_id: backup.id },
    });
    expect([copy.status, copy.status_reason]).toEqual(['available', null]);
    expect([await count(copy.id), await count(id)]).toEqual([10, 1]);

    expect(await hall.act(id, 'restore', { point_in_time: moment })).toMatchObject({
      status: 'available',
      status_reason: null,
    });
    expect(await count(id)).toBe(30);
    expect(await hall.act(id, 'restore', { backup_id: backup.id })).toMatchObject({
      status: 'available',
      status_reason: null,
    });
    expect(await count(id)).toBe(10);
    await switchSchedule(id);
  }, 240_000);

  /**
   * Without backups nothing is kept for points in time, at once and without a restart; with them again, from the next
   * backup on.
   */
  async function switchSchedule(id: string): Promise<void> {
    const pid = await hall.serverPid(id);
    const window = async (): Promise<{ earliest: string; latest: string } | null> =>
      (await hall.call('GET', `/v2/databases/${id}`)).body.point_in_time_window;
    const before = await window();
    expect(before).not.toBeNull();
    const command = async (): Promise<string> => {
      let text = '';
      await connect(
        await addressOf(id),
        async (client) => void (text = (await client.query('show archive_command')).rows[0].archive_command),
      );
      return text;
    };
    await hall.call('PATCH', `/v2/databases/${id}`, { body: { backup_schedule: { enabled: false } } });
    await waitFor('the end of the archive', async () => ((await command()) === 'true' ? true : null));
    await waitFor('the end of the window', async () => ((await window()) === null ? true : null));
    await hall.call('PATCH', `/v2/databases/${id}`, { body: { backup_schedule: { enabled: true } } });
    await waitFor('the archive', async () => (/gzip/.test(await command()) ? true : null));
    expect(await window()).toBeNull();
    await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} });
    const after = await waitFor('the new window', window);
    expect(after.earliest > (before?.latest ?? '')).toBe(true);
    expect(await hall.serverPid(id)).toBe(pid);
  }

  test('a server that was killed is started again, and says why', async () => {
    const { id } = await hall.create({ name: 'killed', engine: 'postgresql' });
    await run(id, 'create table notes (id int)', 'insert into notes values (1)');
    const pid = await hall.serverPid(id);
    // One that ends while a step is at work on it is started by that step.
    await waitFor(
      'rest',
      async () =>
        (
          await hall.service.sql(
            "select 1 from databases where id = $1 and lease_until is null and next_at > now() + interval '5 seconds'",
            [id],
          )
        )[0] ?? null,
    );
    hall.killServer(id);
    const told = await waitFor(
      'the reason',
      async () => (await hall.call('GET', `/v2/databases/${id}`)).body.status_reason,
    );
    expect(told).toMatch(/being restarted/);
    await waitFor(
      'the new server',
      async () => (await hall.call('GET', `/v2/databases/${id}`)).body.status_reason === null || null,
    );
    expect(await hall.serverPid(id)).not.toBe(pid);
    expect(await count(id)).toBe(1);
  }, 60_000);
});
