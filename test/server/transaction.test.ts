// Transactions and batches of reads, on a real PostgreSQL (docs/decisions/0025).
import { problem } from '../../core/errors';
import { openControlDatabase, type ControlDatabase } from '../../db/control_database';
import { mayBeRepeated } from '../../db/errors';
import { named, quick } from '../../db/statement';
import { createEmptyDatabase, type TestDatabase } from '../support/databases/database';

let home: TestDatabase;
let database: ControlDatabase;

beforeAll(async () => {
  home = await createEmptyDatabase();
  database = openControlDatabase(home.url, { poolSize: 2 });
  await database.query(named('create table notes (id int primary key, text text)'), []);
});
afterAll(async () => {
  await database.close();
  await home.drop();
});
beforeEach(() => database.query(named('truncate notes'), []));

const ADD = named('insert into notes values ($1, $2)');
const all = async (): Promise<number[]> =>
  (await database.query<{ id: number }>(named('select id from notes order by id'), [])).map(({ id }) => id);

test('what was sent is there with the commit, in the order in which it was sent', async () => {
  await database.transaction(async (sql) => {
    sql.send(ADD, [1, 'a']);
    sql.send(named('update notes set id = 2 where id = $1'), [1]);
    expect(await sql.query(named('select id from notes'), [])).toEqual([{ id: 2 }]);
    sql.send(ADD, [3, 'c']);
  });
  expect(await all()).toEqual([2, 3]);
});

test('what was sent and fails, fails the transaction, with its own error and not that of what came after', async () => {
  const run = database.transaction(async (sql) => {
    sql.send(ADD, [1, 'a']);
    sql.send(ADD, [1, 'again']);
    await sql.query(named('select 1 as later'), []);
  });
  await expect(run).rejects.toMatchObject({ code: '23505' });
  await expect(database.transaction(async (sql) => sql.send(ADD, ['no number', 'a']))).rejects.toMatchObject({
    code: '22P02',
  });
  expect(await all()).toEqual([]);
});

test('statements that were prepared before their table got a column run on, each once', async () => {
  const everything = named('select * from notes');
  const insert = named('insert into notes (id) values ($1) returning *');
  const everyConnection = (): Promise<unknown> =>
    Promise.all([1, 2].map((id) => database.transaction((sql) => sql.query(insert, [id]))));
  await everyConnection();
  await Promise.all([1, 2].map(() => database.query(everything, [])));
  await database.query(named('alter table notes add column more int default 7'), []);
  expect(await Promise.all([1, 2].map(() => database.query(everything, [])))).toEqual(
    [1, 2].map(() => [1, 2].map((id) => ({ id, text: null, more: 7 }))),
  );
  expect(await database.query(quick('select * from notes where id = 1'), [])).toEqual([{ id: 1, text: null, more: 7 }]);
  const add = (id: number) => database.transaction((sql) => sql.query(insert, [id]));
  await Promise.all([add(3), add(4)]);
  await database.query(named('alter table notes drop column more'), []);
  expect(mayBeRepeated(await add(5).catch((error: unknown) => error))).toBe(true);
  expect(await add(5)).toEqual([{ id: 5, text: null }]);
  expect(await all()).toEqual([1, 2, 3, 4, 5]);
});

test('what the work throws is told as it is, and nothing stays', async () => {
  const refused = problem('quota_exceeded');
  await expect(database.transaction(async (sql) => (sql.send(ADD, [1, 'a']), Promise.reject(refused)))).rejects.toBe(
    refused,
  );
  expect(await all()).toEqual([]);
});

test('work that goes on after a failed statement is not told that it was committed', async () => {
  const run = database.transaction(async (sql) => {
    await sql.query(ADD, [1, 'a']);
    await sql.query(ADD, [1, 'again']).catch(() => undefined);
    return 'done';
  });
  await expect(run).rejects.toThrow(/rolled back/);
  expect(await all()).toEqual([]);
});

test('a connection that is lost in the middle is replaced', async () => {
  const run = database.transaction(async (sql) => {
    sql.send(ADD, [1, 'a']);
    await sql.query(named('select pg_terminate_backend(pg_backend_pid())'), []);
  });
  await expect(run).rejects.toMatchObject({ code: 'service_unavailable' });
  expect(await all()).toEqual([]);
});

test('outside of a transaction nothing is sent without waiting', () => {
  expect(() => database.send(ADD, [1, 'a'])).toThrow(/no transaction/);
});

test('reads that leave together fail alone, and find their own rows', async () => {
  await database.query(named('insert into notes select n, n::text from generate_series(1, 40) n'), []);
  const read = quick('select text from notes where id = $1');
  const answers = await Promise.allSettled(
    Array.from({ length: 60 }, (_, n) => database.query<{ text: string }>(read, [n % 7 === 3 ? 'no number' : n + 1])),
  );
  answers.forEach((answer, n) => {
    if (n % 7 === 3) expect(answer).toMatchObject({ status: 'rejected', reason: { code: '22P02' } });
    else expect(answer).toEqual({ status: 'fulfilled', value: n < 40 ? [{ text: String(n + 1) }] : [] });
  });
});

describe('the same statement again', () => {
  const READ = `select id, text, null::int8 as nothing, 9007199254740991::int8 as large, '{"a":[1]}'::jsonb as data,
    true as flag, '2026-01-31 09:30:00.5+00'::timestamptz as time from notes where id = $1`;
  class Note {
    declare id: number;
    get shout(): string {
      return `${this.id}!`;
    }
  }
  const row = {
    id: 1,
    text: 'ü "x"',
    nothing: null,
    large: 9007199254740991,
    data: { a: [1] },
    flag: true,
    time: '2026-01-31T09:30:00.500Z',
  };

  test.each([
    ['plain rows', named(READ)],
    ['instances', quick(`${READ} limit 1`, Note)],
  ])('answers the same without a description of its columns: %s', async (_, statement) => {
    await database.query(ADD, [1, row.text]);
    const answers = [];
    for (let i = 0; i < 5; i += 1) answers.push(...(await database.query<Note>(statement, [1])));
    expect(answers).toHaveLength(5);
    for (const answer of answers) expect({ ...answer }).toEqual(row);
    if (statement.makes) expect(answers.map(({ shout }) => shout)).toEqual(Array(5).fill('1!'));
    expect(await database.query(statement, [2])).toEqual([]);
  });

  test('a result that got another column is refused, and not read as the old one', async () => {
    const every = named('select * from notes');
    await database.query(ADD, [1, 'a']);
    const run = database.transaction(async (sql) => {
      expect(await sql.query(every, [])).toEqual([{ id: 1, text: 'a' }]);
      await sql.query(named('alter table notes add column more int default 7'), []);
      await expect(sql.query(every, [])).rejects.toMatchObject({ code: 'service_unavailable' });
      throw problem('quota_exceeded');
    });
    await expect(run).rejects.toMatchObject({ code: 'quota_exceeded' });
    expect(await database.query(every, [])).toEqual([{ id: 1, text: 'a' }]);
  });

  test('an error of the database tells where the question was asked', async () => {
    const failing = async function whoAsked(): Promise<unknown> {
      return await database.query(named('select 1 / 0'), []);
    };
    const error = (await failing().catch((thrown: unknown) => thrown)) as Error;
    expect(error).toMatchObject({ code: '22012' });
    expect(error.stack).toContain('whoAsked');
  });
});
