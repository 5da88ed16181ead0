// Input of clients of runs that comes while the database is slow to say whether they may still send any.
import { setTimeout as sleep } from 'node:timers/promises';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { attach as attachTo, type AttachOptions, type RunClient } from '../support/runs/attach';
import { startRun } from '../support/runs/runs';

let service: DeployService;
let application: TestApplication;

beforeAll(async () => {
  service = await startDeployService();
  application = await service.application(nodeApp('one'));
  expect((await application.deploy()).status).toBe('active');
}, 60_000);
afterAll(() => service?.close(), 60_000);

const attach = (id: string, options: AttachOptions = {}): Promise<RunClient> =>
  attachTo(service, application, id, options);
const start = async (command: string): Promise<string> =>
  (await startRun(application, command, { detached: false })).id;

/** Questions about a key wait for so long. */
const holdKeys = (seconds: number): Promise<unknown> =>
  service.sql(`do $$ begin lock table api_keys in access exclusive mode; perform pg_sleep(${seconds}); end $$`);

test('a client that floods while the right is looked at is not read, and loses nothing', async () => {
  const shell = await start('wc -c');
  const client = await attach(shell, { key: await service.mintKey() });
  await client.told('ready');
  await sleep(2_500);
  const held = holdKeys(4);
  await sleep(200);
  for (let sent = 0; sent < 400; sent += 1) client.type(Buffer.alloc(256 * 1024, 'x'));
  await sleep(2_500);
  expect(client.ws.bufferedAmount).toBeGreaterThan(80 * 1024 * 1024);
  await held;
  client.command({ type: 'close_stdin' });
  await client.closed;
  expect(client.stdout().trim()).toBe(String(400 * 256 * 1024));
}, 60_000);

test('what a client sends before it goes reaches the program, though the right is still looked at', async () => {
  const shell = await start('while read -r line; do echo "got $line"; done');
  const client = await attach(shell, { key: await service.mintKey() });
  await client.told('ready');
  await sleep(2_500);
  const held = holdKeys(2);
  await sleep(200);
  client.type('last words\n');
  client.ws.close();
  await Promise.all([held, client.closed]);
  const next = await attach(shell);
  await next.shows('got last words');
  await next.told('ready');
  next.command({ type: 'close_stdin' });
  await next.closed;
}, 60_000);
