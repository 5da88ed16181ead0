/** @user any */
// `svc api`: every operation as a command, its flags and bodies, what is printed, and how problems are explained.
import * as fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { openapiDocument } from '../../rest/openapi';
import { buildCore } from '../../resolvers';
import { buildCli, openHome, type Home } from '../support/cli/svc';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startService({ worker: true });
  home = openHome(service);
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

const json = async (args: string[], input?: string): Promise<Record<string, unknown>> =>
  JSON.parse(await home.output(args, input === undefined ? {} : { input })) as Record<string, unknown>;

test('has a command for each operation that is served', async () => {
  const core = buildCore();
  const document = openapiDocument({ ...core, baseUrl: 'http://127.0.0.1', version: '0.0.0' });
  const served = Object.values(document.paths as Record<string, Record<string, { operationId?: string }>>)
    .flatMap((item) => Object.values(item).map(({ operationId }) => operationId))
    .filter(Boolean);
  const listed = JSON.parse(await home.output(['api', '--list', '--json'])) as { id: string; extension: boolean }[];
  expect(listed.map(({ id }) => id).sort()).toEqual([...served].sort());
  expect(listed.filter(({ extension }) => !extension)).toHaveLength(253);
});

test('each command has help, and takes its flags', async () => {
  const help = await home.output(['api', 'createVolume', '--help']);
  expect(help).toContain('POST /v2/volumes, scope write');
  expect(help).toContain('size_gb  integer, required');
  const logs = await home.output(['api', 'listApplicationLogs', '--help']);
  for (const flag of ['--process-type', '--since', '--follow', '--limit']) expect(logs).toContain(flag);
});

test('makes, reads, changes and deletes: bodies from fields, JSON, files and standard input', async () => {
  const made = await json(['api', 'createVolume', '--field', 'name=uploads', '-f', 'size_gb=1', '--wait', '20s']);
  expect(made).toMatchObject({ name: 'uploads', size_gb: 1, status: 'available' });
  const id = made.id as string;
  expect(await home.output(['api', 'getVolume', id, '--field', 'size_gb'])).toBe('1\n');
  expect(await json(['api', 'updateVolume', id, '--data', '{"size_gb": 2}', '--dry-run'])).toMatchObject({
    size_gb: 2,
  });
  expect(await json(['api', 'getVolume', id])).toMatchObject({ size_gb: 1 });
  fs.writeFileSync(path.join(home.folder, 'body.json'), '{"name": "logs"}');
  await home.output([
    'api',
    'createVolume',
    '--data',
    '@body.json',
    '--field',
    'size_gb=1',
    '--idempotency-key',
    'k-1',
  ]);
  const again = await json(
    ['api', 'createVolume', '-d', '-', '--idempotency-key', 'k-1'],
    '{"name":"logs","size_gb":1}',
  );
  const page = await json(['api', 'listVolumes', '--sort', 'name']);
  expect(page).toMatchObject({
    data: [
      { id: again.id, name: 'logs' },
      { id, name: 'uploads' },
    ],
    next_cursor: null,
  });
  expect(await home.output(['api', 'deleteVolume', id])).toBe('');
  expect(await home.svc(['api', 'getVolume', id])).toMatchObject({ code: 4, stdout: '' });
});

test('sends objects and values by their types', async () => {
  const source = 'source={"type": "image", "image": "docker.io/library/nginx:1"}';
  const curl = await home.output(['api', 'createApplication', '-f', 'name=shop', '-f', source, '--curl']);
  expect(curl).toContain(`{"name":"shop","source":{"type":"image","image":"docker.io/library/nginx:1"}}`);
  const dotted = await home.output(['api', 'createApplication', '-f', 'source.type=upload', '-f', 'name=it', '--curl']);
  expect(dotted).toContain(`'{"source":{"type":"upload"},"name":"it"}'`);
});

test('pages lists by itself', async () => {
  const application = await json(['api', 'createApplication', '-f', 'name=paged']);
  const variables = Array.from({ length: 120 }, (_, index) => ({ key: `V_${index}`, value: 'x' }));
  await service.graphql(
    `mutation ($id: ID!, $input: SetEnvironmentVariablesInput!) {
      setEnvironmentVariables(id: $id, input: $input) { key } }`,
    { id: application.id, input: { variables } },
  );
  const keys = await home.output(['api', 'listEnvironmentVariables', application.id as string, '--field', 'key']);
  expect(keys.trim().split('\n')).toHaveLength(120);
  const { data } = (await json(['api', 'listEnvironmentVariables', application.id as string, '--limit', '2'])) as {
    data: unknown[];
  };
  expect(data).toHaveLength(2);
});

test('prints a request as curl, without the token unless it is asked for', async () => {
  const hidden = await home.output(['api', 'listVolumes', '--status', 'available', '--curl']);
  expect(hidden).toContain(`curl '${service.url}/v2/volumes?status=available'`);
  expect(hidden).toContain('Bearer $SVC_TOKEN');
  expect(hidden).not.toContain(service.key);
  expect(await home.output(['api', 'listVolumes', '--curl', '--show-token'])).toContain(`Bearer ${service.key}`);
});

test('refuses what the document rules out, with exit code 2', async () => {
  const wrong = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await home.svc(['api', ...args]);
    expect([args[0], code, stdout]).toEqual([args[0], 2, '']);
    return stderr;
  };
  expect(await wrong('listVolumes', '--limit', '101')).toContain('a whole number from 1 to 100');
  expect(await wrong('listVolumes', '--status', 'lost')).toContain('provisioning|available');
  expect(await wrong('listVolums')).toContain('Did you mean `listVolumes`?');
  expect(await wrong('getVolume')).toMatch(/id/);
  expect(await wrong('createVolume')).toContain('needs `name`, `size_gb`');
  expect(await wrong('createVolume', '-f', 'size_gb=big')).toContain('`size_gb` must be of type integer');
  expect(await wrong('createVolume', '-d', '{')).toContain('--data is no JSON');
  expect(await wrong('getVolume', 'vol_1', '--colour')).toContain('--colour');
});

test('explains a problem field by field, with what to do', async () => {
  const { code, stderr, stdout } = await home.svc(['api', 'createVolume', '-d', '{"name":"U","size_gb":0,"colour":1}']);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^Error: .+\n(?: {2}(?:name|size_gb|colour): .+\n){3}/);
  expect(stderr).toMatch(/\(code validation_failed, request req_\w+\)\n$/);
  const scope = await home.svc(['api', 'createVolume', '-f', 'name=more', '-f', 'size_gb=1'], {
    env: { SVC_TOKEN: await service.mintKey({ scopes: ['read'] }) },
  });
  expect(scope).toMatchObject({ code: 3, stderr: expect.stringContaining('required_scope: write') });
});

test('a server that is older lacks an operation, and one that is newer sends fields that are unknown', async () => {
  const server = http.createServer((request, response) => {
    const isKnown = request.url?.startsWith('/v2/me');
    response.writeHead(isKnown ? 200 : 404, { 'Content-Type': 'application/json' });
    const me = {
      user: { email: 'a@example.com', aura: 'blue' },
      token: { kind: 'quantum', scopes: ['fly'] },
      planet: 'x',
    };
    response.end(JSON.stringify(isKnown ? me : { code: 'route_not_found', title: 'Route not found', colour: 'red' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const env = { SVC_URL: `http://127.0.0.1:${(server.address() as { port: number }).port}` };
  expect(await home.svc(['whoami', '--json'], { env })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('"planet": "x"'),
  });
  expect(await home.svc(['whoami'], { env })).toMatchObject({ code: 0, stdout: expect.stringContaining('quantum') });
  expect(await home.svc(['api', 'listVolumes'], { env })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`has no operation listVolumes. It is older than this svc.`),
  });
  server.close();
});
