// Engines of the operator that do not answer, or fail whatever they are asked: that is not the fault of a resource.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { driverContext, isEngineAway } from '../../core/driver';
import { s3Requests } from '../../drivers/backup_store/s3_requests';
import { openDistributionApi } from '../../drivers/distribution/api';
import { openRepository } from '../../drivers/image/repository';
import { kubernetesRefusal } from '../../drivers/kubernetes/client/failure';
import { openPowerdnsApi } from '../../drivers/powerdns/api';
import { openRgwApi } from '../../drivers/rgw/api';

const NOBODY = 'http://127.0.0.1:9';
const ctx = () => driverContext(20_000);
const keys = { accessKeyId: 'a', secretAccessKey: 's' };
const asks: Record<string, (url: string) => Promise<unknown>> = {
  'a name server': (url) => openPowerdnsApi({ url, key: 'k' }).call('GET', '/zones', ctx()),
  'an object gateway': (url) => openRgwApi({ url, ...keys, userPrefix: 'p' }).admin('GET', 'user', {}, ctx()),
  'a container registry': (url) => openDistributionApi(url, () => 't').tags('a', ctx()),
  'the registry of releases': (url) => openRepository('a', { url, token: 't' }).hasManifest('b', ctx()),
  'a backup store': (url) => s3Requests({ url, bucket: 'b', region: 'r', ...keys })({ method: 'GET' }, ctx()),
};

let server: Server;
let status = 500;
const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

beforeAll(async () => {
  server = createServer((_, response) => void response.writeHead(status).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const failureOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => null,
    (error: unknown) => error,
  );

describe.each(Object.keys(asks))('%s', (name) => {
  const ask = asks[name]!;
  test('that nobody answers for is away', async () => {
    expect(isEngineAway(await failureOf(ask(NOBODY)))).toBe(true);
  });

  test('that fails with 500 or 503 is away, and one that refuses the platform is not', async () => {
    for (status of [500, 503]) expect([status, isEngineAway(await failureOf(ask(url())))]).toEqual([status, true]);
    status = 403;
    const refused = await failureOf(ask(url()));
    expect([refused === null, isEngineAway(refused)]).toEqual([false, false]);
  });
});

test.each([
  [500, true],
  [503, true],
  [504, true],
  [403, false],
  [409, false],
  [422, false],
])('an API server that answers %d: away is %s', (answered, away) => {
  expect(isEngineAway(kubernetesRefusal(answered, '', { name: 'the Deployment `web`', secret: false }))).toBe(away);
});
