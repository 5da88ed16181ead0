/** @user any */
// What the port of the API answers before the API can: the same kind of error as later.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { facesThatAnswer503 } from '../../server/http/starting_faces';

let server: Server;
let address: string;

beforeAll(async () => {
  const faces = facesThatAnswer503(() => address);
  server = createServer((request, response) => {
    if (request.url?.startsWith('/v2')) return void faces.rest(request, response, 'req_1');
    response.setHeader('X-Request-Id', 'req_2');
    faces.express(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

test.each([
  ['/v2/volumes?limit=1', '/v2/volumes', 'req_1'],
  ['/graphql', '/graphql', 'req_2'],
])('a request for %s while the service starts gets a problem document with its id', async (path, instance, id) => {
  const response = await fetch(`${address}${path}`);
  expect(response.status).toBe(503);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'application/problem+json',
    'retry-after': '1',
    'x-request-id': id,
  });
  const expected = { code: 'service_unavailable', instance, request_id: id, retryable: true, status: 503 };
  expect(await response.json()).toMatchObject({ ...expected, type: `${address}/v2/errors/service_unavailable` });
});

test('HEAD gets no text', async () => {
  const response = await fetch(`${address}/v2/volumes`, { method: 'HEAD' });
  expect([response.status, await response.text()]).toEqual([503, '']);
});
