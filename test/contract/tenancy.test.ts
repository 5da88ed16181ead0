// Two accounts and a second project of the first, with rows of every kind in each: nobody reaches, names or hears of
// what belongs to another project, in paths, bodies, filters, cursors and relations, on both faces.
import type { Operation } from '../../contract/operations';
import { appendDatabaseLines, appendLogLines } from '../../models/log_line';
import { startDnsServer, type DnsServer } from '../support/dns_server';
import { document, relations, relationSelection } from '../support/graphql_query';
import { SAMPLE_SETTINGS } from '../support/sample_repository';
import { startService, type Answer, type TestService } from '../support/service';
import { projectSource, publishedOperation } from '../support/table';
import {
  createOperation,
  kindNames,
  kindOfParam,
  kindOfReference,
  openWorld,
  operations,
  typeName,
  type World,
} from '../support/world';

let service: TestService;
let dns: DnsServer;
let mine: World;
const others: World[] = [];

/** Rows of every kind in every project, twice where a page is to be turned. */
beforeAll(async () => {
  dns = await startDnsServer();
  service = await startService({ settings: { ...SAMPLE_SETTINGS, DNS_RESOLVERS: dns.address } });
  mine = openWorld(service);
  others.push(
    openWorld(service, await service.newProject({ stranger: true })),
    openWorld(service, await service.newProject()),
  );
  for (const world of [mine, ...others])
    for (const kind of kindNames) if (kind !== 'project') await Promise.all([world.id(kind), world.other(kind)]);
  for (const world of [mine, ...others]) await writeLines(world);
});

/** Lines of logs are rows without an id. */
async function writeLines(world: World): Promise<void> {
  const line = { project_id: world.project, application_id: await world.id('application'), source: 'app' as const };
  const built = { ...line, deployment_id: await world.id('deployment'), step: 'build' as const };
  const served = {
    project_id: world.project,
    database_id: await world.id('database'),
    replica_id: null,
    source: 'server' as const,
  };
  await appendLogLines(
    service.platform.database,
    [line, line, built, built].map((one) => ({ ...one, message: `printed in ${world.project}` })),
  );
  await appendDatabaseLines(
    service.platform.database,
    [served, served].map((one) => ({ ...one, message: `printed in ${world.project}` })),
  );
}

afterAll(async () => {
  await service.close();
  await dns.close();
});

const asCase = (operation: Operation): [string, Operation] => [operation.id, operation];
const strangers = (): [string, World][] =>
  others.map((world, index) => [index ? 'another project of the same owner' : 'another account', world]);

/** Nothing of the other project is in the answer, except what the request itself named. */
function expectSilence(answer: { text: string }, other: World, named: readonly string[]): void {
  const text = named.reduce((rest, word) => rest.replaceAll(word, ''), answer.text);
  for (const mark of other.marks)
    if (text.includes(mark)) throw new Error(`the answer tells of ${mark}: ${answer.text}`);
}

test('every kind has rows in every project', () => {
  for (const [name, world] of strangers()) expect([name, world.marks.size > kindNames.length]).toEqual([name, true]);
});

/** Parameters of the path that name rows inside a project. */
function rowParams(operation: Operation): string[] {
  return operation.params
    .map(({ name }) => kindOfParam(operation, name))
    .filter((kind) => kind !== 'project' && kind !== 'error' && kind !== 'environment_variable');
}

describe('paths', () => {
  test.each(operations.filter((operation) => rowParams(operation).length > 0).map(asCase))(
    '%s finds no row of another project',
    async (id, operation) => {
      for (const [name, other] of strangers()) {
        const kinds = rowParams(operation);
        // Each place alone, and all at once: a child under a foreign parent must not open either.
        const sets = [...kinds.map((kind) => [kind]), kinds];
        for (const foreign of sets) {
          const ids = Object.fromEntries(await Promise.all(foreign.map(async (kind) => [kind, await other.id(kind)])));
          const place = await mine.path(operation, ids);
          const answer = await mine.call(operation.method, place, { body: await mine.body(operation) });
          expect([id, name, foreign, answer.status, answer.body?.code]).toEqual([id, name, foreign, 404, 'not_found']);
          expectSilence(answer, other, Object.values(ids));
        }
      }
    },
  );

  test.each(operations.filter((operation) => projectSource(publishedOperation(operation.id)) === 'path').map(asCase))(
    '%s opens no project of another account',
    async (_, operation) => {
      const [stranger] = others as [World];
      const place = await mine.path(operation, { project: stranger.project });
      const answer = await mine.call(operation.method, place, { body: await mine.body(operation) });
      expect([answer.status, answer.body.code]).toEqual([404, 'project_not_found']);
      expectSilence(answer, stranger, [stranger.project]);
    },
  );
});

describe('the header', () => {
  test.each(operations.filter((operation) => projectSource(publishedOperation(operation.id)) === 'header').map(asCase))(
    '%s opens no project of another account',
    async (_, operation) => {
      const [stranger] = others as [World];
      const answer = await mine.call(operation.method, await stranger.path(operation), {
        body: await mine.body(operation),
        project: stranger.project,
      });
      expect([answer.status, answer.body.code]).toEqual([404, 'project_not_found']);
    },
  );
});

/** Dotted names of fields in a body that refer to a kind which is built. */
function references(operation: Operation): string[] {
  return Object.keys(operation.field.body?.type.getFields() ?? {}).filter(kindOfReference);
}

describe('bodies', () => {
  const referring = operations.filter((operation) => references(operation).length > 0);

  it('some refer to other kinds', () => {
    expect(referring.map(({ id }) => id)).toEqual(
      expect.arrayContaining(['createVolume', 'updateVolume', 'moveApplicationDomain']),
    );
  });

  test.each(referring.map(asCase))('%s refers to no row of another project', async (_, operation) => {
    for (const [name, other] of strangers()) {
      for (const field of references(operation)) {
        const foreign = await other.id(kindOfReference(field) as string);
        const fields = operation.field.body?.type.getFields() ?? {};
        const needs = {
          ...(field === 'application_id' && 'mount_path' in fields && { mount_path: '/elsewhere' }),
          ...(field === 'replica_id' && { target: 'replicas' }),
        };
        const body = { ...(await mine.body(operation)), ...needs, [field]: foreign };
        const answer = await mine.call(operation.method, await mine.path(operation), { body });
        expect([name, answer.status, answer.body.code, answer.body.field]).toEqual([
          name,
          422,
          'reference_not_found',
          field,
        ]);
        expectSilence(answer, other, [foreign]);
      }
    }
  });
});

const lists = operations.filter(({ field, method }) => method === 'GET' && field.list);
/** Rows of catalogs are everybody's. */
const ownLists = lists.filter(
  ({ group, field, id }) => group !== 'Reference' && field.scope !== 'none' && id !== 'listVolumeSizeLimits',
);
/** They go over all projects of the caller. */
const acrossProjects = ['listProjects', 'listMyProjects'];

describe('lists', () => {
  test.each(ownLists.map(asCase))('%s shows nothing of another project', async (id, operation) => {
    const answer = await mine.call('GET', `${await mine.path(operation)}?limit=100`);
    expect(answer.status).toBe(200);
    for (const [name, other] of strangers())
      if (!acrossProjects.includes(id) || name === 'another account') expectSilence(answer, other, []);
  });

  const filtered = ownLists.flatMap((operation) =>
    operation.query.filter(({ name }) => /_id$/.test(name)).map(({ name }) => [operation.id, name, operation] as const),
  );

  test.each(filtered)('%s by a foreign %s is empty', async (_, name, operation) => {
    for (const [whose, other] of strangers()) {
      for (const kind of kindOfReference(name) ? [kindOfReference(name) as string] : kindNames) {
        const foreign = await other.id(kind);
        const answer = await mine.call('GET', `${await mine.path(operation)}?${name}=${foreign}`);
        expect([whose, kind, answer.status, answer.body.data]).toEqual([whose, kind, 200, []]);
      }
    }
  });

  const named = ownLists.flatMap((operation) =>
    operation.query
      .filter(({ name }) => ['name', 'hostname'].includes(name))
      .map(({ name }) => [operation.id, name, operation] as const),
  );

  test.each(named.filter(([id]) => !acrossProjects.includes(id)))(
    '%s by a foreign %s is empty',
    async (_, name, operation) => {
      const [stranger] = others as [World];
      for (const mark of stranger.marks) {
        const answer = await mine.call('GET', `${await mine.path(operation)}?${name}=${encodeURIComponent(mark)}`);
        expect([answer.status, answer.body.data ?? []]).toEqual([answer.status, []]);
      }
    },
  );

  test.each(ownLists.filter(({ id }) => !acrossProjects.includes(id)).map(asCase))(
    '%s takes no cursor of another project',
    async (_, operation) => {
      for (const [name, other] of strangers()) {
        const theirs = await other.call('GET', `${await other.path(operation)}?limit=1`);
        expect(theirs.body.next_cursor).toEqual(expect.any(String));
        const answer = await mine.call(
          'GET',
          `${await mine.path(operation)}?limit=1&cursor=${theirs.body.next_cursor}`,
        );
        expect([name, answer.status, answer.body.code]).toEqual([name, 400, 'invalid_cursor']);
      }
    },
  );

  test('the lists of projects take no cursor of another person, and no cursor of each other', async () => {
    const [stranger] = others as [World];
    await stranger.fresh('project');
    for (const id of acrossProjects) {
      const operation = operations.find((candidate) => candidate.id === id) as Operation;
      const theirs = await stranger.call('GET', `${operation.path}?limit=1`);
      const answer = await mine.call('GET', `${operation.path}?limit=1&cursor=${theirs.body.next_cursor}`);
      expect([id, answer.status, answer.body.code]).toEqual([id, 400, 'invalid_cursor']);
    }
  });
});

describe('GraphQL', () => {
  const graphql = (
    text: string,
    variables: Record<string, unknown>,
    project = mine.project,
  ): ReturnType<TestService['graphql']> => service.graphql(text, variables, { key: mine.key, project });

  async function variablesOf(operation: Operation, other: World): Promise<Record<string, unknown>> {
    const values: Record<string, unknown> = {};
    for (const { name, argument } of operation.params) values[argument] = await other.id(kindOfParam(operation, name));
    const { body } = operation.field;
    if (body) values[body.argument] = await mine.body(operation);
    return values;
  }

  test.each(operations.filter((operation) => rowParams(operation).length > 0).map(asCase))(
    '%s finds no row of another project',
    async (_, operation) => {
      for (const [name, other] of strangers()) {
        const variables = await variablesOf(operation, other);
        const answer = await graphql(document(operation.field, Object.keys(variables)), variables);
        expect([name, answer.errors?.[0].extensions.code]).toEqual([name, 'not_found']);
        expectSilence(
          answer,
          other,
          Object.values(variables).filter((value): value is string => typeof value === 'string'),
        );
      }
    },
  );

  test('project_id of another account is refused on every field that takes it', async () => {
    const [stranger] = others as [World];
    const fields = operations.filter(({ field, key }) => field.name === key && field.projectArgument);
    expect(fields.length).toBeGreaterThan(3);
    for (const operation of fields) {
      const { field } = operation;
      const variables: Record<string, unknown> = { [field.projectArgument as string]: stranger.project };
      if (field.body) variables[field.body.argument] = await mine.body(operation);
      const answer = await graphql(document(field, Object.keys(variables)), variables);
      expect([field.name, answer.errors?.[0].extensions.code]).toEqual([field.name, 'project_not_found']);
      expectSilence(answer, stranger, [stranger.project]);
    }
  });

  test.each(relations().map((relation) => [`${relation.parent.name}.${relation.field.name}`, relation] as const))(
    '%s stays in its project',
    async (_, relation) => {
      const roots = operations.filter(
        ({ field, key, method }) =>
          method === 'GET' && key === field.name && typeName(field.definition.type) === `${relation.parent.name}List`,
      );
      for (const root of roots) {
        const variables: Record<string, unknown> = { limit: 10 };
        for (const { name, argument } of root.params) variables[argument] = await mine.id(kindOfParam(root, name));
        const answer = await graphql(
          document(root.field, Object.keys(variables), ` { data { ${relationSelection(relation)} } }`),
          variables,
        );
        expect([root.id, answer.errors, answer.data[root.field.name].data.length > 0]).toEqual([
          root.id,
          undefined,
          true,
        ]);
        for (const [, other] of strangers()) expectSilence(answer, other, []);
      }
    },
  );

  test('rows that point into another project by mistake show nothing of it', async () => {
    const [stranger] = others as [World];
    await service.sql(`update volumes set application_id = $2, mount_path = '/wrong' where id = $1`, [
      await mine.other('volume'),
      await stranger.id('application'),
    ]);
    const answer = await graphql('query ($id: ID!) { getVolume(id: $id) { id application { id name } } }', {
      id: await mine.other('volume'),
    });
    expect([answer.errors, answer.data.getVolume.application]).toEqual([undefined, null]);
    const reverse = await service.graphql(
      'query ($id: ID!) { getApplication(id: $id) { volumes(limit: 10) { id } } }',
      { id: await stranger.id('application') },
      { key: stranger.key, project: stranger.project },
    );
    expectSilence(reverse, mine, []);
  });
});

test('a create in one project is a fact in that project only', async () => {
  for (const kind of kindNames) {
    const operation = createOperation(kind);
    if (!operation || kind === 'project') continue;
    const made: Answer = await mine.call('POST', await mine.path(operation), { body: await mine.body(operation) });
    // Children say which their parent is.
    expect([kind, made.status, made.body.project_id ?? mine.project]).toEqual([kind, 201, mine.project]);
  }
});
