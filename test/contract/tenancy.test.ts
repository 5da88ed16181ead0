// Two accounts and a second project of the first, with rows of every kind in each: nobody reaches, names or hears of
// what belongs to another project, in paths, bodies, filters, cursors and relations, on both faces.
import type { Operation } from '../../contract/operations';
import { projectSource, publishedOperation } from '../support/contract/table';
import { kindNames, kindOfReference, operations, type World } from '../support/world';
import {
  asCase,
  expectSilence,
  mine,
  others,
  rowParams,
  setUpTenancy,
  strangers,
} from '../support/contract/tenancy_cases';

setUpTenancy();

test('every kind has rows in every project', () => {
  for (const [name, world] of strangers()) expect([name, world.marks.size > kindNames.length]).toEqual([name, true]);
});

describe('paths', () => {
  // AI models are a catalog, which is everybody's.
  const withRows = operations.filter((operation) => operation.id !== 'getAiModel' && rowParams(operation).length > 0);

  test.each(withRows.map(asCase))('%s finds no row of another project', async (id, operation) => {
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
  });

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
        const listed = field.endsWith('_ids');
        const fields = operation.field.body?.type.getFields() ?? {};
        const needs = {
          ...(field === 'application_id' && 'mount_path' in fields && { mount_path: '/elsewhere' }),
          ...(field === 'git_integration_id' && { access: 'git_integration' }),
          ...(field === 'replica_id' && { target: 'replicas' }),
        };
        const body = { ...(await mine.body(operation)), ...needs, [field]: listed ? [foreign] : foreign };
        const answer = await mine.call(operation.method, await mine.path(operation), { body });
        expect([name, answer.status, answer.body.code, answer.body.field]).toEqual([
          name,
          422,
          'reference_not_found',
          listed ? `${field}.0` : field,
        ]);
        expectSilence(answer, other, [foreign]);
      }
    }
  });
});
