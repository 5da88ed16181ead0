// The GraphQL face keeps the same door: every root field and every sort of key, and every relation with every scope.
import type { GraphQLInputObjectType } from 'graphql';
import { errors, type ErrorCode } from '../../core/errors';
import type { Operation, RootField } from '../../contract/operations';
import { allActors, type Actor } from '../support/contract/actors';
import { refusal } from '../support/contract/admission';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { document, poisoned, relations, relationSelection, type Relation } from '../support/contract/graphql_query';
import { SAMPLE_SETTINGS } from '../support/builds/sample_repository';
import { startService, type TestService } from '../support/service';
import { publishedOperation, type PublishedOperation } from '../support/contract/table';
import { addressed, core, kindOfParam, openWorld, operations, typeName, type World } from '../support/world';

let service: TestService;
let dns: DnsServer;
let actors: Actor[];
let world: World;

beforeAll(async () => {
  dns = await startDnsServer();
  service = await startService({
    settings: { ...SAMPLE_SETTINGS, QUOTAS: '{"applications": 200, "databases": 100}', DNS_RESOLVERS: dns.address },
  });
  const other = await service.newProject();
  const stranger = await service.newProject({ stranger: true });
  world = openWorld(service);
  await world.id('volume');
  actors = await allActors(service, other.id, stranger.id);
});

afterAll(async () => {
  await service.close();
  await dns.close();
});

/** As in access.test.ts: a request that fails in a known way once the caller is in. */
function variablesOf(operation: Operation): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const { name, argument } of operation.params) {
    const kind = kindOfParam(operation, name);
    values[argument] =
      kind === 'project'
        ? service.project
        : kind === 'environment_variable'
          ? 'NOBODY'
          : kind === 'error'
            ? 'no_such_code'
            : 'vol_01h455vb4pex5vsknk084sn02q';
  }
  const { body } = operation.field;
  if (body) values[body.argument] = poisoned(body.type);
  return values;
}

/** GraphQL-only root fields, as rows of the published table would state them. */
const GRAPHQL_ONLY: PublishedOperation[] = [
  {
    group: 'Environment',
    id: 'setEnvironmentVariables',
    kind: 'mutation',
    method: 'POST',
    path: '/v2/applications/{id}/env',
    scope: 'env:write',
    status: 200,
    paginated: false,
  },
];

function behindTheDoor({ id, field, path }: Operation): string | null {
  if (id === 'deleteProject') return 'project_not_empty';
  // A body of switches alone can be nothing but right.
  if (field.body && /\\u0000|\d/.test(JSON.stringify(poisoned(field.body.type)))) return 'validation_failed';
  return /\{\w+\}/.test(path.replace('/projects/{id}', '')) ? 'not_found' : null;
}

/**
 * A bad token refuses the whole request, public fields included: several fields may share it. Where nothing else names
 * the project, it is looked for by the id, of which there is no resource.
 */
function expectation(row: PublishedOperation, actor: Actor, behind: string | null, byId: boolean): string | null {
  const bad = actor.token !== null && actor.refused && actor.refused !== 'account_suspended';
  if (bad) return actor.refused as string;
  const code = refusal(row, actor, service.project) ?? behind;
  return code === 'project_header_missing' && byId && !actor.projects ? 'not_found' : code;
}

async function expectEveryActor(
  field: RootField,
  variables: Record<string, unknown>,
  row: PublishedOperation,
  behind: string | null,
): Promise<void> {
  const text = document(field, Object.keys(variables));
  const seen = await Promise.all(
    actors.map(async ({ name, token, header }) => {
      const { errors: failures } = await service.graphql(text, variables, { key: token, project: header });
      return [name, failures?.[0].extensions.status ?? null, failures?.[0].extensions.code ?? null];
    }),
  );
  expect(seen).toEqual(
    actors.map((actor) => {
      const code = expectation(row, actor, behind, 'id' in variables);
      return [actor.name, code && errors[code as ErrorCode].status, code];
    }),
  );
}

test.each(operations.map((operation) => [operation.id, operation] as const))('%s', async (_, operation) => {
  const row = publishedOperation(operation.id);
  await expectEveryActor(operation.field, variablesOf(operation), row, behindTheDoor(operation));
});

test.each(GRAPHQL_ONLY.map((row) => [row.id, row] as const))('%s', async (id, row) => {
  const field = core.table.fields.get(id) as RootField;
  const variables = {
    id: 'app_01h455vb4pex5vsknk084sn02q',
    [field.body?.argument as string]: poisoned(field.body?.type as GraphQLInputObjectType),
  };
  await expectEveryActor(field, variables, row, 'validation_failed');
});

test('every root field is an operation, a dashboard function or GraphQL-only', () => {
  const bound = new Set(operations.map(({ field }) => field.name));
  const rest = [...core.table.fields.values()].filter((field) => !bound.has(field.name));
  const graphqlOnly = rest.filter((field) => field.session === false);
  expect(graphqlOnly.map(({ name }) => name)).toEqual(GRAPHQL_ONLY.map(({ id }) => id));
  expect(graphqlOnly.every((field) => field.graphqlOnly)).toBe(true);
});

/** Root fields whose answer holds rows of the type. */
function waysTo({ parent }: Relation): Operation[] {
  return operations.filter(
    ({ field, key }) =>
      key === field.name && [parent.name, `${parent.name}List`].includes(typeName(field.definition.type)),
  );
}

function selectionOf(field: RootField, relation: Relation): string {
  return field.list ? ` { data { ${relationSelection(relation)} } }` : ` { ${relationSelection(relation)} }`;
}

async function realVariables(operation: Operation): Promise<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  for (const { name, argument } of operation.params) values[argument] = await world.id(kindOfParam(operation, name));
  // A change needs a row in a state that allows it: the last parameter names it.
  const last = operation.params[operation.params.length - 1];
  if (last && operation.field.kind === 'mutation')
    values[last.argument] = Object.values(await addressed(world, operation))[0] ?? values[last.argument];
  if (operation.field.body) values[operation.field.body.argument] = await world.body(operation);
  return values;
}

const cases = relations().flatMap((relation) =>
  waysTo(relation).map(
    (operation) => [`${relation.parent.name}.${relation.field.name}`, operation.id, relation, operation] as const,
  ),
);

test('every relation can be reached and names its scope', () => {
  for (const relation of relations())
    expect([relation.parent.name, relation.field.name, waysTo(relation).length > 0]).toEqual([
      relation.parent.name,
      relation.field.name,
      true,
    ]);
});

test.each(cases)('%s of %s needs its own scope', async (name, _, relation, operation) => {
  const root = operation.field.scope;
  const { alsoScopes, runs } = operation.field;
  const needed = [root, ...alsoScopes, ...(runs.length ? ['deploy'] : [])];
  const text = async (): Promise<[string, Record<string, unknown>]> => {
    const variables = await realVariables(operation);
    return [document(operation.field, Object.keys(variables), selectionOf(operation.field, relation)), variables];
  };
  const lacking = await service.graphql(...(await text()), { key: await service.mintKey({ scopes: needed }) });
  const refused = (lacking.errors ?? []).filter(({ extensions }) => extensions.code === 'insufficient_scope');
  const both = await service.graphql(...(await text()), {
    key: await service.mintKey({ scopes: [...needed, relation.scope] }),
  });
  expect([name, both.errors]).toEqual([name, undefined]);
  if (needed.includes(relation.scope as typeof root)) return expect(lacking.errors).toBeUndefined();
  expect(refused.length).toBeGreaterThan(0);
  expect(refused[0]).toMatchObject({ extensions: { required_scope: relation.scope } });
  expect(refused[0].path.at(-1)).toBe(relation.field.name);
});
