// Following a collection over a server that ends, breaks and garbles its watches.
import type { ServerResponse } from 'node:http';
import type { ConfigMap } from 'kubernetes-types/core/v1';
import type { KubernetesClient } from '../../../drivers/kubernetes/client/client';
import type { Followed } from '../../../drivers/kubernetes/client/follow';
import { resourceTypes } from '../../../drivers/kubernetes/client/resource_type';
import {
  configMap,
  listOf,
  oddApiServer,
  respond,
  statusOf,
  type OddApiServer,
  type SeenRequest,
} from '../../support/kubernetes/odd_api_server';
import { waitFor } from '../../support/wait_for';

let api: OddApiServer;
let client: KubernetesClient;
let aborted: AbortController;
let followed: Followed<ConfigMap>;
let told: string[];
oddApiServer((opened) => ({ api, client } = opened));
beforeEach(() => {
  aborted = new AbortController();
  told = [];
});
afterEach(async () => {
  aborted.abort();
  await followed.ended;
});

const isWatch = ({ url }: SeenRequest): boolean => url.searchParams.has('watch');
const event = (response: ServerResponse, type: string, object: object): void =>
  void response.write(`${JSON.stringify({ type, object })}\n`);

/** Lists and watches, each with what the n-th of them does. */
function serve(lists: object[], watches: ((response: ServerResponse, request: SeenRequest) => void)[]): void {
  let [listed, watched] = [0, 0];
  api.answer((request, response) => {
    if (!isWatch(request)) return respond(response, 200, lists[Math.min(listed++, lists.length - 1)] as object);
    response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders();
    watches[watched++]?.(response, request);
  });
}

function follow(changed?: (object: ConfigMap) => void): void {
  followed = client.follow(
    resourceTypes.configMaps,
    { namespace: 'shop' },
    {
      changed(object, before) {
        told.push(`${before ? 'changed' : 'new'} ${object.metadata?.name} ${object.metadata?.resourceVersion}`);
        changed?.(object);
      },
      removed: (object) => told.push(`removed ${object.metadata?.name}`),
      synchronized: () => told.push('synchronized'),
      failed: (error) => told.push(`failed: ${error.message}`),
    },
    aborted.signal,
  );
}

const heard = (what: string): Promise<boolean> => waitFor(what, () => told.includes(what), 10_000);
const versionsOfWatches = (): (string | null)[] =>
  api.requests.filter(isWatch).map(({ url }) => url.searchParams.get('resourceVersion'));

test('objects are those of the list, then of the events', async () => {
  serve(
    [listOf(5, [configMap('a', 1), configMap('b', 2)])],
    [
      (response) => {
        event(response, 'MODIFIED', configMap('a', 6));
        event(response, 'ADDED', configMap('c', 7));
        event(response, 'DELETED', configMap('b', 8));
      },
    ],
  );
  follow();
  expect(followed.outdatedSince).not.toBeNull();
  await heard('removed b');
  expect(told).toEqual(['new a 1', 'new b 2', 'synchronized', 'changed a 6', 'new c 7', 'removed b']);
  expect([...followed.objects.keys()]).toEqual(['uid-a', 'uid-c']);
  expect(followed.objects.get('uid-a')?.metadata).not.toHaveProperty('managedFields');
  expect(followed.outdatedSince).toBeNull();
});

test('a watch that the server ends goes on after its last event or bookmark', async () => {
  serve(
    [listOf(5, [configMap('a', 1)])],
    [
      (response) => {
        event(response, 'MODIFIED', configMap('a', 6));
        response.end();
      },
      (response) => {
        event(response, 'BOOKMARK', { metadata: { resourceVersion: '40' } });
        response.end();
      },
      (response) => event(response, 'MODIFIED', configMap('a', 41)),
    ],
  );
  follow();
  await heard('changed a 41');
  expect(versionsOfWatches()).toEqual(['5', '6', '40']);
  expect(api.requests.filter((request) => !isWatch(request))).toHaveLength(1);
});

test.each([
  ['an event', (response: ServerResponse) => event(response, 'ERROR', statusOf(410, 'Expired', 'too old'))],
  ['the answer', null],
])('a position that is too old, said in %s, is a list again: what is not in it was removed', async (_, expire) => {
  let lists = 0;
  let watches = 0;
  api.answer((request, response) => {
    if (!isWatch(request))
      return respond(
        response,
        200,
        (lists += 1) === 1
          ? listOf(5, [configMap('a', 1), configMap('b', 2)])
          : listOf(90, [configMap('b', 2), configMap('c', 80)]),
      );
    if ((watches += 1) > 1) return void response.writeHead(200).flushHeaders();
    if (!expire) return respond(response, 410, statusOf(410, 'Gone', 'too old resource version'));
    response.writeHead(200).flushHeaders();
    expire(response);
  });
  follow();
  await heard('new c 80');
  await waitFor('a watch', () => versionsOfWatches().includes('90'));
  expect(told.filter((one) => !one.startsWith('sync'))).toEqual(['new a 1', 'new b 2', 'removed a', 'new c 80']);
});

test.each([
  [
    'breaks off in the middle of a line',
    (response: ServerResponse) => {
      response.write('{"type":"MODIFIED","object":{"metadata":{"name":"a","uid":');
      setTimeout(() => response.destroy(), 20);
    },
  ],
  ['ends in the middle of a line', (response: ServerResponse) => void response.end('{"type":"MODI')],
  ['has garbage', (response: ServerResponse) => void response.write('<html>\n')],
  ['has an event of no kind', (response: ServerResponse) => event(response, 'RENAMED', configMap('a', 9))],
  ['has an event without an object', (response: ServerResponse) => void response.write('{"type":"ADDED"}\n')],
  [
    'says that the server has an error',
    (response: ServerResponse) => event(response, 'ERROR', statusOf(500, 'InternalError', 'etcd is away')),
  ],
])('a watch that %s is opened again where it was', async (_, broken) => {
  serve(
    [listOf(5, [configMap('a', 1)])],
    [
      (response) => {
        event(response, 'MODIFIED', configMap('a', 6));
        broken(response);
      },
      (response) => event(response, 'MODIFIED', configMap('a', 7)),
    ],
  );
  follow();
  await heard('changed a 7');
  expect(versionsOfWatches()).toEqual(['5', '6']);
  expect(told.filter((one) => one.startsWith('failed'))).toHaveLength(1);
});

test('the times between attempts grow, and differ', async () => {
  api.answer((_, response) => respond(response, 500, statusOf(500, 'InternalError', 'away')));
  follow();
  await waitFor('six attempts', () => api.requests.length >= 6, 20_000);
  const waits = api.requests.slice(1).map(({ at }, index) => at - api.requests[index]!.at);
  for (const [index, wait] of waits.entries()) {
    expect(wait).toBeGreaterThanOrEqual(125 * 2 ** index - 5);
    expect(wait).toBeLessThan(250 * 2 ** index + 500);
  }
  expect(followed.outdatedSince).toBeLessThan(Date.now() - 2000);
}, 30_000);

test('a watch that ends at once again and again does not become a storm', async () => {
  serve(
    [listOf(5, [])],
    Array.from({ length: 100 }, () => (response: ServerResponse) => void response.end()),
  );
  follow();
  await new Promise((resolve) => setTimeout(resolve, 2000));
  expect(api.requests.length).toBeLessThan(8);
});

test('a callback that throws is told as failed, and the following goes on', async () => {
  serve(
    [listOf(5, [configMap('a', 1), configMap('b', 2)])],
    [(response) => event(response, 'ADDED', configMap('c', 6))],
  );
  follow(({ metadata }) => {
    if (metadata?.name === 'a') throw new Error('a fault of ours');
  });
  await heard('new c 6');
  expect(told).toContain('failed: a fault of ours');
  expect(followed.objects.size).toBe(3);
  expect(api.requests).toHaveLength(2);
});

test('an abort ends it, and its connection', async () => {
  serve([listOf(5, [])], [() => undefined]);
  follow();
  await heard('synchronized');
  const before = api.connections.size;
  aborted.abort();
  await followed.ended;
  await waitFor('the connection to close', () => api.connections.size < before);
  expect(followed.outdatedSince).not.toBeNull();
});

test('a server with too much to do is asked again when it says, and not before', async () => {
  const refusal = statusOf(503, 'ServiceUnavailable', 'try again later');
  api.answer((_request, response, count) => {
    if (count === 1) return respond(response, 503, refusal, { 'Retry-After': '2' });
    respond(response, 200, listOf(5, []));
  });
  follow();
  await waitFor('another request', () => api.requests.length >= 2);
  const [first, second] = api.requests.map(({ at }) => at);
  expect(second! - first!).toBeGreaterThanOrEqual(2_000);
});
