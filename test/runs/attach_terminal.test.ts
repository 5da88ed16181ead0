// Clients at the terminals of runs.
import { setTimeout as sleep } from 'node:timers/promises';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { attach as attachTo, type AttachOptions, type RunClient } from '../support/runs/attach';
import { runEnded, startRun } from '../support/runs/runs';

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
const start = async (command: string, more: object = {}): Promise<string> =>
  (await startRun(application, command, more)).id;
const TERMINAL = { tty: true };

describe('a terminal', () => {
  test('has a size that changes, Ctrl-C and job control', async () => {
    const id = await start('exec bash --norc --noprofile -i', TERMINAL);
    const client = await attach(id);
    expect(await client.told('ready')).toEqual({ type: 'ready', writer: true, tty: true });
    client.command({ type: 'resize', rows: 41, columns: 111 });
    client.type('stty size; echo "$TERM"; echo size"-shown"\n');
    await client.shows('size-shown');
    expect(client.stdout()).toMatch(/41 111\r\nxterm-256color\r\n/);
    client.type('sleep 600\n');
    await client.shows('sleep 600');
    await sleep(300);
    client.type('\u0003');
    client.type('echo after"-int"\n');
    await client.shows('after-int');
    expect(client.stdout()).not.toMatch(/no job control|cannot set terminal/);
    client.command({ type: 'close_stdin' });
    await client.closed;
    expect(await runEnded(application, id)).toMatchObject({ tty: true, detached: false, status: 'succeeded' });
  }, 30_000);

  test('Ctrl-C is what the program makes of it, and Ctrl-Z stops nothing for good', async () => {
    const script = `process.on("SIGINT", () => { console.log("caught"); if (stopped) process.exit(7); });
      let stopped = false; process.on("SIGCONT", () => { stopped = true; console.log("continued"); });
      setInterval(() => {}, 1e3); console.log("ready")`;
    const id = await start(`exec node -e '${script}'`, TERMINAL);
    const client = await attach(id);
    await client.shows('ready');
    client.type('\u0003');
    await client.shows('caught');
    client.type('\u001a');
    await client.shows('continued');
    client.type('\u0003');
    await client.closed;
    expect(client.stdout().match(/caught/g)).toHaveLength(2);
    expect(client.controls.at(-1)).toMatchObject({ code: 7 });
  }, 30_000);

  test('a program that makes nothing of Ctrl-C ends by it', async () => {
    const client = await attach(await start('sleep 600', TERMINAL));
    await client.told('ready');
    await sleep(500);
    client.type('\u0003');
    await client.closed;
    expect(client.controls.at(-1)).toMatchObject({ code: 130 });
  }, 30_000);

  test('that no client has used for a minute is canceled', async () => {
    const id = await start('exec bash --norc --noprofile -i', TERMINAL);
    const client = await attach(id);
    await client.told('ready');
    client.ws.terminate();
    await sleep(500);
    await service.sql(
      `update runs set attached_at = now() - interval '61 seconds', started_at = now() - interval '70 seconds',
        next_at = now() where id = $1`,
      [id],
    );
    expect(await runEnded(application, id)).toMatchObject({
      status: 'canceled',
      status_reason: 'Canceled: no client has been attached to its terminal for 60 seconds.',
    });
  });

  test('is for a client: a detached one is refused', async () => {
    const body = { command: 'bash', tty: true, detached: true };
    const answer = await service.call('POST', `/v2/applications/${application.id}/runs`, { body });
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ field: 'detached', code: 'depends_on' }] } });
  });
});
