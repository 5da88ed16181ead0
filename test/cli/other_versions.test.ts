/** @user any */
// Servers that are older or newer than the command line.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { version } from '../../package.json';
import { buildCli, openHome, type Home } from '../support/cli/svc';

let home: Home;
const servers: http.Server[] = [];
beforeAll(() => {
  buildCli();
  home = openHome();
});
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  home?.remove();
});

const APPLICATION = `app_${'0'.repeat(26)}`;
const ROUTE_NOT_FOUND = { status: 404, code: 'route_not_found', title: 'Route not found', detail: 'No such path.' };

type Route = (body: string) => [status: number, answer: object];

/** A server with these operations alone. @returns the environment of commands that use it */
async function serve(routes: Record<string, Route>): Promise<Record<string, string>> {
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (part) => (body += part));
    request.on('end', () => {
      const path = (request.url ?? '').split('?')[0];
      const [status, answer] = routes[`${request.method} ${path}`]?.(body) ?? [404, ROUTE_NOT_FOUND];
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { SVC_URL: `http://127.0.0.1:${port}`, SVC_TOKEN: 'svc_x', SVC_PROJECT: 'prj_1', SVC_APP: APPLICATION };
}

test('an older server that does not say addresses is met with the usual one', async () => {
  const env = await serve({
    'POST /graphql': (body) =>
      body.includes('default_hostname url')
        ? [200, { errors: [{ message: 'Cannot query field "url" on type "Application".' }] }]
        : [200, { data: { getApplication: { default_hostname: 'shop-4f7k2m.example.com' } } }],
  });
  expect(await home.svc(['open'], { env })).toEqual({
    code: 0,
    stdout: 'http://shop-4f7k2m.example.com:8000\n',
    stderr: '',
  });
});

test('an operation that an older server lacks is named as such, and is no missing resource', async () => {
  const env = await serve({});
  for (const args of [['schedules', 'ls'], ['run', '--detach', '--', 'true'], ['whoami'], ['deploy']])
    expect(await home.svc(args, { env })).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`lacks this operation. It may be older than svc ${version}.`),
    });
});

test('a newer server has further states, members and problems', async () => {
  const states = ['building', 'scanning', 'scanning', 'active'];
  const deployment = { id: 'dep_1', number: 7, status: 'queued', finished_at: null, sbom: { packages: 3 } };
  const path = `/v2/applications/${APPLICATION}/deployments`;
  const env = await serve({
    [`GET /v2/applications/${APPLICATION}`]: () => [200, { name: 'a', source: { type: 'bundle', sealed: true } }],
    [`POST ${path}`]: () => [201, deployment],
    [`GET ${path}/dep_1`]: () => [200, { ...deployment, status: states.length > 1 ? states.shift() : states[0] }],
    [`GET ${path}/dep_1/logs`]: () => [200, { data: [], next_cursor: null }],
    'POST /graphql': () => [200, { data: { getApplication: { default_hostname: 'a.test', url: 'https://a.test' } } }],
    [`POST /v2/applications/${APPLICATION}/restart`]: () => [
      409,
      { status: 409, code: 'frozen', detail: 'Changes are frozen.', frozen_until: '2030-01-01', tickets: ['A', 'B'] },
    ],
  });
  expect(await home.svc(['deploy', '--wait'], { env })).toMatchObject({ code: 0, stdout: 'https://a.test\n' });
  expect(states).toEqual(['active']);
  expect(await home.svc(['restart'], { env })).toEqual({
    code: 1,
    stdout: '',
    stderr: 'Error: Changes are frozen.\n  frozen_until: 2030-01-01\n  tickets: A, B\n(code frozen)\n',
  });
});
