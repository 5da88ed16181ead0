/** @tier heavy @quarter 4 @covers engines/ingress/ingress server/agents/ingress.ts */
// Visitors while the control plane is killed, stopped, started and upgraded, and while the ingress itself is killed.
import { execFileSync } from 'node:child_process';
import http from 'node:http';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import { nodeApp } from '../../support/git/repositories';
import { waitFor } from '../../support/wait_for';
import { withConfig } from '../../support/config';

const EVERY_MS = 10;
const FOR_MS = 2_000;
const CROWD = 32;
const CROWD_PER_MS = 2;
const CROWD_EVERY_MS = 5;

let plant: Plant;

beforeAll(async () => {
  plant = await startPlant(withConfig({ ingressProcess: 'separate' }));
}, 120_000);

afterAll(async () => {
  await plant.close();
}, 120_000);

test('no request is lost while the control plane is killed, started, stopped and started again', async () => {
  const application = await plant.application(nodeApp('served'));
  expect((await application.deploy()).status).toBe('active');
  const visitors = openVisitors(application.host);
  await pause();
  await plant.kill();
  await pause();
  await plant.start();
  await pause();
  await plant.stop();
  await pause();
  await plant.start();
  await pause();
  const outcomes = await visitors.close();
  expect(Object.keys(outcomes)).toEqual(['served']);
  expect(outcomes.served).toBeGreaterThan(FOR_MS / EVERY_MS);
  await waitFor('the lines of what came meanwhile', async () => {
    const { data } = await application.get('/logs?source=router&limit=100');
    return data.length > 50;
  });
  // The routes of the new release reach the process that has served all the time.
  expect((await application.deploy()).status).toBe('active');
  expect((await application.visit()).body).toBe('served');
}, 180_000);

test('no request of a crowd is lost while the control plane is killed and started', async () => {
  const application = await plant.application(nodeApp('crowded'));
  expect((await application.deploy()).status).toBe('active');
  const crowd = openCrowd(application.host);
  await pause();
  await plant.kill();
  await pause();
  await plant.start();
  await pause();
  const outcomes = await crowd.close();
  expect(Object.keys(outcomes)).toEqual(['crowded']);
  expect(outcomes.crowded).toBeGreaterThan(CROWD);
}, 180_000);

test('killed itself, it is back within seconds, and the control plane did not end', async () => {
  const application = await plant.application(nodeApp('again'));
  expect((await application.deploy()).status).toBe('active');
  const pattern = `engines/ingress/process/main.*${plant.runtimeDir}/ingress`;
  execFileSync('pkill', ['-KILL', '-f', pattern]);
  await waitFor('an answer', async () => (await application.visit().catch(() => null))?.body === 'again', 10_000);
  expect(plant.said()).toContain('The ingress process has ended. It is started again.');
  expect((await application.get()).status).toBe('running');
}, 180_000);

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, FOR_MS));

/** One request every few milliseconds, half of them on kept connections. */
function openVisitors(host: string): { close(): Promise<Record<string, number>> } {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  const outcomes: Record<string, number> = {};
  const open = new Set<Promise<void>>();
  let count = 0;
  const timer = setInterval(() => {
    const visit = ask(host, (count += 1) % 2 ? agent : undefined).then((outcome) => {
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    });
    open.add(visit);
    void visit.then(() => open.delete(visit));
  }, EVERY_MS);
  return {
    async close() {
      clearInterval(timer);
      await Promise.all(open);
      agent.destroy();
      return outcomes;
    },
  };
}

/** 2,000 requests a second on kept connections; where the machine is too slow for that, they wait in the client. */
function openCrowd(host: string): { close(): Promise<Record<string, number>> } {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CROWD });
  const outcomes: Record<string, number> = {};
  const open = new Set<Promise<void>>();
  const started = performance.now();
  let asked = 0;
  const visit = async (): Promise<void> => {
    const outcome = await ask(host, agent);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  };
  const timer = setInterval(() => {
    for (const due = (performance.now() - started) * CROWD_PER_MS; asked < due; asked += 1) {
      const visited = visit().finally(() => open.delete(visited));
      open.add(visited);
    }
  }, CROWD_EVERY_MS);
  return {
    async close() {
      clearInterval(timer);
      await Promise.all(open);
      agent.destroy();
      return outcomes;
    },
  };
}

function ask(host: string, agent: http.Agent | undefined): Promise<string> {
  return new Promise((resolve) => {
    const options = { port: plant.ingressPort, host: '127.0.0.1', headers: { host }, agent: agent ?? false };
    const request = http.get(options, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk))).on('end', () => resolve(text));
    });
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}
