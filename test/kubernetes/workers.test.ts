/** @tier heavy @quarter 4 @covers jobs/deployments server/start_worker.ts server/agents/workloads */
// Two workers whose engines are all elsewhere, of which one after another is killed while it works. Whoever takes over
// has empty directories.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, connect, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { busyboxLayer } from '../support/builds/images';
import type { TestApplication } from '../support/deployments/deploy';
import { hostOfCluster, pushBaseImage, trustRegistry } from '../support/kubernetes/service_on_cluster';
import { lostOf, startTimedLoad } from '../support/kubernetes/timed_load';
import { freePort } from '../support/processes/free_port';
import { startMachines, type Machines, type WorkerOfMachine } from '../support/processes/machines';
import { endPrograms, startProgram } from '../support/processes/program';
import { openDistribution, type Distribution } from '../support/registries/distribution';
import { runEnded, runIs, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 180_000;
const STEPS = ['fetch', 'plan', 'equip', 'release', 'publish', 'command', 'instances', 'activate'];
const FILES = {
  Procfile: 'web: busybox httpd -f -p "$PORT" -h site\nrelease: echo released; sleep 2\n',
  'site/index.html': 'ok',
};

describeOnClusterOfMachine('workers without files', (cluster) => {
  let directory: string;
  let distribution: Distribution;
  let service: Server & { target: number };
  let machines: Machines;
  let active: WorkerOfMachine;
  let application: TestApplication;
  let ingressPort: number;

  beforeAll(async () => {
    const host = await hostOfCluster(cluster());
    directory = mkdtempSync(path.join(tmpdir(), 'workers-'));
    distribution = await openDistribution(host);
    trustRegistry(cluster(), distribution.host);
    service = await startPassing();
    machines = await startMachines({
      REGISTRY_PORT: '5000',
      ...{ WORKLOADS: 'kubernetes', KUBECONFIG: cluster().kubeconfig, KUBERNETES_INGRESS_ADDRESSES: host },
      ...{ DISTRIBUTION_URL: distribution.url, REGISTRY_HOST: distribution.host, REGISTRY_LISTEN: '0.0.0.0' },
      ...{ DISTRIBUTION_EVENTS_KEY: distribution.eventsKey, REGISTRY_URL_FOR_NODES: distribution.url },
      KUBERNETES_NAMESPACE_PREFIX: `test-${process.pid}-${await freePort()}`,
      RELEASE_BASE_IMAGE: `${distribution.host}/bases/busybox:1`,
    });
    active = await machines.startWorker();
    await machines.held(active);
    service.target = active.registryPort;
    const certificate = path.join(directory, 'token.crt');
    copyFileSync(path.join(active.directory, 'registry/token.crt'), certificate);
    await distribution.start({ port: (service.address() as AddressInfo).port, certificate });
    const port = Number(new URL(distribution.url).port);
    await pushBaseImage(machines, machines.key(), port, [await busyboxLayer()]);
    ingressPort = await startIngress();
    application = await machines.application(FILES);
    const { status, status_reason } = await application.ended((await application.ask()).id, WITHIN_MS);
    expect([status, status_reason]).toEqual(['active', null]);
  }, 300_000);
  afterAll(async () => {
    await machines?.close();
    await endPrograms();
    await distribution?.close();
    service?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 180_000);

  test('a deployment succeeds, at whatever step the worker is killed, and no request is lost', async () => {
    const load = startTimedLoad(ingressPort, application.host);
    await waitFor('the first answer', () => Promise.resolve(load.visits.some(({ outcome }) => outcome === '200')));
    const servedAt = performance.now();
    const run = await startRun(application, 'i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i; sleep 1; done');
    await runIs(application, run.id, 'running', WITHIN_MS);
    for (const step of STEPS) await killedAt(step, 'SIGKILL');
    await killedAt('publish', 'SIGSTOP');
    await killedAt('instances', 'SIGTERM');
    await application.post(`/runs/${run.id}/cancel`);
    await runEnded(application, run.id, WITHIN_MS);
    const lines: string[] = (await application.get(`/runs/${run.id}/logs?order=asc&limit=1000`)).data
      .map(({ message }: { message: string }) => message)
      .filter((message: string) => message.startsWith('line '));
    expect(lines).toEqual(lines.map((_, index) => `line ${index + 1}`));
    const visits = (await load.stop()).filter(({ at }) => at > servedAt);
    process.stdout.write(
      `${visits.length} requests, ${lostOf(visits).length} lost; ${lines.length} lines of a run, each once\n`,
    );
    expect(lostOf(visits)).toEqual([]);
  }, 900_000);

  test('a version whose files are on a lost machine is rolled back to, from its image', async () => {
    const [{ id } = { id: '' }] = await machines.sql<{ id: string }>(
      'select id from deployments where artifact_kept order by id limit 1',
    );
    const rolledBack = await application.ended((await application.post('/rollback', { deployment_id: id })).id);
    expect([rolledBack.status, rolledBack.status_reason]).toEqual(['active', null]);
  }, 240_000);

  async function killedAt(step: string, signal: NodeJS.Signals): Promise<void> {
    const standby = await machines.startWorker();
    const { id } = await application.ask();
    await begun(id, step);
    active.signal(signal);
    const at = performance.now();
    service.target = standby.registryPort;
    await machines.held(standby);
    const takenMs = performance.now() - at;
    const { status, status_reason } = await application.ended(id, WITHIN_MS);
    const figures = [takenMs, performance.now() - at].map((ms) => (ms / 1000).toFixed(1));
    const again = (await application.log(id)).filter((line) => line.includes('begins again')).length;
    const [{ commands } = { commands: 0 }] = await machines.sql<{ commands: number }>(
      `select count(*)::int as commands from runs where trigger_id = $1 and trigger_type = 'release'`,
      [id],
    );
    process.stdout.write(
      `${signal} at ${step}: taken over after ${figures[0]} s, active after ${figures[1]} s, ` +
        `${again ? 'begun again' : 'gone on'}, ${commands} release commands\n`,
    );
    expect([step, status, status_reason]).toEqual([step, 'active', null]);
    if (signal === 'SIGSTOP') active.signal('SIGKILL');
    active = standby;
  }

  async function begun(id: string, step: string): Promise<void> {
    for (const end = Date.now() + WITHIN_MS; Date.now() < end; await sleep(5)) {
      const [row] = await machines.sql<{ steps: { name: string }[] }>('select steps from deployments where id = $1', [
        id,
      ]);
      if (row?.steps.some(({ name }) => name === step)) return;
    }
    throw new Error(`The step ${step} was not seen.`);
  }

  async function startIngress(): Promise<number> {
    const ingress = startProgram(
      {
        ...{ DATABASE_URL: machines.databaseUrl, PLATFORM_DATA_DIR: path.join(directory, 'ingress') },
        ...{ WORKLOADS: 'kubernetes', KUBECONFIG: cluster().kubeconfig, PLATFORM_SECRET_KEY: machines.secret },
        REGISTRY_PORT: '5000',
      },
      { entry: 'server/ingress.ts' },
    );
    await ingress.ready();
    const lines = ingress.out().split('\n');
    return (JSON.parse(lines.find((one) => one.includes('"the ingress is ready"')) ?? '{}') as { http: number }).http;
  }
});

/** As a Service does, it leads to a worker that is there. */
async function startPassing(): Promise<Server & { target: number }> {
  const server = Object.assign(
    createServer((inside) => {
      const outside = connect(server.target, '127.0.0.1');
      for (const one of [inside, outside]) one.on('error', () => [inside, outside].forEach((each) => each.destroy()));
      inside.pipe(outside).pipe(inside);
    }),
    { target: 0 },
  );
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  return server;
}
