/** @tier heavy @quarter 2 @covers engines/ingress core/process server/http/http.ts */
// API, S3 endpoint and registry by the names of the platform, through its own ingress.
import { existsSync } from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileNeeds } from '../support/runner/programs';
import { until, whole, type Answer } from '../support/ingress/ingress';
import { API, openOwnNames, REGISTRY, S3, type OwnNames } from '../support/ingress/own_names';

fileNeeds('openssl');

let names: OwnNames;

beforeAll(async () => {
  names = await openOwnNames({ LOG_LEVEL: 'info', SHUTDOWN_GRACE_SECONDS: '5' });
}, 120_000);
afterAll(() => names?.close());

const authorised = (): Record<string, string> => ({
  authorization: `Bearer ${names.first().key}`,
  'x-svc-project': names.first().project_id,
});

let volumes = 0;
const createVolume = (headers = {}): Promise<Answer> =>
  names.ask({
    ...{
      method: 'POST',
      path: '/v2/volumes',
      headers: { ...authorised(), 'content-type': 'application/json', ...headers },
    },
    body: JSON.stringify({ name: `volume-${(volumes += 1)}`, size_gb: 1 }),
  });
const countVolumes = async (): Promise<number> => {
  const { body } = await names.ask({ path: '/v2/volumes?limit=100', headers: authorised() });
  return (JSON.parse(body) as { data: unknown[] }).data.length;
};

describe('each server by its name', () => {
  test('the API', async () => {
    const { status, body, headers } = await names.ask({ path: '/v2/me', headers: authorised() });
    expect([status, JSON.parse(body)]).toMatchObject([200, { user: { email: 'owner@example.com' } }]);
    expect(headers['strict-transport-security']).toBe('max-age=31536000');
  });

  test('the S3 endpoint, and a bucket', async () => {
    const s3 = await names.ask({ host: S3, path: '/' });
    expect([s3.status, s3.body]).toEqual([403, expect.stringContaining('<Code>AccessDenied</Code>')]);
    const ofBucket = await names.ask({ host: `some-bucket.${S3}`, path: '/key' });
    expect([ofBucket.status, ofBucket.body]).toEqual([403, expect.stringContaining('<Code>AccessDenied</Code>')]);
  });

  test('the registry', async () => {
    const registry = await names.ask({ host: REGISTRY, path: '/v2/' });
    expect(registry.status).toBe(401);
    expect(registry.headers['www-authenticate']).toContain(`realm="https://${REGISTRY}:${names.ports.https}/token"`);
  });

  test('the API over HTTP/2', async () => {
    const session = http2.connect(`https://${API}:${names.ports.https}`, {
      ca: names.ca,
      lookup: (_, __, found) => (found as (...all: unknown[]) => void)(null, [{ address: '127.0.0.1', family: 4 }]),
    });
    const stream = session.request({ ':path': '/v2/me', ...authorised() });
    const status = await new Promise((resolve, reject) => {
      stream.on('response', (headers) => resolve(headers[':status'])).on('error', reject);
    });
    session.destroy();
    expect(status).toBe(200);
  });

  test('not the metrics', async () => {
    expect((await names.ask({ path: '/metrics' })).status).toBe(404);
    expect((await names.ask({ headers: { host: `${API}:${names.ports.admin}` }, path: '/metrics' })).status).toBe(404);
  });
});

test('a stream of events comes as it is written', async () => {
  const { project_id: project } = names.first();
  const query = `subscription { followProjectActivity(id: "${project}") { action } }`;
  const stream = await names.open({
    path: `/graphql?${new URLSearchParams({ query }).toString()}`,
    headers: { ...authorised(), accept: 'text/event-stream' },
  });
  let text = '';
  stream.on('data', (bytes: Buffer) => (text += bytes.toString())).on('error', () => undefined);
  expect(stream.headers['content-type']).toBe('text/event-stream');
  expect((await createVolume()).status).toBe(201);
  await until(() => text.includes('volume.created'));
  stream.destroy();
});

describe('what it believes', () => {
  const failing = (headers = {}): Promise<Answer> =>
    names.ask({ path: '/v2/me', headers: { authorization: 'Bearer svc_wrong', ...headers } });

  test('addresses that a visitor makes up do not raise its limit of failed log-ins', async () => {
    await names.stop();
    await names.start({ RATE_LIMIT_FAILED_AUTH: '3' });
    const statuses: number[] = [];
    for (let index = 0; index < 5; index += 1)
      statuses.push((await failing({ 'x-forwarded-for': `9.9.9.${index}`, forwarded: `for=9.9.9.${index}` })).status);
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
  }, 60_000);

  test('at the port of the API nobody speaks for the ingress', async () => {
    const ask = (headers: Record<string, string>): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const request = http.get({ host: '127.0.0.1', port: names.ports.api, path: '/v2/me', headers, agent: false });
        request.on('response', (response) => void whole(response).then(resolve, reject)).on('error', reject);
      });
    const statuses: number[] = [];
    for (let index = 0; index < 5; index += 1)
      statuses.push((await ask({ authorization: 'Bearer svc_wrong', 'x-forwarded-for': `9.9.9.${index}` })).status);
    // The same visitor as before.
    expect(statuses).toEqual([429, 429, 429, 429, 429]);
  });
});

describe('restarts', () => {
  test('no request is lost, and none is carried out twice', async () => {
    await names.stop();
    await names.start();
    const before = await countVolumes();
    const answers: Promise<Answer>[] = [];
    let isOver = false;
    const asking = (async () => {
      for (; !isOver; await sleep(50)) {
        answers.push(names.ask({ path: '/v2/me', headers: authorised() }));
        if (answers.length % 5 === 0) answers.push(createVolume());
      }
    })();
    await sleep(500);
    await names.stop();
    await names.start();
    await sleep(500);
    isOver = true;
    await asking;
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    const refused = statuses.filter((status) => status === 503).length;
    expect(statuses.filter((status) => ![200, 201, 503].includes(status))).toEqual([]);
    expect(await countVolumes()).toBe(before + statuses.filter((status) => status === 201).length);
    // A start on a busy machine may take longer than requests wait.
    expect(refused / statuses.length).toBeLessThan(0.5);
  }, 90_000);

  test('one that was killed is waited for too', async () => {
    const before = await countVolumes();
    await names.stop('SIGKILL');
    const asked = [createVolume(), names.ask({ path: '/v2/me', headers: authorised() })];
    await names.start();
    expect((await Promise.all(asked)).map(({ status }) => [200, 201, 503].includes(status))).toEqual([true, true]);
    const [created] = await Promise.all(asked);
    expect(await countVolumes()).toBe(before + (created?.status === 201 ? 1 : 0));
  }, 90_000);

  test('the S3 endpoint and the registry wait as well', async () => {
    await names.stop();
    const asked = [S3, REGISTRY].map((host) => names.ask({ host, path: '/v2/' }));
    await names.start();
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([403, 401]);
    await until(() => names.program().out().includes('requests waited'));
    expect(names.program().out()).toMatch(
      /The server `\w+` took no connections for [\d.]+ s: 1 requests waited, 0 got 503/,
    );
  }, 90_000);

  test('several processes of the API share the way', async () => {
    await names.stop();
    const asked = createVolume();
    await names.start({ WEB_CONCURRENCY: '2', DATABASE_POOL_SIZE: '4' });
    // They start longer, maybe than requests wait.
    expect([201, 503]).toContain((await asked).status);
    const many = await Promise.all(
      Array.from({ length: 20 }, () => names.ask({ path: '/v2/me', headers: authorised() })),
    );
    expect(many.map(({ status }) => status)).toEqual(many.map(() => 200));
    await names.stop();
    const waiting = createVolume();
    await names.start({ WEB_CONCURRENCY: '2', DATABASE_POOL_SIZE: '4' });
    expect([201, 503]).toContain((await waiting).status);
    expect((await createVolume()).status).toBe(201);
  }, 120_000);

  test("a name that was a domain of a project before is the platform's, and the log says whose it was", async () => {
    const json = { ...authorised(), 'content-type': 'application/json' };
    const make = async (path: string, body: object): Promise<{ id: string }> => {
      const { status, body: text } = await names.ask({
        method: 'POST',
        path,
        headers: json,
        body: JSON.stringify(body),
      });
      expect([status, text]).toEqual([201, expect.anything()]);
      return JSON.parse(text) as { id: string };
    };
    const source = { type: 'git', repository_url: 'https://git.example.com/a.git' };
    const application = await make('/v2/applications', { name: 'names', source });
    await make(`/v2/applications/${application.id}/domains`, { hostname: 'app.example.com' });
    await names.stop();
    await names.start({ S3_URL: `https://app.example.com:${names.ports.https}` });
    expect(names.program().out()).toContain('a domain of a project is a name of the platform');
    const answer = await names.ask({ host: 'app.example.com', path: '/' });
    expect([answer.status, answer.body]).toEqual([403, expect.stringContaining('<Code>AccessDenied</Code>')]);
  }, 60_000);

  test('without names, nothing listens for the ingress', async () => {
    await names.stop();
    await names.start({ BASE_URL: `http://127.0.0.1:${names.ports.api}`, S3_URL: '', REGISTRY_HOST: '' });
    const folder = path.join(names.directory, 'data/runtime/ingress');
    expect(existsSync(path.join(folder, 'control.sock'))).toBe(true);
    await expect(names.ask({ path: '/v2/me' })).rejects.toThrow(/handshake|alert/i);
  }, 60_000);
});
