// Every list, page by page: complete while rows come and go, in every order, with an index and a constant number of
// queries.
import { Client } from 'pg';
import type { Statement } from '../../core/context';
import type { Operation } from '../../contract/operations';
import { specOf } from '../../contract/spec';
import { startDnsServer, type DnsServer } from '../support/dns_server';
import { document, relations, relationSelection, selectionOf } from '../support/graphql_query';
import { SAMPLE_SETTINGS } from '../support/sample_repository';
import { startService, type Answer, type TestService } from '../support/service';
import {
  core,
  createOperation,
  kindNames,
  kindOfParam,
  openWorld,
  operations,
  typeName,
  type World,
} from '../support/world';

let service: TestService;
let dns: DnsServer;
let world: World;

beforeAll(async () => {
  dns = await startDnsServer();
  service = await startService({
    settings: {
      ...SAMPLE_SETTINGS,
      DNS_RESOLVERS: dns.address,
      QUOTAS: '{"databases": null, "database_storage_gb": null}',
    },
  });
  world = openWorld(service);
  for (const kind of kindNames) for (let turn = 0; turn < 5; turn += 1) await world.fresh(kind);
});

afterAll(async () => {
  await service.close();
  await dns.close();
});

const lists = operations.filter(({ field, method }) => method === 'GET' && field.list);
const asCase = (operation: Operation): [string, Operation] => [operation.id, operation];
/** A twin binding is the same list at another place. */
const distinct = lists.filter(({ field, key }) => key === field.name);

type Row = Record<string, unknown>;
const keyOf = (row: Row): string =>
  String(row.id ?? row.key ?? row.code ?? row.database_package ?? row.region ?? row.type);

/** The kind whose rows a list shows, undefined for catalogs. */
function kindOf(operation: Operation): string | undefined {
  const row = typeName(operation.field.definition.type).replace(/List$/, '').replace(/^My/, '');
  return kindNames.find(
    (kind) =>
      kind
        .split('_')
        .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
        .join('') === row,
  );
}

async function get(operation: Operation, query: Record<string, string | number | null>): Promise<Answer['body']> {
  const search = Object.entries(query)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  const answer = await world.call('GET', `${await world.path(operation)}?${search.join('&')}`);
  if (answer.status !== 200) throw new Error(`${operation.id}?${search.join('&')}: ${answer.text}`);
  return answer.body;
}

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

function sortsOf(operation: Operation): string[] {
  const argument = operation.query.find(({ name }) => name === 'sort');
  return argument ? (specOf(core.schema, argument).sorts ?? []).flatMap((sort) => [sort, `-${sort}`]) : [];
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
      string | number | null
    )[];
    const sign = sort.startsWith('-') ? -1 : 1;
    for (let index = 1; index < values.length; index += 1)
      expect([sort, values, compare(values[index - 1]!, values[index]!) * sign <= 0]).toEqual([sort, values, true]);
    expect(new Set(rows.map(keyOf))).toEqual(new Set((await get(operation, { limit: 100 })).data.map(keyOf)));
  });
});

/** As PostgreSQL's "C" order does, nulls last either way. */
function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return (a ?? Infinity) < (b ?? Infinity) ? -1 : 1;
}

/** A database may have few of them, and has as many already. */
const FEW = ['listDatabaseEndpoints', 'listDatabaseReplicas'];

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
  return (
    path.includes(`/${createOperation(kind)?.path.split('/').at(-1)}/{`) &&
    path.split('/{').at(-1) === path.slice(path.lastIndexOf('/{') + 2)
  );
}

/** Who is calling is cached for two seconds, so these come now and then. */
const IDENTITY = /^(select k\.id|select p\.id, p\.name|update api_keys|update sessions)/;

/** What the service asks the database while something runs. */
async function statements(run: () => Promise<unknown>): Promise<{ text: string; values: readonly unknown[] }[]> {
  const { database } = service.platform;
  const original = database.query;
  const seen: { text: string; values: readonly unknown[] }[] = [];
  database.query = function query<R>(statement: Statement, values: readonly unknown[]): Promise<R[]> {
    if (!IDENTITY.test(statement.text)) seen.push({ text: statement.text, values });
    return original.call(database, statement, values) as Promise<R[]>;
  };
  await run().finally(() => (database.query = original));
  return seen;
}

interface Plan {
  'Node Type': string;
  'Index Name'?: string;
  'Relation Name'?: string;
  Plans?: Plan[];
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

describe('indexes', () => {
  const TENANT = ['project_id', 'application_id', 'database_id', 'user_id', 'account_id', 'id'];
  let client: Client;
  let columns: Map<string, string[]>;
  let unique: Set<string>;

  beforeAll(async () => {
    client = new Client({ connectionString: service.platform.databaseUrl });
    await client.connect();
    await client.query('set enable_seqscan = off; set enable_sort = off; set timezone = utc');
    const { rows } = await client.query<{ name: string; columns: string[]; unique: boolean }>(
      `select i.relname as name, x.indisunique as unique, array_agg(a.attname::text order by k.n) as columns
        from pg_index x join pg_class i on i.oid = x.indexrelid
       cross join lateral unnest(x.indkey) with ordinality as k (attnum, n)
         join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.attnum
       where i.relnamespace = 'public'::regnamespace group by i.relname, x.indisunique`,
    );
    columns = new Map(rows.map((row) => [row.name, row.columns]));
    unique = new Set(rows.filter((row) => row.unique).map((row) => row.name));
  });

  afterAll(() => client.end());

  /** Lists that are read from a table of their kind. */
  const stored = distinct.filter(
    (operation) => kindOf(operation) && !['listProjects', 'listMyProjects'].includes(operation.id),
  );
  const filters = (operation: Operation): string[] =>
    operation.query.map(({ name }) => name).filter((name) => !['limit', 'cursor', 'sort'].includes(name));
  const cases = stored.flatMap((operation) =>
    [...sortsOf(operation).map((sort) => ['sort', sort]), ...filters(operation).map((name) => ['filter', name])].map(
      ([what, name]) => [operation.id, what as string, name as string, operation] as const,
    ),
  );

  async function planOf(operation: Operation, query: Record<string, string>): Promise<Plan[]> {
    const asked = await statements(() => get(operation, { limit: 2, ...query }));
    const page = asked.find(({ text }) => / order by .* limit \$\d+$/s.test(text));
    if (!page) throw new Error(`${operation.id} reads no page`);
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(`explain (format json) ${page.text}`, [
      ...page.values,
    ]);
    return nodesOf(rows[0]?.['QUERY PLAN'][0].Plan as Plan);
  }

  test.each(cases)('%s: the %s %s has one that begins with the tenant', async (_, what, name, operation) => {
    const plan = await planOf(operation, what === 'sort' ? { sort: name } : { [name]: exampleOf(operation, name) });
    expect(plan.map((node) => node['Node Type'])).not.toContain('Seq Scan');
    const used = plan.flatMap((node) => node['Index Name'] ?? []);
    expect(used.length).toBeGreaterThan(0);
    for (const index of used) expect(TENANT).toContain(columns.get(index)?.[0]);
    if (what === 'sort') return expectOrder(plan);
    const column = ['since', 'until'].includes(name) ? 'id' : name;
    const table = plan.find((node) => node['Relation Name'])?.['Relation Name'];
    const { rows } = await client.query<{ indexname: string }>(
      'select indexname from pg_indexes where tablename = $1',
      [table],
    );
    const fitting = rows.filter(
      ({ indexname }) =>
        TENANT.includes(columns.get(indexname)?.[0] ?? '') && columns.get(indexname)?.slice(0, 2).includes(column),
    );
    expect([name, fitting.length > 0]).toEqual([name, true]);
  });

  /** Rows come in order. What is left to sort within equal keys is one row where the keys are unique. */
  function expectOrder(plan: Plan[]): void {
    const types = plan.map((node) => node['Node Type']);
    expect(types).not.toContain('Sort');
    if (types.includes('Incremental Sort'))
      expect(plan.some((node) => unique.has(node['Index Name'] ?? ''))).toBe(true);
  }

  function exampleOf(operation: Operation, name: string): string {
    const type = String(operation.query.find((argument) => argument.name === name)?.type);
    if (type === 'DateTime') return '2026-01-01T00:00:00.000Z';
    if (type === 'Int') return '7';
    const enumeration = core.schema.getType(type);
    return enumeration && 'getValues' in enumeration ? (enumeration.getValues()[0]?.name as string) : 'x';
  }
});

describe('queries', () => {
  const counted = async (run: () => Promise<unknown>): Promise<number> => {
    await run();
    return (await statements(run)).length;
  };

  test.each(distinct.map(asCase))('%s asks as often for many rows as for one', async (_, operation) => {
    expect(await counted(() => get(operation, { limit: 100 }))).toBe(await counted(() => get(operation, { limit: 1 })));
  });

  test.each(relations().map((relation) => [`${relation.parent.name}.${relation.field.name}`, relation] as const))(
    'GraphQL lists with %s too',
    async (_, relation) => {
      const roots = distinct.filter(({ field }) => typeName(field.definition.type) === `${relation.parent.name}List`);
      for (const root of roots) {
        const ids = Object.fromEntries(
          await Promise.all(
            root.params.map(async ({ name, argument }) => [argument, await world.id(kindOfParam(root, name))]),
          ),
        );
        const run = (limit: number) => async (): Promise<void> => {
          const text = document(
            root.field,
            [...Object.keys(ids), 'limit'],
            ` { data { ${relationSelection(relation)} } }`,
          );
          const { errors } = await service.graphql(text, { ...ids, limit });
          expect(errors).toBeUndefined();
        };
        expect([root.id, await counted(run(8))]).toEqual([root.id, await counted(run(1))]);
      }
    },
  );

  it('selections are made of what REST shows', () => {
    for (const { field } of distinct) expect(selectionOf(field.definition.type)).toContain('next_cursor');
  });
});
