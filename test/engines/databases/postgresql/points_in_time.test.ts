/** @tier heavy @quarter 2 @covers drivers/database/postgresql/backups models/databases/database/origin.ts */
// Points in time across whatever turns the timeline of a server: the window shows what a restore has a plan for.
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, describePostgresqlWithTools, openHall, type Hall } from '../../../support/databases/database_hall';
import { waitFor } from '../../../support/wait_for';

describePostgresqlWithTools(() => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  const ask = async (id: string, ...statements: string[]): Promise<unknown[]> => {
    const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    let rows: unknown[] = [];
    await connect(body.endpoints[0].connection_string, async (client) => {
      for (const statement of statements) ({ rows } = await client.query(statement));
    });
    return rows;
  };
  const notes = async (id: string) =>
    (await ask(id, 'select note from notes order by note')).map((row) => (row as { note: string }).note);
  const add = (id: string, note: string) => ask(id, `insert into notes values ('${note}')`);
  const backup = async (id: string): Promise<string> => {
    const made = await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} });
    await waitFor('the backup', async () => {
      const { body } = await hall.call('GET', `/v2/databases/${id}/backups/${made.body.id}`);
      expect(body.status).not.toBe('failed');
      return body.status === 'completed' ? body : null;
    });
    return made.body.id;
  };
  /** The window once the server was looked at again. */
  const window = async (id: string, since = new Date().toISOString()) => {
    await hall.call('PATCH', `/v2/databases/${id}`, { body: { deletion_protection: false } });
    return waitFor(
      'the window',
      async () => {
        const { point_in_time_window: found } = (await hall.call('GET', `/v2/databases/${id}`)).body;
        return found && (found.latest >= since || found.latest < found.earliest) ? found : null;
      },
      60_000,
    );
  };
  const moment = async (): Promise<string> => {
    await sleep(1_200);
    const at = new Date().toISOString();
    await sleep(1_200);
    return at;
  };
  const restore = async (id: string, at: string): Promise<void> => {
    await window(id, at);
    expect(await hall.act(id, 'restore', { point_in_time: at })).toMatchObject({
      status: 'available',
      status_reason: null,
    });
  };

  test('a promoted replica goes back to its points in time, again and again, and into copies', async () => {
    const { id } = await hall.create({ name: 'primary', engine: 'postgresql' });
    await ask(id, 'create table notes (note text)', "insert into notes values ('of the primary')");
    await backup(id);
    // The timeline of the primary is not the first one any more when the replica is made.
    const first = await moment();
    await add(id, 'gone');
    await restore(id, first);
    const replica = await hall.call('POST', `/v2/databases/${id}/replicas`, { body: { name: 'heir' } });
    const place = `/v2/databases/${id}/replicas/${replica.body.id}`;
    await waitFor('the replica', async () =>
      (await hall.call('GET', place)).body.status === 'available' ? true : null,
    );
    const promoted = (await hall.call('POST', `${place}/promote`)).body.id;
    expect(await hall.settled(promoted)).toMatchObject({ status: 'available', point_in_time_window: null });

    await add(promoted, 'a');
    await backup(promoted);
    await add(promoted, 'b');
    const b = await moment();
    await ask(promoted, 'truncate notes');
    const none = await moment();
    await restore(promoted, b);
    expect(await notes(promoted)).toEqual(['a', 'b', 'of the primary']);
    await add(promoted, 'c');
    const c = await moment();
    // To undo a restore, and back again: each starts a timeline of its own.
    await restore(promoted, none);
    expect(await notes(promoted)).toEqual([]);
    const copy = await hall.create({
      name: 'copy-of-heir',
      engine: 'postgresql',
      restore_from: { database_id: promoted, point_in_time: c },
    });
    expect([copy.status, copy.status_reason]).toEqual(['available', null]);
    expect(await notes(copy.id)).toEqual(['a', 'b', 'c', 'of the primary']);
    await restore(promoted, c);
    expect(await notes(promoted)).toEqual(['a', 'b', 'c', 'of the primary']);
    // The copy has points of its own from its first backup on.
    await backup(copy.id);
    const own = await moment();
    await ask(copy.id, 'truncate notes');
    await restore(copy.id, own);
    expect(await notes(copy.id)).toEqual(['a', 'b', 'c', 'of the primary']);
  }, 300_000);

  test('moments that no backup leads to are not in the window, or refused before anything changes', async () => {
    const { id } = await hall.create({ name: 'turned', engine: 'postgresql' });
    await ask(id, 'create table notes (note text)');
    const early = await backup(id);
    // What the log has lost is not led to: the archive begins again.
    const switched = async (enabled: boolean, form: RegExp) => {
      await hall.call('PATCH', `/v2/databases/${id}`, { body: { backup_schedule: { enabled } } });
      await waitFor('the archive', async () => {
        const [row] = (await ask(id, 'show archive_command')) as [{ archive_command: string }];
        return form.test(row.archive_command) ? true : null;
      });
    };
    await switched(false, /^true$/);
    await switched(true, /gzip/);
    await add(id, 'kept');
    const later = await backup(id);
    const reached = await moment();
    await hall.act(id, 'restore', { backup_id: early });
    const turned = new Date().toISOString();
    expect(await notes(id)).toEqual([]);
    await hall.call('PATCH', `/v2/databases/${id}`, { body: { deletion_protection: false } });
    const past = await waitFor('the window of before', async () => {
      const { point_in_time_window: found } = (await hall.call('GET', `/v2/databases/${id}`)).body;
      return found && found.latest < turned ? found : null;
    });
    expect(past.earliest < reached && reached < past.latest).toBe(true);
    const lost = await moment();
    expect((await hall.call('POST', `/v2/databases/${id}/restore`, { body: { point_in_time: lost } })).body.code).toBe(
      'point_in_time_unavailable',
    );
    await backup(id);
    const again = await window(id);
    expect(again.earliest).toBe(past.earliest);
    const refused = await hall.call('POST', `/v2/databases/${id}/restore`, { body: { point_in_time: lost } });
    expect([refused.status, refused.body]).toEqual([
      422,
      expect.objectContaining({
        code: 'point_in_time_unavailable',
        detail: expect.stringMatching(/^No backup leads to the moments from .+ to .+\. Choose another one\.$/),
        earliest: again.earliest,
      }),
    ]);
    expect((await hall.call('GET', `/v2/databases/${id}`)).body.status).toBe('available');
    await restore(id, reached);
    expect(await notes(id)).toEqual(['kept']);
    expect(later).not.toBe(early);
  }, 240_000);
});
