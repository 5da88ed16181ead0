/** @user any */
// The four writes on rows of the loop, and that there is no fifth.
import { setTimeout as sleep } from 'node:timers/promises';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { claimRow, settleRow } from '../../db/lease';
import { changeRows, makeRowsDue, spreadRows, tearDownRows, wakeRows } from '../../db/loop_rows';
import { openWorkshop, until, type Workshop } from '../support/runner/workshop';

const ROOT = path.resolve(__dirname, '../..');

test('generations are raised and loops notified in two files of db/ alone', () => {
  const files = execFileSync('git', ['ls-files', '*.ts', ':!migrations', ':!test', ':!tools'], { cwd: ROOT })
    .toString()
    .trim()
    .split('\n');
  expect(files.length).toBeGreaterThan(300);
  const having = (pattern: RegExp): string[] =>
    files.filter((file) =>
      pattern.test(readFileSync(path.join(ROOT, file), 'utf8').replaceAll(/observed_generation/g, '')),
    );
  expect(having(/generation \+ 1/)).toEqual(['db/loop_rows.ts']);
  expect(having(/pg_notify\('due'/)).toEqual(['db/due_notifier.ts']);
});

describe('a row of the loop', () => {
  let workshop: Workshop;
  let id: string;
  const row = async (): Promise<Record<string, unknown>> => (await workshop.row('volumes', id)) as never;
  const rows = (): { table: string; where: string; values: string[] } => ({
    table: 'volumes',
    where: 'id = $1',
    values: [id],
  });
  const claim = async () => {
    // Times are rounded to milliseconds: what is due at once may be due half of one later.
    await sleep(1);
    return claimRow(workshop.database, 'volumes', { owner: 'one', leaseMs: 60_000, deadlineMs: 60_000, avoid: [] });
  };

  beforeAll(async () => void (workshop = await openWorkshop()));
  afterAll(() => workshop.close());
  beforeEach(async () => {
    await workshop.rows('delete from volumes');
    [id] = (await workshop.addVolumes(1)) as [string];
    await workshop.rows(`update volumes set next_at = null, attempts = 3, deadline_at = now()`);
  });

  test('made due, keeps its generation and the time that is left to it', async () => {
    expect(await makeRowsDue(workshop.database, rows())).toEqual([id]);
    expect(await row()).toMatchObject({ generation: 1, attempts: 3, next_at: expect.any(String) });
    expect((await row()).deadline_at).not.toBeNull();
  });

  test('spread, is due within the time, and not later than it was', async () => {
    await workshop.rows(`update volumes set next_at = now() - interval '1 minute'`);
    await spreadRows(workshop.database, rows(), 1_000);
    expect(Date.parse((await row()).next_at as string)).toBeLessThan(Date.now() - 50_000);
  });

  test('woken during a step, drops the status of that step and is due at once', async () => {
    await makeRowsDue(workshop.database, rows());
    const claimed = await claim();
    await wakeRows(workshop.database, rows());
    const write = { ending: 'done', columns: { status: 'available' }, nextMs: null, error: null } as const;
    expect(await settleRow(workshop.database, claimed!.lease, write, null)).toMatchObject({ changed: true });
    expect(await row()).toMatchObject({ status: 'provisioning', attempts: 0, version: 1, next_at: expect.any(String) });
  });

  test('changed, has its fields, a new generation and all of its time again', async () => {
    await changeRows(workshop.database, { ...rows(), set: 'size_gb = 9' });
    expect(await row()).toMatchObject({ size_gb: 9, generation: 2, attempts: 0, deadline_at: null });
  });

  test('torn down, is torn down once', async () => {
    expect(await tearDownRows(workshop.database, rows())).toEqual([id]);
    expect(await row()).toMatchObject({ generation: 2, deleted_at: expect.any(String) });
    expect(await tearDownRows(workshop.database, rows())).toEqual([]);
  });

  test('calls the loops after the commit, and not after a rollback', async () => {
    const heard: string[] = [];
    const client = new Client({ connectionString: workshop.url });
    client.on('notification', ({ payload }) => heard.push(payload ?? ''));
    await client.connect();
    await client.query('listen due');
    // Calls of the tests before.
    await new Promise((resolve) => setTimeout(resolve, 500));
    heard.length = 0;
    try {
      const abandoned = workshop.database.transaction(async (sql) => {
        await wakeRows(sql, rows());
        throw new Error('abandoned');
      });
      await expect(abandoned).rejects.toThrow('abandoned');
      await workshop.database.transaction(async (sql) => {
        sql.due('schedules');
        await sql.query({ name: 'nothing', text: 'select 1' }, []);
        expect(heard).toEqual([]);
      });
      await until('the loops are called', async () => heard.length > 0);
      expect(heard).toEqual(['schedules']);
    } finally {
      await client.end();
    }
  });
});
