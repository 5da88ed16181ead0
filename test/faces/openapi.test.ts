// The OpenAPI document against the operation table, the validator, the error table.
import { spawnSync } from 'node:child_process';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import { errors } from '../../core/errors';
import type { Operation } from '../../contract/operations';
import { buildCore } from '../../resolvers';
import { openapiDocument } from '../../rest/openapi';
import type { OpenApiDocument, OperationObject, Ref, Response, Schema } from '../../rest/openapi/document';
import { responseChecker, type CheckedResponse } from '../support/contract/openapi_check';

const core = buildCore();
const document = openapiDocument({
  table: core.table,
  schema: core.schema,
  transitional: core.transitional,
  baseUrl: 'http://127.0.0.1:8080',
  version: '0.1.0',
});
const rendered = JSON.stringify(document);

function found(operation: Operation): OperationObject {
  return document.paths[operation.path]?.[operation.method.toLowerCase()] as OperationObject;
}

function resolved<Part>(part: Part | Ref): Part {
  const { $ref } = part as Ref;
  if (!$ref) return part as Part;
  return $ref
    .slice(2)
    .split('/')
    .reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], document) as Part;
}

/** Members of a schema and the values of an enum. */
function namesOf(schema: Schema): string[] {
  return [...Object.keys(schema.properties ?? {}), ...(schema.enum ?? []).map(String)];
}

/** Every object inside a value, with the path to it. */
function* objectsIn(value: unknown, at = ''): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [at, value as Record<string, unknown>];
  for (const [name, entry] of Object.entries(value)) yield* objectsIn(entry, `${at}/${name}`);
}

describe('the OpenAPI document', () => {
  it('holds exactly the operations of the table', () => {
    const listed = Object.values(document.paths).flatMap((item) =>
      Object.values(item).map((operation) => operation.operationId),
    );
    expect(listed.sort()).toEqual(core.table.operations.map((operation) => operation.id).sort());
  });

  it('has an example of every answer and every problem, and each is valid', () => {
    const ajv = addFormats(new Ajv2020({ strict: false, validateSchema: false })).addSchema(document, 'document');
    const escaped = (part: string): string => part.replaceAll('~', '~0').replaceAll('/', '~1');
    const compiled = new Map<string, ValidateFunction>();
    let seen = 0;
    for (const operation of core.table.operations)
      for (const [status, given] of Object.entries(found(operation).responses)) {
        const { $ref } = given as Ref;
        const at =
          $ref?.slice(2) ?? `paths/${escaped(operation.path)}/${operation.method.toLowerCase()}/responses/${status}`;
        let entries: unknown[] | undefined;
        for (const [type, { schema, examples }] of Object.entries(resolved<Response>(given).content ?? {})) {
          const text = JSON.stringify(schema);
          const valid = compiled.get(text) ?? ajv.compile({ $ref: `document#/${at}/content/${escaped(type)}/schema` });
          compiled.set(text, valid);
          const named = Object.entries(examples ?? {});
          expect([operation.id, status, named.length > 0]).toEqual([operation.id, status, true]);
          for (const [name, example] of named) {
            const { value } = resolved<{ value: unknown }>(example as never);
            expect([operation.id, name, valid(value), valid.errors]).toEqual([operation.id, name, true, null]);
            if (typeof value === 'string') expect(value).toContain(`\ndata: ${JSON.stringify(entries?.[0])}\n\n`);
            else entries = (value as { data?: unknown[] }).data;
            seen += 1;
          }
        }
      }
    expect(seen).toBeGreaterThan(core.table.operations.length);
  });

  it('is YAML too: 1.1 and 1.2, and no more than readers take by default', () => {
    for (const version of ['1.1', '1.2'] as const) expect(parse(rendered, { version })).toEqual(JSON.parse(rendered));
    // SnakeYAML, which generators of clients read with, stops at this many characters.
    expect(rendered.length).toBeLessThan(3 * 1024 * 1024);
  });

  it.each(core.table.operations.map((operation) => [operation.id, operation] as const))(
    'describes %s completely',
    (_, operation) => {
      const described = found(operation);
      expect(described).toMatchObject({
        summary: operation.summary,
        tags: [operation.group],
        'x-required-scope': operation.field.scope,
      });
      expect(described.description).toBeTruthy();
      expect(Object.keys(described.responses)).toEqual(expect.arrayContaining(operation.statuses.map(String)));
      expect(Boolean(described.requestBody)).toBe(Boolean(operation.field.body));
      const parameters = (described.parameters ?? []).map((parameter) => resolved(parameter));
      for (const { name } of operation.params)
        expect(parameters).toContainEqual(expect.objectContaining({ name, in: 'path', required: true }));
      for (const { name } of operation.query)
        expect(parameters).toContainEqual(expect.objectContaining({ name, in: 'query' }));
      for (const parameter of parameters) expect(parameter.description).toBeTruthy();
    },
  );

  it('demands the key of every operation that needs one', () => {
    for (const operation of core.table.operations) {
      const [{ scope }, oauth] = [operation.field, [operation.field.scope].filter((one) => one !== 'any')];
      expect(found(operation).security).toEqual(scope === 'none' ? [] : [{ bearer: [] }, { oauth }]);
      expect('401' in found(operation).responses).toBe(scope !== 'none');
    }
  });

  it('has a schema of each problem, which its code tells from the others', () => {
    for (const operation of core.table.operations) {
      for (const code of operation.field.errors) {
        const { status } = errors[code as keyof typeof errors];
        const response = resolved<Response>(found(operation).responses[status] as Response);
        const schema = response.content?.['application/problem+json']?.schema as Schema;
        const choices = (schema.oneOf ?? [schema]).map((one) => resolved<Schema>(one as Ref));
        expect(choices.map(({ properties }) => properties?.code?.enum)).toContainEqual([code]);
      }
    }
  });

  it('knows every member that the error table names', () => {
    const { schemas } = document.components;
    const known = new Set(Object.values(schemas).flatMap(namesOf));
    for (const [code, { meaning, remedy }] of Object.entries(errors)) {
      const named = [...`${meaning} ${remedy}`.matchAll(/`([a-z_]+)`/g)].map((match) => match[1] as string);
      expect({ code, unknown: named.filter((name) => !known.has(name)) }).toEqual({ code, unknown: [] });
    }
  });

  it('has body examples that the validator of the service takes', () => {
    for (const operation of core.table.operations) {
      const { body } = operation.field;
      if (!body) continue;
      const example = found(operation).requestBody?.content['application/json']?.example;
      const args = Object.fromEntries(
        operation.params.map(({ name, argument }) => [argument, pathExample(operation, name)]),
      );
      expect(() =>
        core.operations.get(operation.field.name)?.validate({ ...args, [body.argument]: example }),
      ).not.toThrow();
    }
  });

  it('has examples that fit their schemas', () => {
    const ajv = addFormats(new Ajv2020({ strict: false }));
    ajv.addSchema(document, 'openapi');
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      for (const [field, { examples = [] }] of Object.entries(schema.properties ?? {})) {
        const fits = ajv.compile({ $ref: `openapi#/components/schemas/${name}/properties/${field}` });
        for (const example of examples)
          expect({ name, field, example, fits: fits(example) }).toEqual({ name, field, example, fits: true });
      }
    }
    // Bounds do not say all that this field takes: its default is an example that fits.
    const { interval_seconds } = document.components.schemas.CreateObserverInput?.properties ?? {};
    expect(interval_seconds).toMatchObject({ default: 60, examples: [60] });
  });

  it('closes every input and has no free-form object', () => {
    for (const [at, node] of objectsIn(document.components.schemas)) {
      if (node.type !== 'object') continue;
      expect({ at, properties: Object.keys(node.properties ?? {}).length > 0 }).toEqual({ at, properties: true });
      if (/Input$/.test(at)) expect(node).toMatchObject({ additionalProperties: false });
    }
  });

  it('hides relations that REST does not show', () => {
    for (const schema of Object.values(document.components.schemas)) {
      expect(
        Object.values(schema.properties ?? {}).some((property) => JSON.stringify(property).includes('List"')),
      ).toBe(false);
    }
  });

  it('links from each creation to operations that exist, with all their path parameters', () => {
    const byId = new Map(core.table.operations.map((operation) => [operation.id, operation]));
    for (const operation of core.table.operations) {
      const created = resolved<Response>(found(operation).responses[201] ?? ({} as Response));
      for (const link of Object.values(created.links ?? {})) {
        const names = byId.get(link.operationId)?.params.map((param) => param.name) ?? ['no such operation'];
        expect(Object.keys(link.parameters)).toEqual(expect.arrayContaining(names));
      }
    }
    const { links } = resolved<Response>(document.paths['/v2/projects/{id}/volumes']?.post?.responses[201] as Response);
    expect(Object.keys(links ?? {})).toEqual(['getVolume', 'updateVolume', 'deleteVolume']);
  });
});

function pathExample(operation: Operation, name: string): unknown {
  const parameter = (found(operation).parameters ?? [])
    .map((entry) => resolved(entry))
    .find((entry) => entry.name === name);
  return parameter?.example ?? 'x';
}

describe('the response checker', () => {
  const check = responseChecker(JSON.parse(rendered) as OpenApiDocument);
  const id = (prefix: string): string => `${prefix}_01h455vb4pex5vsknk084sn02q`;
  const limit = { id: id('req') };
  const error = {
    code: 'not_found',
    status: 404,
    title: 'Resource not found',
    description: 'Nothing is there.',
    retryable: false,
  };

  function answer(status: number, body: unknown, headers: Record<string, string> = {}): CheckedResponse {
    const type = status < 400 ? 'application/json' : 'application/problem+json';
    const all = { 'X-Request-Id': limit.id, 'Content-Type': type, ETag: '"abc"', ...headers };
    return { status, headers: new Headers(all), body, text: body === null ? '' : JSON.stringify(body) };
  }

  function problemBody(code: string, status: number): object {
    return {
      type: `http://127.0.0.1:8080/v2/errors/${code}`,
      title: 'T',
      status,
      detail: 'D',
      instance: '/v2/x',
      code,
      request_id: limit.id,
      retryable: false,
    };
  }

  it('takes what is documented', () => {
    expect(check('GET', '/v2/errors/not_found?x=1', answer(200, error))).toEqual([]);
    expect(check('HEAD', '/v2/errors/not_found', answer(200, null))).toEqual([]);
    expect(check('GET', '/v2/nowhere', { ...answer(404, problemBody('route_not_found', 404)) })).toEqual([]);
  });

  it.each([
    ['a member too many', answer(200, { ...error, secret: 1 })],
    ['a member missing', answer(200, { code: 'not_found' })],
    ['a wrong type', answer(200, { ...error, status: '404' })],
    ['an unknown status', answer(418, problemBody('not_found', 418))],
    ['a code of another status', answer(404, problemBody('name_taken', 404))],
    ['a code of another operation', answer(503, problemBody('name_taken', 503), { 'Retry-After': '1' })],
    ['another media type', answer(200, error, { 'Content-Type': 'text/plain' })],
    ['no Retry-After', answer(503, problemBody('service_unavailable', 503))],
    ['a header that is not documented', answer(200, error, { Location: 'http://127.0.0.1/' })],
    ['a bad request id', answer(200, error, { 'X-Request-Id': 'abc' })],
  ])('refuses %s', (_, seen) => {
    expect(check('GET', '/v2/errors/not_found', seen)).not.toEqual([]);
  });

  it('wants the rate limit on answers to a key, and Allow on a wrong method', () => {
    expect(check('GET', '/v2/volumes', answer(200, { data: [], next_cursor: null }))).toContain(
      'RateLimit-Limit is missing',
    );
    expect(check('POST', '/v2/errors', answer(405, problemBody('method_not_allowed', 405)))).toEqual([
      'Allow is missing',
    ]);
  });
});

describe('code samples', () => {
  const samplesOf = (operation: Operation): Record<string, string> =>
    Object.fromEntries(found(operation)['x-codeSamples'].map(({ label, source }) => [label, source]));

  it.each(core.table.operations.map((operation) => [operation.id, operation] as const))(
    '%s: three, with a path without placeholders and a body that is valid JSON',
    (_, operation) => {
      const samples = samplesOf(operation);
      expect(Object.keys(samples)).toEqual(['curl', 'JavaScript', 'Python']);
      for (const source of Object.values(samples)) {
        expect(source).not.toMatch(/\/\{|undefined|svc_/);
        expect(source.includes('PLATFORM_KEY')).toBe(operation.field.scope !== 'none');
      }
      const body = /-d '([^]*)'$/.exec(samples.curl as string)?.[1]?.replaceAll(`'\\''`, "'");
      if (body !== undefined) expect(() => void JSON.parse(body)).not.toThrow();
      expect(body !== undefined).toBe(found(operation).requestBody !== undefined);
    },
  );

  it('are programs that a shell, Node and Python can read', () => {
    const check = (command: string, args: string[], input: string): string | null => {
      const { status, stderr } = spawnSync(command, args, { input, encoding: 'utf8' });
      return status === 0 ? null : stderr;
    };
    const create = core.table.operations.find(({ id }) => id === 'createApplication') as Operation;
    const { curl, JavaScript, Python } = samplesOf(create) as Record<string, string>;
    expect(check('bash', ['-n'], curl as string)).toBeNull();
    expect(check(process.execPath, ['--input-type=module', '--check', '-'], JavaScript as string)).toBeNull();
    const parses = 'import ast, sys; ast.parse(sys.stdin.read())';
    if (spawnSync('python3', ['--version']).status === 0)
      expect(check('python3', ['-c', parses], Python as string)).toBeNull();
  });
});
