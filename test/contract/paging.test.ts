// Every list, page by page: complete while rows come and go, in every order, with an index and a constant number of
// queries.
import type { Operation } from '../../contract/operations';
import { createOperation, operations } from '../support/world';
import { distinct, get, kindOf, setUpPaging, sortsOf, world } from '../support/contract/paging_cases';

setUpPaging();

type Row = Record<string, unknown>;

const keyOf = (row: Row): string =>
  String(row.id ?? row.digest ?? row.key ?? row.code ?? row.database_package ?? row.region ?? row.type ?? row.name);

/** All rows, in pages of the given sizes by turns. */
async function walk(
  operation: Operation,
  sort: string | null,
  sizes: number[],
  between: (page: number) => Promise<unknown> = async () => {},
): Promise<Row[]> {
  const rows: Row[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < 500; page += 1) {
    const limit = sizes[page % sizes.length] as number;
    const answer: { data: Row[]; next_cursor: string | null } = await get(operation, { limit, sort, cursor });
    expect(answer.data.length).toBeLessThanOrEqual(limit);
    if (answer.next_cursor) expect(answer.data).toHaveLength(limit);
    rows.push(...answer.data);
    cursor = answer.next_cursor;
    if (!cursor) return rows;
    await between(page);
  }
  throw new Error(`${operation.id} does not end`);
}

describe('sorts', () => {
  const cases = distinct.flatMap((operation) =>
    sortsOf(operation).map((sort) => [operation.id, sort, operation] as const),
  );

  test.each(cases)('%s by %s', async (_, sort, operation) => {
    const rows = await walk(operation, sort, [1, 2, 3]);
    expect(new Set(rows.map(keyOf)).size).toBe(rows.length);
    const name = sort.replace('-', '');
    const values = rows.map((row) => (name === 'created_at' && !row.created_at ? keyOf(row) : row[name])) as (
      | string
      | number
      | null
    )[];
    const sign = sort.startsWith('-') ? -1 : 1;
    for (let index = 1; index < values.length; index += 1)
      expect([sort, values, compare(values[index - 1]!, values[index]!) * sign <= 0]).toEqual([sort, values, true]);
    expect(new Set(rows.map(keyOf))).toEqual(new Set((await walk(operation, sort, [100])).map(keyOf)));
  });
});

/** As PostgreSQL's "C" order does, nulls last either way. */
function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return (a ?? Infinity) < (b ?? Infinity) ? -1 : 1;
}

/** A parent may have few of them, and has as many already. */
const FEW = ['listDatabaseEndpoints', 'listDatabaseReplicas', 'listCdnDomains'];

describe('a walk while rows come and go', () => {
  const changing = distinct.filter(
    (operation) =>
      !FEW.includes(operation.id) &&
      createOperation(kindOf(operation) ?? '') &&
      operations.some(
        ({ method, field }) =>
          method === 'DELETE' && field.name.toLowerCase().includes((kindOf(operation) ?? '').replaceAll('_', '')),
      ),
  );

  it('is tried on every kind that is made and deleted', () => {
    expect(changing.map(({ id }) => id)).toEqual(
      expect.arrayContaining([
        'listVolumes',
        'listApplications',
        'listApplicationDomains',
        'listProjects',
        'listMyProjects',
      ]),
    );
  });

  test.each(
    changing.flatMap(
      (operation) =>
        [
          [operation.id, 'created_at', operation],
          [operation.id, '-created_at', operation],
          [operation.id, named(operation), operation],
        ] as const,
    ),
  )('%s by %s shows each row that stays once', async (_, sort, operation) => {
    const kind = kindOf(operation) as string;
    const remover = operations.find(
      ({ method, params, path }) =>
        method === 'DELETE' && path.endsWith('}') && params.length > 0 && deletes(path, kind),
    ) as Operation;
    const passing: string[] = [];
    for (let turn = 0; turn < 4; turn += 1) passing.push(await world.fresh(kind));
    const staying = new Set(
      (await get(operation, { limit: 100 })).data.map(keyOf).filter((id: string) => !passing.includes(id)),
    );
    const rows = await walk(operation, sort, [1, 2, 3], async (page) => {
      const victim = passing.shift();
      const removed = victim && world.call('DELETE', await world.path(remover, { [kind]: victim }));
      await Promise.all([page < 5 && world.fresh(kind), removed]);
    });
    const seen = rows.map(keyOf);
    expect(new Set(seen).size).toBe(seen.length);
    for (const id of staying) expect(seen).toContain(id);
  });
});

/** A sort by text, where there is one. */
function named(operation: Operation): string {
  return sortsOf(operation).find((sort) => ['name', 'hostname', 'key'].includes(sort)) ?? 'created_at';
}

function deletes(path: string, kind: string): boolean {
  return path.replace(/\/\{\w+\}$/, '') === createOperation(kind)?.path;
}
