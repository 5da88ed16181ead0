// What is built against what is published: docs/contract/operations.tsv is the specification's table.
import { groups, type Group } from '../../core/groups';
import { buildFacade, facadeSchema } from '../../rest/facade';
import { openapiDocument } from '../../rest/openapi';
import { extensions, published } from '../support/contract/table';
import { core, operations } from '../support/world';

const idsOf = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id).sort();

describe('the operations', () => {
  it('without the mark of an extension are those of the specification, all of them', () => {
    expect(idsOf(operations.filter(({ extension }) => !extension))).toEqual(idsOf(published));
  });

  it('with the mark are those of extensions.tsv, all of them', () => {
    expect(idsOf(operations.filter(({ extension }) => extension))).toEqual(idsOf(extensions));
  });

  it.each([...published, ...extensions].map((row) => [row.id, row] as const))('%s is as published', (id, row) => {
    const operation = operations.find((candidate) => candidate.id === id);
    if (!operation) throw new Error(`${id} is listed and not built: ${row.method} ${row.path}`);
    const { field, method, path, status, group } = operation;
    expect({
      id: operation.id,
      group,
      kind: field.kind,
      method,
      path,
      scope: field.scope,
      status,
      paginated: field.list,
    }).toEqual(row);
  });
});

describe('the published table', () => {
  it('has 253 operations in the groups of core/groups.ts', () => {
    expect(published).toHaveLength(253);
    const counts = groups.map(({ name }) => ({
      name,
      operations: published.filter((row) => row.group === name).length,
    }));
    expect(counts).toEqual(groups.map(({ name, operations: count }) => ({ name, operations: count })));
  });

  it('has each id and each place once, extensions included', () => {
    const rows = [...published, ...extensions];
    const places = rows.map((row) => `${row.method} ${row.path.replace(/\{\w+\}/g, '{}')}`);
    expect(new Set(places).size).toBe(rows.length);
    expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
  });
});

describe('the faces', () => {
  it('SOFA makes a handler of each operation and of nothing else', async () => {
    const handlers = buildFacade(core.schema, core.table);
    expect([...handlers.keys()].sort()).toEqual(operations.map(({ id }) => id).sort());
    const view = facadeSchema(core.schema, core.table.operations);
    const roots = [view.getQueryType(), view.getMutationType()].flatMap((type) => Object.keys(type?.getFields() ?? {}));
    expect(roots.sort()).toEqual(operations.map(({ key }) => key).sort());
    // Also where several are called for the first time at once.
    await Promise.all([...handlers.values()].map((handler) => handler.compile()));
  });

  it('OpenAPI describes each operation and nothing else', () => {
    const document = openapiDocument({
      table: core.table,
      schema: core.schema,
      transitional: core.transitional,
      baseUrl: 'http://127.0.0.1:8080',
      version: '0.0.0',
    });
    const described = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`),
    );
    expect(described.sort()).toEqual(operations.map(({ id, method, path }) => `${id} ${method} ${path}`).sort());
    const marked = Object.values(document.paths)
      .flatMap((item) => Object.values(item))
      .filter((operation) => operation['x-extension']);
    expect(marked.map(({ operationId }) => operationId).sort()).toEqual(idsOf(extensions));
    const tags = document.tags.filter((tag) => tag['x-extension']).map(({ name }) => name);
    expect(tags).toEqual(groups.filter((group: Group) => group.extension).map(({ name }) => name));
  });
});
