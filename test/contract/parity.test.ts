// The two faces give the same: every query over REST and over GraphQL, and the same refusals.
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { fixedPeriod } from '../support/contract/fixed_period';
import { document } from '../support/contract/graphql_query';
import { SAMPLE_SETTINGS } from '../support/builds/sample_repository';
import { startService, type TestService } from '../support/service';
import { kindNames, kindOfParam, openWorld, operations, type World } from '../support/world';
import { FROM_PROVIDERS } from '../support/world_git';
import type { Operation } from '../../contract/operations';

let service: TestService;
let dns: DnsServer;
let world: World;

beforeAll(async () => {
  dns = await startDnsServer();
  service = await startService({ settings: { ...SAMPLE_SETTINGS, DNS_RESOLVERS: dns.address } });
  world = openWorld(service);
  for (const kind of kindNames) for (let turn = 0; turn < 3; turn += 1) await world.fresh(kind);
});

afterAll(async () => {
  await service.close();
  await dns.close();
});

/** Signs for a time that begins with the call. */
const SIGNED = ['getDatabaseBackupDownload', 'downloadVolumeBackup'];

const queries = operations
  .filter(({ method, id }) => method === 'GET' && !SIGNED.includes(id) && !FROM_PROVIDERS.includes(id))
  .map((operation): [string, Operation] => [operation.id, operation]);

/** Measured anew by every call. */
const MEASURED = new Set(['measured_at', 'last_used_at']);

function settled(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (name, inner: unknown) => (MEASURED.has(name) ? '' : inner)) as unknown;
}

async function variablesOf(operation: Operation): Promise<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  for (const { name, argument } of operation.params) values[argument] = await world.id(kindOfParam(operation, name));
  return values;
}

test.each(queries)('%s answers the same on both faces', async (_, operation) => {
  const period = fixedPeriod(operation);
  const variables = { ...(await variablesOf(operation)), ...period };
  const graphql = await service.graphql(document(operation.field, Object.keys(variables)), variables);
  const search = new URLSearchParams(period).toString();
  const rest = await service.call('GET', `${await world.path(operation)}?${search}`);
  expect([rest.status, graphql.errors]).toEqual([200, undefined]);
  expect(settled(graphql.data[operation.field.name])).toEqual(settled(rest.body));
});

test.each(queries.filter(([, { field }]) => field.list))(
  '%s turns the same pages on both faces',
  async (_, operation) => {
    const variables = await variablesOf(operation);
    const text = document(operation.field, [...Object.keys(variables), 'limit', 'cursor']);
    const place = await world.path(operation);
    let cursor: string | undefined;
    for (let page = 0; page < 3; page += 1) {
      const graphql = await service.graphql(text, { ...variables, limit: 1, cursor });
      const rest = await service.call('GET', `${place}?limit=1${cursor ? `&cursor=${cursor}` : ''}`);
      expect(settled(graphql.data[operation.field.name])).toEqual(settled(rest.body));
      cursor = rest.body.next_cursor ?? undefined;
      if (!cursor) return;
    }
  },
);

/** One bad value for each sort of argument: text on REST, typed in GraphQL. */
const BAD: [string, string, unknown][] = [
  ['limit', '0', 0],
  ['limit', '-5', -5],
  ['sort', 'color', 'color'],
  ['cursor', 'altered', 'altered'],
  ['cursor', '', ''],
  ['since', 'yesterday', 'yesterday'],
];

test.each(queries.filter(([, { field }]) => field.list))(
  '%s refuses the same arguments on both faces',
  async (_, operation) => {
    const variables = await variablesOf(operation);
    const place = await world.path(operation);
    const bad = BAD.filter(([name]) => operation.query.some((argument) => argument.name === name));
    expect(bad.length).toBeGreaterThan(2);
    for (const [name, sent, value] of bad) {
      const rest = await service.call('GET', `${place}?${name}=${sent}`);
      const graphql = await service.graphql(document(operation.field, [...Object.keys(variables), name]), {
        ...variables,
        [name]: value,
      });
      const { status, code, detail, parameter } = rest.body;
      expect([name, graphql.errors?.[0].message, graphql.errors?.[0].extensions]).toMatchObject([
        name,
        detail,
        { status, code, ...(parameter && { parameter }) },
      ]);
    }
  },
);

const mutations = operations.filter(({ field }) => field.body);

test.each(mutations.map((operation): [string, Operation] => [operation.id, operation]))(
  '%s refuses the same bodies on both faces',
  async (_, operation) => {
    const { body } = operation.field;
    const variables: Record<string, unknown> = await variablesOf(operation);
    const bad = Object.fromEntries(
      Object.entries((await world.body(operation)) ?? {}).map(([name, value]) => [
        name,
        typeof value === 'string' &&
        !/status|type|provider|available_at|builder|^access$|^target$|^concurrency$|^missed$|^kind$/.test(name)
          ? '\0'
          : value,
      ]),
    );
    const rest = await service.call(operation.method, await world.path(operation), { body: bad });
    const graphql = await service.graphql(
      document(operation.field, [...Object.keys(variables), body?.argument as string]),
      { ...variables, [body?.argument as string]: bad },
    );
    // What was begun on one face is in its own way on the other.
    const inTheWay = [undefined, 'resource_busy', 'already_exists'];
    const code = graphql.errors?.[0].extensions.code;
    if (rest.status < 300) return expect(inTheWay).toContain(code);
    if (rest.body.code === 'resource_busy') return expect(code).toBe('resource_busy');
    expect([rest.status, graphql.errors?.[0].extensions]).toMatchObject([
      422,
      { code: 'validation_failed', errors: rest.body.errors },
    ]);
  },
);
