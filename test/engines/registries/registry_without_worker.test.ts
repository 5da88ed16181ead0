/** @tier heavy @quarter 2 @covers drivers/distribution server/http/distribution server/platform/registry_tokens */
// Debian's docker-registry with two processes of the API behind a balancer: tokens are issued and notifications taken
// while the worker is away, and while one of the two is killed.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openBalancer, type Balancer } from '../../support/processes/balancer';
import { freePort } from '../../support/processes/free_port';
import { endPrograms, startProgram, type Program } from '../../support/processes/program';
import { openDistribution, type Distribution } from '../../support/registries/distribution';
import { startRegistryClient, type RegistryClient } from '../../support/registries/registry_client';
import { fileNeeds } from '../../support/runner/programs';
import { startService, type TestService } from '../../support/service';
import { waitFor } from '../../support/wait_for';

fileNeeds('docker-registry', 'skopeo');
jest.setTimeout(180_000);

const run = promisify(execFile);

let service: TestService;
let distribution: Distribution;
let balancer: Balancer;
let settings: Record<string, string>;
let ports: number[];
let worker: Program;
const apis: Program[] = [];
let directory: string;

const startApi = async (at: number): Promise<void> => {
  const api = startProgram({ ...settings, PORT: String(ports[at]), WORKER: 'separate' });
  await api.ready();
  apis[at] = api;
};

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'images-'));
  distribution = await openDistribution();
  const registryPort = String(await freePort());
  const ofDistribution = { DISTRIBUTION_URL: distribution.url, DISTRIBUTION_EVENTS_KEY: distribution.eventsKey };
  service = await startService({ settings: { REGISTRY_PORT: registryPort, ...ofDistribution } });
  const { databaseUrl, registryDir } = service.platform.config;
  ports = [await freePort(), await freePort()];
  settings = {
    ...{ DATABASE_URL: databaseUrl as string, PLATFORM_DATA_DIR: service.dataDir, BASE_URL: service.url },
    ...{ REGISTRY_PORT: registryPort, ...ofDistribution, RATE_LIMIT_FAILED_AUTH: '1000000', LOG_LEVEL: 'info' },
  };
  worker = startProgram(settings, { entry: 'server/worker.ts' });
  await Promise.all([worker.ready(), startApi(0), startApi(1)]);
  balancer = await openBalancer(ports);
  const certificate = path.join(registryDir, 'token.crt');
  await distribution.start({ port: balancer.port, path: '/registry', certificate });
  for (const name of ['acme', 'other']) await service.call('POST', '/v2/registries', { body: { name } });
  await waitFor('the registries', async () => {
    const { data } = (await service.call('GET', '/v2/registries')).body as { data: { status: string }[] };
    return data.length === 2 && data.every(({ status }) => status === 'active');
  });
  worker.signal('SIGKILL');
  await worker.ended;
}, 120_000);

afterAll(async () => {
  await endPrograms();
  await balancer?.close();
  await distribution?.close();
  await service?.close();
  rmSync(directory, { recursive: true, force: true });
}, 60_000);

interface Robot {
  id: string;
  username: string;
  secret: string;
}

async function robot(more: object = {}): Promise<Robot> {
  const body = { name: `r${randomBytes(4).toString('hex')}`, permissions: ['pull', 'push', 'delete'], ...more };
  const made = await service.call('POST', '/v2/robot_accounts', { body });
  expect(made.status).toBe(201);
  return made.body as Robot;
}

const clientOf = ({ username, secret }: Robot): RegistryClient =>
  startRegistryClient({ port: Number(distribution.host.split(':')[1]), username, password: secret });

async function token({ username, secret }: Robot, scope: string, at?: number): Promise<Response> {
  const basic = Buffer.from(`${username}:${secret}`).toString('base64');
  const port = at === undefined ? balancer.port : ports[at];
  const url = `http://127.0.0.1:${port}/registry/token?service=${distribution.host}&scope=${scope}`;
  return fetch(url, { headers: { Authorization: `Basic ${basic}` } });
}

const imagesOf = async (name: string): Promise<{ tag: string; digest: string }[]> =>
  service.sql(
    `select t.tag, t.digest from registry_tags t join registries r on r.id = t.registry_id where r.name = $1`,
    [name],
  );

test('skopeo pushes and pulls while the worker is away, and the image is listed', async () => {
  const account = await robot();
  const { digest } = await clientOf(account).pushImage('acme/first', '1', [randomBytes(2000)]);
  const creds = `${account.username}:${account.secret}`;
  const from = `docker://${distribution.host}/acme/first:1`;
  const plain = ['--src-tls-verify=false', '--dest-tls-verify=false', '--src-creds', creds, '--dest-creds', creds];
  await run('skopeo', ['copy', ...plain, from, `docker://${distribution.host}/acme/copy:1`]);
  await run('skopeo', ['copy', ...plain.slice(0, 1), '--src-creds', creds, from, `oci:${directory}/pulled:1`]);
  // skopeo compresses the layer.
  await waitFor('both rows', async () => (await imagesOf('acme')).filter(({ tag }) => tag === '1').length === 2);
  expect((await imagesOf('acme')).map((one) => one.digest)).toContain(digest);
  // Before the platform is told who it was: a tick of the recorder.
  await waitFor('the use of the robot', async () => {
    const { body } = await service.call('GET', `/v2/robot_accounts/${account.id}`);
    return body.last_used_at !== null;
  });
});

test('rights are those of the rows: another registry, a revoked robot, a wrong secret', async () => {
  const limited = await robot({ registry_ids: [(await registryNamed('acme')).id] });
  const access = async (answer: Response): Promise<unknown> => {
    const { token: text } = (await answer.json()) as { token: string };
    return (JSON.parse(Buffer.from(text.split('.')[1] as string, 'base64url').toString()) as { access: unknown })
      .access;
  };
  expect(await access(await token(limited, 'repository:acme/a:pull,push'))).toMatchObject([
    { name: 'acme/a', actions: ['pull', 'push'] },
  ]);
  expect(await access(await token(limited, 'repository:other/a:pull,push'))).toMatchObject([{ actions: [] }]);
  const project = await service.newProject({ stranger: true });
  const body = { name: 'outside', permissions: ['pull', 'push'] };
  const stranger = (await service.call('POST', '/v2/robot_accounts', { body, ...project, project: project.id })).body;
  expect(await access(await token(stranger as Robot, 'repository:acme/a:pull,push'))).toMatchObject([{ actions: [] }]);
  expect((await token({ ...limited, secret: 'wrong' }, 'repository:acme/a:pull')).status).toBe(401);
  await service.call('DELETE', `/v2/robot_accounts/${limited.id}`);
  for (const at of [0, 1]) expect((await token(limited, 'repository:acme/a:pull', at)).status).toBe(401);
});

async function registryNamed(name: string): Promise<{ id: string }> {
  const [row] = await service.sql<{ id: string }>('select id from registries where name = $1', [name]);
  return row as { id: string };
}

test('one of two is killed under pushes: each push that was answered is pulled, and listed once', async () => {
  const account = await robot();
  const pushed = new Map<string, string>();
  let isOver = false;
  const pushing = [0, 1, 2].map(async (lane) => {
    for (let turn = 0; !isOver; turn += 1) {
      const tag = `${lane}-${turn}`;
      const made = await clientOf(account)
        .pushImage('other/app', tag, [randomBytes(1000)])
        .catch(() => null);
      if (made) pushed.set(tag, made.digest);
    }
  });
  for (const at of [0, 1, 0]) {
    await sleep(1_500);
    (apis[at] as Program).signal('SIGKILL');
    await (apis[at] as Program).ended;
    await sleep(1_000);
    await startApi(at);
  }
  isOver = true;
  await Promise.all(pushing);
  expect(pushed.size).toBeGreaterThan(10);
  const client = clientOf(account);
  for (const [tag, digest] of pushed) {
    const { status, headers } = await client.pull('other/app', tag);
    expect([tag, status, headers.get('docker-content-digest')]).toEqual([tag, 200, digest]);
  }
  await waitFor('all rows', async () => (await imagesOf('other')).length >= pushed.size, 60_000);
  const listed = new Map((await imagesOf('other')).map((one) => [one.tag, one.digest]));
  for (const [tag, digest] of pushed) expect(listed.get(tag)).toBe(digest);
});

test('a tag that is moved again and again ends where the server has it, whichever process hears last', async () => {
  const client = clientOf(await robot());
  const send = (at: number, digest: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${ports[at]}/registry/events`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${distribution.eventsKey}` },
      body: JSON.stringify({
        events: [
          {
            action: 'push',
            target: {
              ...{ repository: 'acme/moved', digest, tag: 'latest' },
              mediaType: 'application/vnd.oci.image.manifest.v1+json',
            },
            actor: { name: 'platform' },
          },
        ],
      }),
    });
  // As the server does. It answers 500 itself while it moves the tag, whose file it writes in place.
  const notify = async (at: number, digest: string): Promise<void> => {
    while ((await send(at, digest)).status !== 200) await sleep(200);
  };
  const notifying: Promise<void>[] = [];
  let last = '';
  for (let turn = 0; turn < 8; turn += 1) {
    ({ digest: last } = await client.pushImage('acme/moved', 'latest', [randomBytes(500)]));
    // Twice at both, beside the one of the server.
    for (const at of [0, 1, 0, 1]) notifying.push(notify(at, last));
  }
  await Promise.all(notifying);
  const rows = (await imagesOf('acme')).filter(({ tag }) => tag === 'latest');
  expect(rows).toEqual([{ tag: 'latest', digest: last }]);
  const forged = await fetch(`http://127.0.0.1:${ports[0]}/registry/events`, { method: 'POST', body: '{"events":[]}' });
  expect(forged.status).toBe(401);
});
