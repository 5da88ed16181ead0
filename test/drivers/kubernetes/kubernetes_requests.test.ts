// Requests of the client: lists in pages, names, and servers that cannot be reached.
import { createServer, type Server, type Socket } from 'node:net';
import { driverContext } from '../../../core/driver';
import { openKubernetesClient, type KubernetesClient } from '../../../drivers/kubernetes/client/client';
import { resourceTypes } from '../../../drivers/kubernetes/client/resource_type';
import {
  configMap,
  failureOf,
  listOf,
  oddApiServer,
  respond,
  statusOf,
  type Handler,
  type OddApiServer,
} from '../../support/kubernetes/odd_api_server';

let api: OddApiServer;
let client: KubernetesClient;
oddApiServer((opened) => ({ api, client } = opened));

const { configMaps } = resourceTypes;
const settings = { metadata: { namespace: 'shop', name: 'settings' }, data: { color: 'green' } };

describe('a list', () => {
  test('is read in pages', async () => {
    api.answer(({ url: { searchParams } }, response) => {
      const page = Number(searchParams.get('continue') ?? '0');
      expect(searchParams.get('limit')).toBe('500');
      respond(response, 200, listOf(9, [configMap(`cm-${page}`, page)], page < 3 ? String(page + 1) : undefined));
    });
    const { items, resourceVersion } = await client.list(configMaps, { labelSelector: 'app=web' }, driverContext(5000));
    expect(items.map(({ metadata, kind }) => `${kind} ${metadata?.name}`)).toEqual(
      [0, 1, 2, 3].map((n) => `ConfigMap cm-${n}`),
    );
    expect(resourceVersion).toBe('9');
    expect(api.requests.every(({ url }) => url.searchParams.get('labelSelector') === 'app=web')).toBe(true);
  });

  test('of large objects is read in smaller pages, from where it was', async () => {
    const large = 'x'.repeat(1024 * 1024);
    const total = 80;
    api.answer(({ url: { searchParams } }, response) => {
      const from = Number(searchParams.get('continue') ?? '0');
      const end = Math.min(total, from + Number(searchParams.get('limit')));
      const items = Array.from({ length: end - from }, (_, index) => configMap(`cm-${from + index}`, 1, { large }));
      respond(response, 200, listOf(9, items, end < total ? String(end) : undefined));
    });
    const { items } = await client.list(configMaps, {}, driverContext(30_000));
    expect(items.map(({ metadata }) => metadata?.name)).toEqual(items.map((_, index) => `cm-${index}`));
    expect(items).toHaveLength(total);
  });

  test('whose pages expire begins again, three times', async () => {
    const expire =
      (times: number): Handler =>
      ({ url: { searchParams } }, response) => {
        if (!searchParams.has('continue')) return respond(response, 200, listOf(9, [configMap('a', 1)], 'next'));
        if ((times -= 1) >= 0)
          return respond(response, 410, statusOf(410, 'Expired', 'the continue token has expired'));
        respond(response, 200, listOf(9, [configMap('b', 2)]));
      };
    api.answer(expire(1));
    const { items } = await client.list(configMaps, {}, driverContext(5000));
    expect(items.map(({ metadata }) => metadata?.name)).toEqual(['a', 'b']);
    api.answer(expire(100));
    expect(await failureOf(client.list(configMaps, {}, driverContext(5000)))).toMatchObject({ code: 'expired' });
    expect(api.requests).toHaveLength(6);
  });
});

describe('a server that cannot be reached', () => {
  let silent: Server;
  const sockets = new Set<Socket>();
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    silent?.close();
  });

  test('refuses connections', async () => {
    const gone = openKubernetesClient({ ...api.access(), server: new URL('https://127.0.0.1:1') });
    const error = await failureOf(gone.version(driverContext(5000)));
    expect(error).toMatchObject({ reason: 'transient', code: 'unreachable' });
    expect(error.message).toBe('The API server of the cluster cannot be reached (ECONNREFUSED).');
  });

  test('takes connections, and says nothing', async () => {
    silent = createServer((socket) => void sockets.add(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as { port: number };
    const hanging = openKubernetesClient({ ...api.access(), server: new URL(`https://127.0.0.1:${port}`) });
    expect(await failureOf(hanging.version(driverContext(400)))).toMatchObject({
      reason: 'transient',
      code: 'timeout',
    });
  });
});

describe('names', () => {
  test.each(['', '.', '..', 'a/b', 'a%2fb'])('%j of an object is refused before it is an address', async (name) => {
    api.answer((_, response) => respond(response, 200, settings));
    const ctx = driverContext(5000);
    await expect(client.get(configMaps, { namespace: 'shop', name }, ctx)).rejects.toMatchObject({ reason: 'invalid' });
    await expect(client.get(configMaps, { namespace: name, name: 'a' }, ctx)).rejects.toMatchObject({
      reason: 'invalid',
    });
    expect(api.requests).toEqual([]);
  });

  test('of what is in a namespace have one; nothing is removed everywhere by accident', async () => {
    const ctx = driverContext(5000);
    await expect(client.get(configMaps, { name: 'a' }, ctx)).rejects.toThrow('without its namespace');
    await expect(client.removeAll(configMaps, {}, {}, ctx)).rejects.toThrow('by a selector only');
  });
});
