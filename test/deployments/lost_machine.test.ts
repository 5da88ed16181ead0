/** @tier heavy @quarter 1 @covers jobs/deployments server/platform/host_claim.ts server/start_worker.ts */
// Deployments whose machine is lost with its files at one of their steps: another one begins them again.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestApplication } from '../support/deployments/deploy';
import { startMachines, type Machines, type WorkerOfMachine } from '../support/processes/machines';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 120_000;
const POLL_MS = 5;
const BEGINS_AGAIN = 'The machine that had the files of this deployment is gone. It begins again on another one.';
const files = (text: string) => ({
  'package.json': JSON.stringify({ name: 'site', scripts: { build: 'sleep 3 && echo built > built.txt' } }),
  Procfile: 'web: node server.js\n',
  'server.js': `const text = require('node:fs').readFileSync('built.txt', 'utf8').trim() + ' ${text}';
    require('node:http').createServer((_, response) => response.end(text)).listen(process.env.PORT);`,
});

let machines: Machines;
let active: WorkerOfMachine;
let standby: WorkerOfMachine;
let application: TestApplication;
beforeAll(async () => {
  machines = await startMachines();
  active = await machines.startWorker();
  await machines.held(active);
  application = await machines.application(files('first'));
}, 120_000);
afterAll(() => machines?.close(), 120_000);

test.each(['build', 'release'])(
  'a deployment whose worker is killed at the step %s',
  async (step) => {
    standby = await machines.startWorker();
    const { id } = await application.ask();
    await begun(id, step);
    active.signal('SIGKILL');
    const killedAt = performance.now();
    await machines.held(standby);
    const takenMs = performance.now() - killedAt;
    const ended = await application.ended(id, WITHIN_MS);
    report(step, takenMs, performance.now() - killedAt);
    expect(ended).toMatchObject({ status: 'active', status_reason: null });
    expect((await application.log(id)).filter((line) => line === BEGINS_AGAIN)).toHaveLength(1);
    expect(await application.visit()).toEqual({ status: 200, body: 'built first' });
    active = standby;
  },
  240_000,
);

test('a worker that hangs is replaced, and does nothing when it goes on', async () => {
  standby = await machines.startWorker();
  const { id } = await application.ask();
  await begun(id, 'build');
  active.signal('SIGSTOP');
  const stoppedAt = performance.now();
  await machines.held(standby);
  const takenMs = performance.now() - stoppedAt;
  const ended = await application.ended(id, WITHIN_MS);
  report('build, hangs', takenMs, performance.now() - stoppedAt);
  active.signal('SIGCONT');
  expect(ended).toMatchObject({ status: 'active', status_reason: null });
  await waitFor('the loss', () => Promise.resolve(active.out().includes('another process has taken over')), WITHIN_MS);
  await sleep(2_000);
  expect(await machines.holder()).toBe(standby.pid);
  expect((await application.get(`/deployments/${id}`)).status).toBe('active');
  // What it had built half-way is not what counts.
  standby.signal('SIGKILL');
  await machines.held(active);
}, 240_000);

test('a rollback says that files of a lost machine are lost, and takes none that are half-built', async () => {
  const [lost, here, halfBuilt] = await machines.sql<{ id: string; files_on: string }>(
    `select id, files_on from deployments where artifact_kept order by id`,
  );
  const of = path.join(active.directory, 'runtime/releases');
  expect([lost, here, halfBuilt].map((one) => existsSync(path.join(of, one?.id ?? '')))).toEqual([false, true, true]);
  const rolledBack = async (id?: string): Promise<unknown> =>
    application.ended((await application.post('/rollback', { deployment_id: id })).id, WITHIN_MS);
  const refused = {
    status: 'failed',
    status_reason: 'The build of this version is no longer kept. Deploy its commit again.',
  };
  expect(await rolledBack(lost?.id)).toMatchObject(refused);
  expect(await rolledBack(here?.id)).toMatchObject({ status: 'active' });
  expect(await rolledBack(halfBuilt?.id)).toMatchObject(refused);
}, 240_000);

async function begun(id: string, step: string): Promise<void> {
  for (const end = Date.now() + WITHIN_MS; ; await sleep(POLL_MS)) {
    const [row] = await machines.sql<{ status: string; steps: { name: string }[] }>(
      'select status, steps from deployments where id = $1',
      [id],
    );
    if (row?.steps.at(-1)?.name === step) return;
    if (Date.now() > end || ['active', 'failed'].includes(row?.status ?? ''))
      throw new Error(`${step} was not seen: ${JSON.stringify(row)}`);
  }
}

function report(moment: string, takenMs: number, activeMs: number): void {
  const [taken, finished] = [takenMs, activeMs].map((ms) => (ms / 1000).toFixed(1));
  process.stdout.write(`killed at ${moment}: taken over after ${taken} s, active after ${finished} s\n`);
}
