// What the servers of databases write: pages, filters, followers (docs/contract/resources.md §9.8).
import { appendDatabaseLines, appendLogLines, type DatabaseLineInput } from '../../models/applications/log_line';
import { application, replica } from '../support/databases/database_children';
import { database, describeHost } from '../support/databases/databases';
import { startService, type Answer, type TestService } from '../support/service';

const MISSING = 'rep_01h455vb4pex5vsknk084sn02q';
let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"databases": 1000, "database_storage_gb": 100000}' } });
  await describeHost(service);
});

afterAll(() => service?.close());

const write = (database_id: string, lines: Partial<DatabaseLineInput>[]): Promise<void> =>
  appendDatabaseLines(
    service.platform.database,
    lines.map((line) => ({
      project_id: service.project,
      database_id,
      replica_id: null,
      source: 'server',
      message: 'x',
      ...line,
    })),
  );
const ago = (seconds: number): Date => new Date(Date.now() - seconds * 1000);
const read = (id: string, query = ''): Promise<Answer> => service.call('GET', `/v2/databases/${id}/logs?${query}`);
const messages = async (id: string, query = ''): Promise<string[]> => {
  const { status, body } = await read(id, query);
  expect([status, body.code]).toEqual([200, undefined]);
  return body.data.map(({ message }: { message: string }) => message);
};

test('lines come newest first, with where they are from', async () => {
  const { id } = await database(service);
  await write(id, [
    { message: 'ready', at: ago(9) },
    { message: 'select pg_sleep(5)', source: 'slow_query', level: 'warning', at: ago(5) },
    { message: 'no more connections', source: 'pooler', level: 'error', at: ago(2) },
  ]);
  const { data, next_cursor } = (await read(id)).body;
  expect([data.length, next_cursor]).toEqual([3, null]);
  expect(data[1]).toEqual({
    timestamp: expect.stringMatching(/Z$/),
    source: 'slow_query',
    level: 'warning',
    message: 'select pg_sleep(5)',
  });
  expect(await messages(id, 'source=pooler')).toEqual(['no more connections']);
  expect(await messages(id, 'level=info')).toEqual(['ready']);
  expect(await messages(id, 'search=PG_SLEEP')).toEqual(['select pg_sleep(5)']);
  expect(await messages(id, `since=${ago(6).toISOString()}&until=${ago(3).toISOString()}`)).toEqual([
    'select pg_sleep(5)',
  ]);
  expect(await read(id, 'source=app')).toMatchObject({ status: 400, body: { code: 'invalid_query_parameter' } });
});

test('pages are complete in both orders', async () => {
  const { id } = await database(service);
  const wanted = Array.from({ length: 25 }, (_, index) => `line ${index}`);
  await write(
    id,
    wanted.map((message, index) => ({ message, at: ago(30 - index) })),
  );
  for (const [order, all] of [
    ['asc', wanted],
    ['desc', [...wanted].reverse()],
  ] as const) {
    const found: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { body } = await read(id, `limit=10&order=${order}${cursor && `&cursor=${cursor}`}`);
      found.push(...body.data.map(({ message }: { message: string }) => message));
      cursor = body.next_cursor;
    }
    expect(found).toEqual(all);
  }
  const { next_cursor } = (await read(id, 'limit=10')).body;
  expect(await read((await database(service)).id, `limit=10&cursor=${next_cursor}`)).toMatchObject({
    status: 400,
    body: { code: 'invalid_cursor' },
  });
});

test('a replica has its own lines, and only in its database', async () => {
  const [{ id }, { id: other }] = [await database(service), await database(service)];
  const [mine, theirs] = [await replica(service, id), await replica(service, other)];
  const app = await application(service, 'not-a-replica');
  await write(id, [{ message: 'primary' }, { message: 'follower', replica_id: mine.id }]);
  await write(other, [{ message: 'elsewhere', replica_id: theirs.id }]);
  await appendLogLines(service.platform.database, [
    { project_id: service.project, application_id: app, source: 'app', message: 'an application' },
  ]);
  expect(await messages(id)).toEqual(['primary']);
  expect(await messages(id, `replica_id=${mine.id}`)).toEqual(['follower']);
  for (const replica_id of [theirs.id, app, id, MISSING, 'x'])
    expect([replica_id, await messages(id, `replica_id=${replica_id}`)]).toEqual([replica_id, []]);
});

test('lines are read for seven days', async () => {
  const { id } = await database(service);
  const day = 24 * 3600;
  await write(id, [
    { message: 'old', at: ago(7 * day + 60) },
    { message: 'young', at: ago(7 * day - 60) },
  ]);
  expect(await messages(id)).toEqual(['young']);
});

test('followers get each line once, as it comes', async () => {
  const { id } = await database(service);
  const mine = await replica(service, id);
  await write(id, [{ message: 'before' }]);
  const stop = new AbortController();
  const response = await fetch(`${service.url}/v2/databases/${id}/logs`, {
    headers: { Authorization: `Bearer ${service.key}`, 'X-Svc-Project': service.project, Accept: 'text/event-stream' },
    signal: stop.signal,
  });
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    expect.stringContaining('text/event-stream'),
  ]);
  const seen: object[] = [];
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const until = async (count: number): Promise<void> => {
    for (let text = ''; seen.length < count;) {
      text += (await reader?.read())?.value ?? '';
      const blocks = text.split('\n\n');
      text = blocks.pop() as string;
      for (const block of blocks)
        for (const [, data] of block.matchAll(/^data: (.*)$/gm)) seen.push(JSON.parse(data as string));
    }
  };
  await until(1);
  await write(id, [{ message: 'after' }, { message: 'not here', replica_id: mine.id }]);
  await write(id, [{ message: 'slow', source: 'slow_query' }]);
  await until(3);
  stop.abort();
  expect(seen).toEqual([
    { timestamp: expect.any(String), source: 'server', level: 'info', message: 'before' },
    { timestamp: expect.any(String), source: 'server', level: 'info', message: 'after' },
    { timestamp: expect.any(String), source: 'slow_query', level: 'info', message: 'slow' },
  ]);
});

test('needs a key that may read logs, of the project', async () => {
  const { id } = await database(service);
  const reader = await service.mintKey({ scopes: ['read'] });
  expect(await service.call('GET', `/v2/databases/${id}/logs`, { key: reader })).toMatchObject({
    status: 403,
    body: { code: 'insufficient_scope', required_scope: 'logs:read' },
  });
  const other = await service.newProject();
  expect((await service.call('GET', `/v2/databases/${id}/logs`, { key: other.key, project: other.id })).status).toBe(
    404,
  );
});
