// Answers that an API server gives once in a while, or what stands before it: what becomes of each.
import { driverContext } from '../../../core/driver';
import type { KubernetesClient } from '../../../drivers/kubernetes/client/client';
import { resourceTypes } from '../../../drivers/kubernetes/client/resource_type';
import {
  failureOf,
  oddApiServer,
  respond,
  statusOf,
  type Handler,
  type OddApiServer,
} from '../../support/kubernetes/odd_api_server';

let api: OddApiServer;
let client: KubernetesClient;
oddApiServer((opened) => ({ api, client } = opened));

const { configMaps, secrets, deployments } = resourceTypes;
const shop = { namespace: 'shop', name: 'settings' };
const settings = { metadata: { ...shop }, data: { color: 'green' } };
const apply = (ms = 10_000) => client.apply(configMaps, settings, driverContext(ms));
const refuse =
  (code: number, reason: string, message: string, details = {}): Handler =>
  (_, response) =>
    respond(response, code, statusOf(code, reason, message, details));
const OF = { name: 'settings', kind: 'configmaps' };

describe('a refusal', () => {
  test.each([
    ['a bad request', refuse(400, 'BadRequest', 'unreadable'), 'invalid', 'invalid'],
    ['an invalid object', refuse(422, 'Invalid', 'bad name', OF), 'invalid', 'invalid'],
    [
      'an unknown field of an apply',
      refuse(
        500,
        'InternalError',
        'failed to create typed patch object (shop/settings; /v1, Kind=ConfigMap): .dat: field not declared in schema',
      ),
      ...['invalid', 'invalid'],
    ],
    [
      'a token without rights',
      refuse(403, 'Forbidden', 'User "a" cannot patch resource "configmaps"', OF),
      'unauthorized',
      'forbidden',
    ],
    ['a quota', refuse(403, 'Forbidden', 'exceeded quota: project', OF), 'capacity', 'quota_exceeded'],
    [
      'pod security',
      refuse(403, 'Forbidden', 'pods "a" is forbidden: violates PodSecurity "restricted:latest"', OF),
      'invalid',
      'invalid',
    ],
    [
      'a namespace that is being deleted',
      refuse(403, 'Forbidden', 'unable to create', { ...OF, causes: [{ reason: 'NamespaceTerminating' }] }),
      ...['transient', 'namespace_terminating'],
    ],
    [
      'a namespace that is not there',
      refuse(404, 'NotFound', 'namespaces "shop" not found', { name: 'shop' }),
      'transient',
      'not_found',
    ],
    [
      'an API that is not there',
      (_, response) => respond(response, 404, '404 page not found\n'),
      'unsupported',
      'api_absent',
    ],
    ['a lost race', refuse(409, 'Conflict', 'the object has been modified', OF), 'transient', 'modified'],
    ['one that is there', refuse(409, 'AlreadyExists', 'already exists', OF), 'conflict', 'already_exists'],
    ['a position too old', refuse(410, 'Expired', 'too old resource version'), 'transient', 'expired'],
    ['a body too large', refuse(413, 'RequestEntityTooLarge', 'limit is 3145728'), 'invalid', 'invalid'],
    ['an error of the server', refuse(500, 'InternalError', 'etcdserver: leader changed'), 'transient', 'unavailable'],
    ['a server that starts', refuse(503, 'ServiceUnavailable', 'apiserver not ready'), 'transient', 'unavailable'],
    ['a time-out of the server', refuse(504, 'Timeout', 'request timed out'), 'transient', 'timeout'],
    [
      'a page of a proxy',
      (_, response) => respond(response, 502, '<html>Bad Gateway</html>'),
      'transient',
      'unavailable',
    ],
    [
      'a redirection',
      (_, response) => respond(response, 302, '', { Location: 'https://example.com' }),
      'transient',
      'unavailable',
    ],
  ] as [string, Handler, string, string][])('of %s', async (_, handler, reason, code) => {
    api.answer(handler);
    expect(await failureOf(apply())).toMatchObject({ reason, code });
    expect(api.requests).toHaveLength(1);
  });

  test('of fields that others manage names them', async () => {
    const causes = ['autoscaler', 'kubectl'].map((name) => ({
      ...{ reason: 'FieldManagerConflict', field: '.spec.replicas' },
      message: `conflict with "${name}" using apps/v1`,
    }));
    api.answer(refuse(409, 'Conflict', 'Apply failed with 2 conflicts', { ...OF, causes }));
    const error = await failureOf(client.apply(deployments, settings, driverContext(5000)));
    expect(error).toMatchObject({ reason: 'conflict', code: 'conflict', managers: ['autoscaler', 'kubectl'] });
    expect(error.fields).toContain('.spec.replicas');
  });

  test('is one short sentence for people', async () => {
    api.answer(refuse(422, 'Invalid', `bad\u0007 \n name ${'x'.repeat(5000)}`, OF));
    const { message } = await failureOf(apply());
    expect(message).toMatch(
      /^Kubernetes refused the request for the ConfigMap `settings` in `shop` with status 422: bad name x+ …\.$/,
    );
    expect(message.length).toBeLessThan(700);
  });

  test('of a Secret shows fields, and no text of the server', async () => {
    api.answer(
      refuse(422, 'Invalid', 'Invalid value: "hunter2"', { causes: [{ field: 'data[a b]', message: 'hunter2' }] }),
    );
    const error = await failureOf(
      client.apply(secrets, { metadata: shop, stringData: { a: 'hunter2' } }, driverContext(5000)),
    );
    expect(error.message).toBe(
      'Kubernetes refused the request for the Secret `settings` in `shop` with status 422 (data[a b]).',
    );
    expect(JSON.stringify(error)).not.toContain('hunter2');
  });
});

describe('a server with too much to do', () => {
  const busyFor =
    (times: number, retryAfter: Record<string, string>): Handler =>
    (_, response, count) =>
      count <= times
        ? respond(response, 429, statusOf(429, 'TooManyRequests', 'try again later'), retryAfter)
        : respond(response, 200, settings);

  test('is asked again when it says', async () => {
    api.answer(busyFor(1, { 'Retry-After': '1' }));
    expect(await apply()).toMatchObject({ data: { color: 'green' } });
    const [first, second] = api.requests.map(({ at }) => at);
    expect(second! - first!).toBeGreaterThanOrEqual(1000);
  });

  test('is asked again a few times where it does not say', async () => {
    api.answer(busyFor(2, {}));
    await apply();
    expect(api.requests).toHaveLength(3);
  });

  test('is not waited for beyond the time that there is', async () => {
    api.answer(busyFor(100, { 'Retry-After': '20' }));
    const startedAt = Date.now();
    expect(await failureOf(apply(3000))).toMatchObject({
      reason: 'transient',
      code: 'too_many_requests',
      retryAfterMs: 20_000,
    });
    expect(Date.now() - startedAt).toBeLessThan(1000);
  });

  test('is not asked before it says, though there would be time', async () => {
    api.answer(busyFor(100, { 'Retry-After': '120' }));
    expect(await failureOf(apply(600_000))).toMatchObject({ code: 'too_many_requests', retryAfterMs: 120_000 });
    expect(api.requests).toHaveLength(1);
  });

  test('is not asked for ever', async () => {
    api.answer(busyFor(100, { 'Retry-After': '0' }));
    await failureOf(apply());
    expect(api.requests).toHaveLength(6);
  });
});

describe('an answer', () => {
  test.each([
    ['garbage', '{"kind": "Conf'],
    ['nothing', ''],
    ['null', 'null'],
    ['a page', '<html>log in</html>'],
  ])('of %s is not taken', async (_, body) => {
    api.answer((_request, response) => respond(response, 200, body));
    expect(await failureOf(apply())).toMatchObject({ reason: 'transient', code: 'malformed' });
  });

  test('without items is an empty list, also without a position, as of measurements', async () => {
    api.answer((_, response) => respond(response, 200, { metadata: { resourceVersion: '7' }, items: null }));
    expect(await client.list(configMaps, {}, driverContext(5000))).toEqual({ items: [], resourceVersion: '7' });
    api.answer((_, response) => respond(response, 200, { items: [] }));
    expect(await client.list(configMaps, {}, driverContext(5000))).toEqual({ items: [], resourceVersion: '' });
    api.answer((_, response) => respond(response, 200, {}));
    expect(await failureOf(client.list(configMaps, {}, driverContext(5000)))).toMatchObject({ code: 'malformed' });
  });

  test('that breaks off is an error, and so is one that never ends', async () => {
    api.answer((_, response) => {
      response.writeHead(200, { 'Content-Length': '1000' });
      response.write('{"kind":');
      setTimeout(() => response.destroy(), 50);
    });
    expect(await failureOf(apply())).toMatchObject({ reason: 'transient', code: 'unreachable' });
    api.answer((_, response) => void response.writeHead(200).write('{'));
    expect(await failureOf(apply(500))).toMatchObject({ reason: 'transient', code: 'timeout' });
  });

  test('of more than 64 MiB is not read to its end', async () => {
    let sent = 0;
    api.answer((_, response) => {
      const piece = Buffer.alloc(1024 * 1024, 32);
      const more = (): void => {
        for (; sent < 200 && !response.destroyed; sent += 1) if (!response.write(piece)) break;
        if (sent < 200 && !response.destroyed) response.once('drain', more);
        sent += 1;
      };
      more();
    });
    expect(await failureOf(apply(30_000))).toMatchObject({ reason: 'unsupported', code: 'too_large' });
    expect(sent).toBeLessThan(150);
  });

  test('that never comes ends with the signal, and leaves no connection', async () => {
    api.answer(() => undefined);
    const aborted = new AbortController();
    setTimeout(() => aborted.abort(), 200);
    const ctx = driverContext(60_000, aborted.signal);
    expect(await failureOf(client.get(configMaps, shop, ctx))).toMatchObject({ code: 'timeout' });
  });

  test('of a connection that the server had closed meanwhile is asked for again', async () => {
    api.answer((_, response) => respond(response, 200, settings));
    await apply();
    // The next request meets a closed connection: it is reset without an answer.
    api.answer((_, response, count) =>
      count === 1 ? void response.socket?.destroy() : respond(response, 200, settings),
    );
    expect(await apply()).toMatchObject({ data: { color: 'green' } });
    expect(api.requests).toHaveLength(2);
  });
});
