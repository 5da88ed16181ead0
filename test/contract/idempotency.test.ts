// Idempotency-Key on every POST: done once, answered as often as asked.
import { isDeepStrictEqual } from 'node:util';
import { getNullableType, isEnumType } from 'graphql';
import type { Operation } from '../../contract/operations';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { SAMPLE_SETTINGS } from '../support/builds/sample_repository';
import { startService, type Answer, type TestService } from '../support/service';
import { addressed, openWorld, operations, type World } from '../support/world';

let service: TestService;
let dns: DnsServer;
let world: World;

beforeAll(async () => {
  dns = await startDnsServer();
  service = await startService({ settings: { ...SAMPLE_SETTINGS, DNS_RESOLVERS: dns.address } });
  world = openWorld(service);
});

afterAll(async () => {
  await service.close();
  await dns.close();
});

const posts = operations
  // A person at a key of theirs shows a code to approve a call (test/approvals).
  .filter(({ method, id }) => method === 'POST' && id !== 'approveCall')
  .map((operation): [string, Operation] => [operation.id, operation]);
let serial = 0;
const newKey = (): string => `key ${(serial += 1)}`;

function post(
  place: string,
  body: unknown,
  key: string,
  options: { key?: string; project?: string } = {},
): Promise<Answer> {
  return world.call('POST', place, { body, headers: { 'Idempotency-Key': key }, ...options });
}

const replayed = (answer: Answer): boolean => answer.headers.get('idempotent-replayed') === 'true';
const volumes = async (name: string): Promise<number> =>
  (await service.sql<{ count: number }>('select count(*) from volumes where name = $1', [name]))[0]?.count as number;

const CHANGED_TEXTS = [
  'email',
  'key',
  'name',
  'hostname',
  'branch',
  'type',
  'username',
  'note',
  'engine_version',
  'zone_file',
  'plan_token',
];

/** Another body of the same form; references need not lead anywhere, since a replay comes before they are looked at. */
function changed(operation: Operation, body: Record<string, unknown> = {}): Record<string, unknown> {
  const fields = operation.field.body?.type.getFields() ?? {};
  if (!Object.keys(body).length) {
    const [name, field] = Object.entries(fields)[0] as [string, { type: unknown }];
    return { [name]: String(field.type).startsWith('Boolean') ? true : 'app_01h455vb4pex5vsknk084sn02q' };
  }
  const entries = Object.entries(body).map(([name, value]) => {
    const field = operation.field.body?.type.getFields()[name];
    const type = field && getNullableType(field.type);
    // Where there is nothing else, another word.
    const isAlone = Object.keys(body).length === 1;
    if (isEnumType(type)) return [name, isAlone ? type.getValues().find((word) => word.name !== value)?.name : value];
    if (/_id$/.test(name)) return [name, 'app_01h455vb4pex5vsknk084sn02q'];
    if (typeof value === 'boolean') return [name, !value];
    if (typeof value === 'number') return [name, value + 1];
    if (Array.isArray(value) && Object.keys(body).length === 1) return [name, []];
    if (value && typeof value === 'object' && !Array.isArray(value) && ('upload' in value || 'url' in value))
      return [name, { ...value, url: 'https://example.com/other' }];
    const isText = CHANGED_TEXTS.includes(name) && !isEnumType(getNullableType(fields[name]?.type));
    return [name, isText ? `x${String(value)}` : value];
  });
  const other = Object.fromEntries(entries);
  // Where all else is lists, files of another text.
  if (Array.isArray(other.files) && isDeepStrictEqual(other, body))
    other.files = (other.files as object[]).map((file) => ({ ...file, content: 'services: {}' }));
  return other;
}

test.each(posts)('%s is done once', async (_, operation) => {
  const [place, body, key] = [
    await world.path(operation, await addressed(world, operation)),
    await world.body(operation),
    newKey(),
  ];
  const first = await post(place, body, key);
  expect([first.status, replayed(first)]).toEqual([operation.status, false]);
  const again = await post(place, body, key);
  expect([again.status, again.text, replayed(again)]).toEqual([first.status, first.text, true]);
  for (const header of ['etag', 'location', 'content-type'])
    expect([header, again.headers.get(header)]).toEqual([header, first.headers.get(header)]);
  expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
  if (!operation.field.body) return;
  const reused = await post(place, changed(operation, body), key);
  expect([reused.status, reused.body.code]).toEqual([422, 'idempotency_key_reused']);
});

test('the order of fields and white space make no other request', async () => {
  const key = newKey();
  const first = await post('/v2/volumes', { name: 'ordered', size_gb: 1 }, key);
  const again = await world.call('POST', '/v2/volumes', {
    raw: '{ "size_gb": 1,\n "name": "ordered" }',
    headers: { 'Idempotency-Key': key, 'Content-Type': 'application/json' },
  });
  expect([again.status, again.body.id, replayed(again)]).toEqual([201, first.body.id, true]);
});

test('of many twins at once one is done', async () => {
  const key = newKey();
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => post('/v2/volumes', { name: 'twins', size_gb: 1 }, key)),
  );
  expect(answers.filter((answer) => answer.status === 201 && !replayed(answer))).toHaveLength(1);
  for (const answer of answers.filter(({ status }) => status !== 201)) {
    expect([answer.status, answer.body.code, answer.headers.get('retry-after'), answer.body.retryable]).toEqual([
      409,
      'idempotency_in_progress',
      '1',
      true,
    ]);
  }
  expect(new Set(answers.filter(({ status }) => status === 201).map(({ body }) => body.id)).size).toBe(1);
  expect(await volumes('twins')).toBe(1);
});

test('other keys, other callers and other places are other requests', async () => {
  const key = newKey();
  const other = await service.newProject();
  const made = [
    await post('/v2/volumes', { name: 'apart', size_gb: 1 }, key),
    await post(`/v2/projects/${other.id}/volumes`, { name: 'apart', size_gb: 1 }, key),
    await post('/v2/volumes', { name: 'apart-2', size_gb: 1 }, key, { key: await service.mintKey() }),
    await post('/v2/volumes', { name: 'apart-3', size_gb: 1 }, newKey()),
  ];
  expect(made.map((answer) => [answer.status, replayed(answer)])).toEqual(Array(4).fill([201, false]));
  expect(new Set(made.map(({ body }) => body.id)).size).toBe(4);
});

test('the same key with the header on another project is another request', async () => {
  const key = newKey();
  const other = await service.newProject();
  const both = [
    await post('/v2/volumes', { name: 'header', size_gb: 1 }, key),
    await post('/v2/volumes', { name: 'header', size_gb: 1 }, key, { project: other.id }),
  ];
  expect(both.map((answer) => [answer.status, replayed(answer), answer.body.project_id])).toEqual([
    [201, false, world.project],
    [201, false, other.id],
  ]);
});

test('a failure is not kept', async () => {
  const key = newKey();
  const taken = await world.call('POST', '/v2/volumes', { body: { name: 'taken', size_gb: 1 } });
  const body = { name: 'taken', size_gb: 1 };
  expect((await post('/v2/volumes', body, key)).body.code).toBe('name_taken');
  expect((await post('/v2/volumes', { name: 'Not A Slug', size_gb: 1 }, key)).status).toBe(422);
  await world.call('DELETE', `/v2/volumes/${taken.body.id}`);
  const done = await post('/v2/volumes', body, key);
  expect([done.status, replayed(done)]).toEqual([201, false]);
});

test('a replay comes before the state of things, and after scope and fields', async () => {
  const key = newKey();
  const first = await post('/v2/volumes', { name: 'gone', size_gb: 1 }, key);
  await world.call('DELETE', `/v2/volumes/${first.body.id}`);
  expect(replayed(await post('/v2/volumes', { name: 'gone', size_gb: 1 }, key))).toBe(true);
  expect((await post('/v2/volumes', { name: 'gone', size_gb: 'x' }, key)).body.code).toBe('validation_failed');
});

test('answers are sealed at rest and forgotten after a day', async () => {
  const key = newKey();
  const first = await post('/v2/volumes', { name: 'sealed-name', size_gb: 1 }, key);
  const rows = await service.sql<object>('select scope, fingerprint, answer from idempotency_records');
  expect(rows.length).toBeGreaterThan(0);
  expect(JSON.stringify(rows)).not.toContain('sealed-name');
  expect(JSON.stringify(rows)).not.toContain(first.body.id);
  await world.call('DELETE', `/v2/volumes/${first.body.id}`);
  await service.sql(`update idempotency_records set created_at = now() - interval '25 hours'`);
  const later = await post('/v2/volumes', { name: 'sealed-name', size_gb: 1 }, key);
  expect([later.status, replayed(later), later.body.id === first.body.id]).toEqual([201, false, false]);
});
