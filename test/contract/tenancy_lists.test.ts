// Lists and GraphQL show one project only: filters, cursors and relations included.
import type { Operation } from '../../contract/operations';
import { document, relations, relationSelection } from '../support/contract/graphql_query';
import { type Answer, type TestService } from '../support/service';
import {
  createOperation,
  kindNames,
  kindOfParam,
  kindOfReference,
  operations,
  typeName,
  type World,
} from '../support/world';
import { FROM_PROVIDERS } from '../support/world_git';
import {
  asCase,
  expectSilence,
  mine,
  others,
  rowParams,
  service,
  setUpTenancy,
  strangers,
} from '../support/contract/tenancy_cases';

setUpTenancy();

const lists = operations.filter(
  ({ id, field, method }) => method === 'GET' && field.list && !FROM_PROVIDERS.includes(id),
);

/** Rows of catalogs are everybody's. */
const EVERYBODYS = ['listVolumeSizeLimits', 'listAiModels', 'getAiModel'];
const ownLists = lists.filter(
  ({ group, field, id }) => group !== 'Reference' && field.scope !== 'none' && !EVERYBODYS.includes(id),
);

/** They go over all projects of the caller. */
const acrossProjects = ['listProjects', 'listMyProjects', 'listDeletedProjects', 'listPausedKeys'];

/** One share is enough for most. */
const hasNoSecondPage = [...acrossProjects, 'listSharedRepositoryProjects'];

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
        // What can be no name of this kind is refused; no list shows a row.
        const refused = [mark, 400, 'invalid_query_parameter'];
        expect([mark, answer.status, answer.body.code ?? answer.body.data]).toEqual(
          answer.status === 400 ? refused : [mark, 200, []],
        );
      }
    },
  );

  test.each(ownLists.filter(({ id }) => !hasNoSecondPage.includes(id)).map(asCase))(
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

  const withRows = operations.filter(({ id }) => !EVERYBODYS.includes(id));

  test.each(withRows.filter((operation) => rowParams(operation).length > 0).map(asCase))(
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
      const variables = {
        ...(await variablesOf(operation, mine)),
        [field.projectArgument as string]: stranger.project,
      };
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
