// The activity of a project as a stream: every entry once, in order, from where the reader was.
import { startService, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

interface Event {
  id: string;
  data: { id: string; action: string; resource: { type: string; name: string | null } };
}

/** Follows until `enough` events came, and ends. */
async function follow(
  options: { query?: string; after?: string; key?: string; project?: string },
  enough: number,
  begun: () => Promise<unknown> = async () => {},
): Promise<Event[]> {
  const ending = new AbortController();
  const { query = '', after, key = service.key, project = service.project } = options;
  const response = await fetch(`${service.url}/v2/projects/${project}/activity?${query}`, {
    headers: {
      Authorization: `Bearer ${key}`,
      Accept: 'text/event-stream',
      ...(after && { 'Last-Event-ID': after }),
    },
    signal: ending.signal,
  });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  let text = '';
  let started: Promise<unknown> | undefined;
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(part).toString();
    started ??= begun();
    if (eventsOf(text).length >= enough) break;
  }
  ending.abort();
  await started;
  return eventsOf(text);
}

function eventsOf(text: string): Event[] {
  return [...text.matchAll(/^id: (.+)\ndata: (.+)\n\n/gm)].map(([, id, data]) => ({
    id: id as string,
    data: JSON.parse(data as string),
  }));
}

const make = async (name: string, options = {}): Promise<string> =>
  (await service.call('POST', '/v2/volumes', { body: { name, size_gb: 1 }, ...options })).body.id;

const names = (events: Event[]): (string | null)[] => events.map(({ data }) => data.resource.name);

test('it begins with the newest entries and goes on with each one as it comes, as the list shows them', async () => {
  await make('before');
  const events = await follow({ query: 'resource_type=volume&limit=1' }, 3, async () => {
    await make('during-1');
    await make('during-2');
  });
  expect(names(events)).toEqual(['before', 'during-1', 'during-2']);
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_type=volume&limit=3`);
  expect(events.map(({ data }) => data).reverse()).toEqual(body.data);
});

test('it resumes behind any event, missing none and repeating none', async () => {
  const [first] = await follow({ query: 'resource_type=volume&limit=1' }, 1);
  const expected = Array.from({ length: 30 }, (_, index) => `resumed-${index}`);
  await Promise.all(expected.map((name) => make(name)));
  const all = await follow({ query: 'resource_type=volume', after: first!.id }, 30);
  expect(names(all).sort()).toEqual([...expected].sort());
  const rest = await follow({ query: 'resource_type=volume', after: all[11]!.id }, 18);
  expect(rest.map(({ data }) => data.id)).toEqual(all.slice(12).map(({ data }) => data.id));
});

test('filters hold, and other projects do not show', async () => {
  const other = await service.newProject({ stranger: true });
  const events = await follow({ query: 'action=volume.deleted&limit=1' }, 1, async () => {
    await make('foreign', { key: other.key, project: other.id });
    const id = await make('kept-out');
    await service.call('DELETE', `/v2/volumes/${id}`);
  });
  expect(events.map(({ data }) => [data.action, data.resource.name])).toEqual([['volume.deleted', 'kept-out']]);
  const denied = await service.call('GET', `/v2/projects/${service.project}/activity`, {
    key: other.key,
    headers: { Accept: 'text/event-stream' },
  });
  expect([denied.status, denied.body.code]).toEqual([404, 'project_not_found']);
});

test('the id of an event tells nothing: not how many transactions the platform makes, nor of what', async () => {
  const events = await follow({ query: 'limit=3' }, 3);
  for (const { id } of events) {
    expect(id).toMatch(/^[\w-]{30,}$/);
    expect(Buffer.from(id, 'base64url').toString()).not.toMatch(/\d+:\d+:/);
  }
  const answer = await service.call('GET', `/v2/projects/${service.project}/activity`, {
    headers: { Accept: 'text/event-stream', 'Last-Event-ID': '1:1:' },
  });
  expect([answer.status, answer.body.code]).toEqual([400, 'invalid_cursor']);
});

test('a subscription of GraphQL follows it too', async () => {
  const ending = new AbortController();
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${service.key}`,
      Accept: 'text/event-stream',
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({
      query: `subscription { followProjectActivity(id: "${service.project}", resource_type: "volume") {
        action resource { name } actor { type } created_at } }`,
    }),
    signal: ending.signal,
  });
  let text = '';
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(part).toString();
    if (text.includes('volume.')) break;
  }
  ending.abort();
  expect(text).toMatch(/"followProjectActivity":\{"action":"volume\.\w+","resource":\{"name":"[^"]+"\},"actor"/);
});
