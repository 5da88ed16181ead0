// What pages cost: every list has an index, and a constant number of queries.
import { Client } from 'pg';
import type { Statement } from '../../core/context';
import { mintId } from '../../core/ids';
import type { Operation } from '../../contract/operations';
import { allKinds } from '../../models/base/kinds';
import { deployed } from '../support/deployments/deployed';
import { document, relations, relationSelection, selectionOf } from '../support/contract/graphql_query';
import { core, kindOfParam, typeName } from '../support/world';
import { distinct, get, kindOf, service, setUpPaging, sortsOf, world } from '../support/contract/paging_cases';

setUpPaging();

const asCase = (operation: Operation): [string, Operation] => [operation.id, operation];

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
  /** Columns that lead to rows of one project: the project itself, and references to rows of it. */
  const TENANT = [
    ...['project_id', 'application_id', 'database_id', 'dns_zone_id', 'observer_id', 'resource_id', 'notifier_ids'],
    ...['email_relay_zone_id', 'cdn_zone_id', 'registry_id', 'volume_id'],
    ...['user_id', 'account_id', 'bucket_ids', 'id'],
  ];
  /** Filters whose column has another name. */
  const COLUMNS: Record<string, string> = {
    ...{ since: 'id', until: 'id', notifier_id: 'notifier_ids', bucket_id: 'bucket_ids' },
  };
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

  /** Own rows and those of others together, of which a project has few (quota `shared_repositories`): sorted. */
  const joined = ['listProjects', 'listMyProjects', 'listDeletedProjects', 'listSharedRepositories'];
  /** Lists that are read from a table of their kind. */
  const stored = distinct.filter((operation) => kindOf(operation) && !joined.includes(operation.id));
  /** Found among the few that a project may have (quota `robot_accounts`): made of several columns. */
  const COMPUTED: Record<string, string[]> = { listRobotAccounts: ['status', 'registry_id'] };
  const filters = ({ id, query }: Operation): string[] =>
    query
      .map(({ name }) => name)
      .filter((name) => !['limit', 'cursor', 'sort', ...(COMPUTED[id] ?? [])].includes(name));
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
    const column = COLUMNS[name] ?? name;
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

  /** References that are not named after their kind. */
  const PREFIXES: Record<string, string> = { resource_id: 'app' };
  const prefixOf = (kind: string): string => allKinds().find((one) => one.kind === kind)?.idPrefix ?? kind;

  function exampleOf(operation: Operation, name: string): string {
    const type = String(operation.query.find((argument) => argument.name === name)?.type);
    if (type === 'DateTime') return new Date().toISOString();
    if (name.endsWith('_id')) return mintId(PREFIXES[name] ?? prefixOf(name.slice(0, -3)));
    if (type === 'Int') return '7';
    const enumeration = core.schema.getType(type);
    if (String(enumeration) === 'Boolean') return 'true';
    return enumeration && 'getValues' in enumeration ? (enumeration.getValues()[0]?.name as string) : 'x';
  }
});

describe('queries', () => {
  /** The application of a page of one has what others have: a deployment that is current. */
  beforeAll(async () => {
    const { body } = await world.call('GET', '/v2/applications?limit=1');
    await deployed(service, body.data[0].id);
  });

  const counted = async (run: () => Promise<unknown>): Promise<number> => {
    await run();
    return (await statements(run)).length;
  };

  test.each(distinct.map(asCase))('%s asks as often for many rows as for one', async (_, operation) => {
    expect(await counted(() => get(operation, { limit: 100 }))).toBe(await counted(() => get(operation, { limit: 1 })));
  });

  const listed = relations().flatMap((relation) => {
    const roots = distinct.filter(({ field }) => typeName(field.definition.type) === `${relation.parent.name}List`);
    return roots.length ? [[`${relation.parent.name}.${relation.field.name}`, relation, roots] as const] : [];
  });

  test.each(listed)('GraphQL lists with %s too', async (_, relation, roots) => {
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
  });

  it('selections are made of what REST shows', () => {
    for (const { field } of distinct) expect(selectionOf(field.definition.type)).toContain('next_cursor');
  });
});
