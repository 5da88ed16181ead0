// `Prefer: wait=N` (RFC 7240): the answer comes when the resource has settled.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startService, type TestService } from '../support/service';

const silent: { current: TestService | null } = { current: null };
let working: TestService;

beforeAll(async () => {
  silent.current = await startService();
  working = await startService({ worker: true });
});
afterAll(() => Promise.all([silent.current?.close(), working?.close()]));

const wait = (value: string): { Prefer: string } => ({ Prefer: value });

test('the settled resource is answered, with its ETag and the preference that was followed', async () => {
  const made = await working.call('POST', '/v2/volumes', {
    body: { name: 'waited-for', size_gb: 1 },
    headers: wait('respond-async, wait=20'),
  });
  expect([made.status, made.body.status]).toEqual([201, 'available']);
  expect(made.headers.get('preference-applied')).toBe('wait=20');
  const read = await working.call('GET', `/v2/volumes/${made.body.id}`);
  expect(made.headers.get('etag')).toBe(read.headers.get('etag'));
  expect(made.body).toEqual(read.body);
});

test('a repetition with the same Idempotency-Key waits too', async () => {
  const body = { name: 'twice', size_gb: 1 };
  const first = await working.call('POST', '/v2/volumes', { body, headers: { 'Idempotency-Key': 'wait-1' } });
  const second = await working.call('POST', '/v2/volumes', {
    body,
    headers: { 'Idempotency-Key': 'wait-1', ...wait('wait=20') },
  });
  expect([second.body.id, second.body.status]).toEqual([first.body.id, 'available']);
  expect(second.headers.get('idempotent-replayed')).toBe('true');
});

test('when the time is over the answer shows the resource as it is then', async () => {
  const service = silent.current as TestService;
  const started = performance.now();
  const made = await service.call('POST', '/v2/volumes', {
    body: { name: 'never', size_gb: 1 },
    headers: wait('wait=1'),
  });
  expect([made.status, made.body.status]).toEqual([201, 'provisioning']);
  expect(made.headers.get('preference-applied')).toBe('wait=1');
  expect(performance.now() - started).toBeGreaterThan(900);
});

test.each(['wait=soon', 'wait', 'await=5', 'return=minimal'])('%s is not followed, and does no harm', async (value) => {
  const service = silent.current as TestService;
  const made = await service.call('POST', '/v2/volumes', {
    body: { name: `v-${Math.random().toString(36).slice(2, 8)}`, size_gb: 1 },
    headers: wait(value),
  });
  expect(made.status).toBe(201);
  expect(made.headers.get('preference-applied')).toBeNull();
});

test('a longer wait than a minute is cut to a minute, and operations that start no work ignore it', async () => {
  const long = await working.call('POST', '/v2/volumes', {
    body: { name: 'long', size_gb: 1 },
    headers: wait('wait=86400'),
  });
  expect(long.headers.get('preference-applied')).toBe('wait=60');
  const project = await working.call('POST', '/v2/projects', { body: { name: 'no-work' }, headers: wait('wait=5') });
  expect([project.status, project.headers.get('preference-applied')]).toEqual([201, null]);
});

test.each([
  ['answers late', 'begin; lock table volumes in access exclusive mode'],
  [
    'ends sessions',
    'select pg_terminate_backend(pid) from pg_stat_activity ' +
      'where datname = current_database() and query !~ $$pg_term$$',
  ],
])('a database that %s meanwhile takes nothing from the answer', async (_, disturbance) => {
  const service = silent.current as TestService;
  const other = new pg.Client({ connectionString: service.platform.config.databaseUrl ?? undefined });
  await other.connect();
  const name = `disturbed-${disturbance.length}`;
  const started = performance.now();
  const made = service.call('POST', '/v2/volumes', { body: { name, size_gb: 1 }, headers: wait('wait=2') });
  const answered = made.then(() => true);
  while (!(await service.sql('select 1 from volumes where name = $1', [name])).length) await sleep(20);
  while (!(await Promise.race([answered, sleep(20, false)]))) await other.query(disturbance);
  await other.end();
  const { status, body, headers } = await made;
  expect([status, body.name, body.status]).toEqual([201, name, 'provisioning']);
  expect(headers.get('preference-applied')).toBe('wait=2');
  expect(performance.now() - started).toBeLessThan(9_000);
});

test('a process that stops answers those who wait', async () => {
  const service = await startService();
  const started = performance.now();
  const answer = service.call('POST', '/v2/volumes', { body: { name: 'cut', size_gb: 1 }, headers: wait('wait=60') });
  while (!(await service.sql('select 1 from volumes')).length) await new Promise((resolve) => setTimeout(resolve, 20));
  await service.close();
  expect((await answer).status).toBe(201);
  expect(performance.now() - started).toBeLessThan(20_000);
});

test('the published form of the header allows other preferences beside it', async () => {
  const { body } = await working.call('GET', '/v2/openapi.json');
  const { schema } = body.paths['/v2/volumes'].post.parameters
    .map((one: { $ref?: string }) => (one.$ref ? body.components.parameters[one.$ref.split('/').pop() as string] : one))
    .find(({ name }: { name: string }) => name === 'Prefer');
  for (const value of ['wait=5', 'respond-async', 'return=minimal; foo="some parameter", wait=5', 'handling=lenient'])
    expect(value).toMatch(new RegExp(schema.pattern, 'u'));
});
