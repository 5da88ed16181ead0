/** @tier both @quarter 1 @covers contract rest */
// Every id, date, number, text and reference that an operation takes, at its extremes and on both faces: none is a 500,
// and what the OpenAPI document has no room for is refused with the code and the place that the caller looks for. The
// rows behind the paths are there, so that a value reaches the statement that it is meant for.
import {
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  type GraphQLInputObjectType,
  type GraphQLInputType,
} from 'graphql';
import type { Operation } from '../../contract/operations';
import { errors as errorTable } from '../../core/errors';
import { documentedRequests } from '../support/contract/documented_requests';
import { isHeavyRun } from '../support/processes/kills';
import { document } from '../support/contract/graphql_query';
import { startService, type Answer, type TestService } from '../support/service';
import { core, kindOfParam, operations } from '../support/world';

type Values = Record<string, unknown>;

const { described, fitsBody, fitsPath, fitsQuery } = documentedRequests(core);

let service: TestService;
const ids: Record<string, string> = {};

const REPOSITORY = 'https://git.example.com/team/shop.git';

beforeAll(async () => {
  service = await startService();
  const make = async (kind: string, path: string, body: object): Promise<void> => {
    const { status, body: row } = await service.call('POST', path, { body });
    expect(status).toBe(201);
    ids[kind] = row.id ?? row.type ?? row.key;
  };
  ids.project = service.project;
  await make('volume', '/v2/volumes', { name: 'extremes', size_gb: 1 });
  await make('application', '/v2/applications', {
    name: 'extremes',
    source: { type: 'git', repository_url: REPOSITORY },
  });
  await service.call('PUT', `/v2/applications/${ids.application}/env/EXTREME`, { body: { value: '1' } });
  ids.environment_variable = 'EXTREME';
});

afterAll(() => service.close());

const FAR = 'z'.repeat(26);
const LONG = 'x'.repeat(2_000);
const TEXTS = ['', ' ', "'%", '\\', '\u0000', '\u0085', '\ud800', LONG];
const IDS = ['app', 'dep', 'ins', 'db'].flatMap((prefix) => [`${prefix}_${FAR}`, `${prefix}_7${FAR.slice(1)}`]);
const DATES = [
  '0000-01-01T00:00:00Z',
  '0001-01-01T00:00:00Z',
  '0001-01-01T00:00:00+23:59',
  '1969-12-31T23:59:59.999Z',
  '2026-02-30T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
  '9999-12-31T23:59:59-23:59',
  '275760-09-13T00:00:00Z',
  '-000001-01-01T00:00:00Z',
];
const NUMBERS = [0, -1, 1.5, 2 ** 31 - 1, -(2 ** 31), 2 ** 31, 2 ** 53 - 1, 2 ** 53, 1e308, -1e308, 5e-324];

function extremesOf(type: GraphQLInputType): unknown[] {
  const bare = getNullableType(type);
  if (isListType(bare)) return [[], ...extremesOf(bare.ofType).map((value) => [value])];
  if (isInputObjectType(bare)) return objectsOf(bare);
  if (isEnumType(bare)) return [null, '', 'nonsense'];
  const name = getNamedType(bare).name;
  if (name === 'ID') return [null, ...TEXTS, ...IDS];
  if (name === 'DateTime') return [null, '', ...DATES];
  if (['Int', 'Float', 'ByteCount'].includes(name)) return [null, ...NUMBERS];
  if (name === 'Boolean') return [null, 'x'];
  return [null, ...TEXTS];
}

/** One object per extreme of one field. */
function objectsOf(type: GraphQLInputObjectType): Values[] {
  return Object.values(type.getFields()).flatMap((field) =>
    extremesOf(field.type).map((value) => ({ [field.name]: value })),
  );
}

/** What the document shows of the body: valid, so that all that is wrong is the extreme which replaces a part of it. */
function exampleBody(operation: Operation): Values {
  return described(operation).requestBody?.content['application/json']?.example as Values;
}

const idOf = (operation: Operation, name: string): string =>
  ids[kindOfParam(operation, name)] ?? `vol_${'0'.repeat(25)}1`;

function pathOf(operation: Operation, replaced: Values = {}): string {
  return operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(replaced[name] ?? idOf(operation, name));
    return value.isWellFormed() ? encodeURIComponent(value) : '%ed%a0%80';
  });
}

const textInQuery = (value: unknown): string => (Array.isArray(value) ? value.join(',') : String(value));

const textOf = (value: unknown): string => {
  const text = textInQuery(value);
  return text.isWellFormed() ? encodeURIComponent(text) : '%ed%a0%80';
};

/** All in the heavy tier. In every run one in four, of each operation other ones. */
const isTaken = (_: unknown, index: number): boolean => isHeavyRun() || index % 4 === 0;

interface Shot {
  method: string;
  path: string;
  body?: Values;
  /** What is wrong with an answer, null = as it should be. */
  judge(answer: Answer): string | null;
}

function restShots(operation: Operation): Shot[] {
  const { method } = operation;
  const body = operation.field.body ? exampleBody(operation) : undefined;
  const inPath = operation.params.flatMap(({ name }) =>
    [...TEXTS.filter(Boolean), ...IDS.slice(0, 2)].map((value) => ({
      ...{ method, path: pathOf(operation, { [name]: value }), body },
      judge: (answer: Answer) => {
        // PUT makes what the path names, and DELETE finds it then.
        const isMade = ['PUT', 'DELETE'].includes(method) && answer.status < 300 && fitsPath(operation, name, value);
        return isMade || isRefusedInPath(answer, name) ? null : 'not refused';
      },
    })),
  );
  const inQuery = operation.query.flatMap(({ name, type }) =>
    extremesOf(type).map((value) => ({
      ...{ method, path: `${pathOf(operation)}?${name}=${textOf(value)}` },
      judge: (answer: Answer) =>
        fitsQuery(operation, name, textInQuery(value)) ||
        isRefusedInQuery(answer, name) ||
        isWithoutRow(operation, answer)
          ? null
          : 'not refused',
    })),
  );
  const inBody = operation.field.body
    ? objectsOf(operation.field.body.type).map((part) => ({
        ...{ method, path: pathOf(operation), body: { ...body, ...part } },
        judge: (answer: Answer) =>
          fitsBody(operation, { ...body, ...part }) ||
          isRefusedInBody(answer, operation, Object.keys(part)[0] as string)
            ? null
            : 'not refused',
      }))
    : [];
  return [...inPath, ...inQuery, ...inBody];
}

/** Git addresses lead nowhere here, and an operation that asks there says so. */
const isFailure = (status: number, code?: string): boolean =>
  code !== 'provider_error' && (status >= 500 || (status >= 400 && !(String(code) in errorTable)));

const isMalformed = ({ status, body }: Pick<Answer, 'status' | 'body'>): boolean =>
  status === 400 && body.code === 'malformed_request';

/** Nobody has a row of that name; where a path names what is to be made, it is validated like a field. */
function isRefusedInPath(answer: Answer, name: string): boolean {
  const { status, body } = answer;
  if (status === 404) return ['not_found', 'project_not_found', 'route_not_found'].includes(body.code);
  return isMalformed(answer) || isInvalid(answer, name);
}

function isRefusedInQuery(answer: Answer, name: string): boolean {
  const { status, body } = answer;
  if (isMalformed(answer)) return true;
  if (name === 'cursor') return status === 400 && body.code === 'invalid_cursor';
  return status === 400 && body.code === 'invalid_query_parameter' && body.parameter.split('.')[0] === name;
}

/** Whether a reference in a filter names a row is asked below the row of the path, and not every kind has one here. */
function isWithoutRow(operation: Operation, { status, body }: Answer): boolean {
  const isMissing = operation.params.some(({ name }) => !ids[kindOfParam(operation, name)]);
  return isMissing && status === 404 && body.code === 'not_found';
}

function isRefusedInBody(answer: Answer, operation: Operation, name: string): boolean {
  const { status, body } = answer;
  if (isMalformed(answer) || isInvalid(answer, name)) return true;
  // Whether a reference names a row is asked last. It may stand in a list, or in an object.
  const place = status === 422 && body.code === 'reference_not_found' ? String(body.field).split('.') : [];
  if (place[0] === name && place.some((part) => /_ids?$/.test(part))) return true;
  return /_ids?$/.test(name) && isWithoutRow(operation, answer);
}

function isInvalid({ status, body }: Answer, name: string): boolean {
  const fields = (body.errors as { field: string }[] | undefined)?.map(({ field }) => field) ?? [];
  return status === 422 && body.code === 'validation_failed' && fields.some((field) => field.split(/[.[]/)[0] === name);
}

async function inParallel<Work>(works: Work[], run: (work: Work) => Promise<string | null>): Promise<string[]> {
  const found: string[] = [];
  const queue = works.values();
  const worker = async (): Promise<void> => {
    for (const work of queue) {
      const wrong = await run(work);
      if (wrong !== null) found.push(wrong);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return found;
}

test.each(operations.map((operation) => [operation.id, operation] as const))('REST %s', async (_, operation) => {
  const wrong = await inParallel(restShots(operation).filter(isTaken), async ({ method, path, body, judge }) => {
    const answer = await service.call(method, path, { body });
    const complaint = isFailure(answer.status, answer.body?.code) ? 'failed' : judge(answer);
    const sent = `${method} ${path.slice(0, 200)} ${JSON.stringify(body)?.slice(0, 300)}`;
    return complaint && `${complaint}: ${sent}: ${answer.status} ${answer.text.slice(0, 300)}`;
  });
  expect(wrong).toEqual([]);
});

const fields = [...core.table.fields.values()].filter(({ session }) => !session);

test.each(fields.map((field) => [field.name, field] as const))('GraphQL %s', async (_, field) => {
  const [operation] = field.operations;
  const known: Values = Object.fromEntries(
    (operation?.params ?? []).map(({ name, argument }) => [argument, idOf(operation as Operation, name)]),
  );
  if (field.body && operation) known[field.body.argument] = exampleBody(operation);
  const shots = field.definition.args.flatMap(({ name, type }) =>
    extremesOf(type).map((value) => ({
      ...known,
      [name]: name === field.body?.argument ? { ...(known[name] as Values), ...(value as Values) } : value,
    })),
  );
  const wrong = await inParallel(shots.filter(isTaken), async (variables) => {
    const { errors } = await service.graphql(document(field, Object.keys(variables)), variables);
    const bad = errors?.find(({ extensions }) => isFailure(extensions.status, extensions.code));
    return bad ? `${bad.message} ${JSON.stringify(variables).slice(0, 200)}` : null;
  });
  expect(wrong).toEqual([]);
});

test('one catalog refuses the cursor of another', async () => {
  const lists = operations.filter(({ field }) => field.list && field.global && field.scope !== 'any');
  const cursors = new Map<string, string>();
  for (const { path } of lists) {
    const { body } = await service.call('GET', `${path}?limit=1`);
    if (body?.next_cursor) cursors.set(path, body.next_cursor);
  }
  expect(cursors.size).toBeGreaterThan(2);
  for (const { path } of lists)
    for (const [other, cursor] of cursors) {
      const { status, body } = await service.call('GET', `${path}?limit=1&cursor=${cursor}`);
      if (other === path) expect([path, status]).toEqual([path, 200]);
      else expect([path, other, body.code]).toEqual([path, other, 'invalid_cursor']);
    }
});

test('a filter by a reference takes only ids of its kind', async () => {
  for (const value of ['j', '', `db_${'0'.repeat(26)}`])
    expect((await service.call('GET', `/v2/volumes?application_id=${value}`)).body).toMatchObject({
      code: 'invalid_query_parameter',
      parameter: 'application_id',
    });
  expect((await service.call('GET', `/v2/volumes?application_id=${ids.application}`)).body.data).toEqual([]);
});

test('an empty text is no reference', async () => {
  const volume = await service.call('POST', '/v2/volumes', { body: { name: 'empty', size_gb: 1, application_id: '' } });
  expect([volume.status, volume.body.errors[0]]).toMatchObject([422, { field: 'application_id', code: 'too_short' }]);
  const application = await service.call('POST', '/v2/applications', { body: { name: 'empty', preset: '' } });
  expect([application.status, application.body.code]).toEqual([422, 'reference_not_found']);
});

test('a path of its own takes only its own methods', async () => {
  const answer = await service.call('PATCH', '/v2/databases/engines', { body: {} });
  expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
});
