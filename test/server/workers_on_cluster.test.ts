/** @tier heavy @quarter 3 @covers server/start_worker.ts server/agents/registry.ts */
// Workers of an installation whose engines are elsewhere: equals, of which one has the host.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '../support/processes/free_port';
import { startMachines, type Machines, type WorkerOfMachine } from '../support/processes/machines';

let directory: string;
let machines: Machines;
beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'workers-'));
  const [nobody, kubeconfig] = [await freePort(), path.join(directory, 'kubeconfig')];
  writeFileSync(kubeconfig, kubeconfigOf(`https://127.0.0.1:${nobody}`));
  machines = await startMachines({
    REGISTRY_PORT: '5000',
    ...{ WORKLOADS: 'kubernetes', KUBECONFIG: kubeconfig, KUBERNETES_INGRESS_ADDRESSES: '127.0.0.1' },
    ...{ DISTRIBUTION_URL: `http://127.0.0.1:${nobody}`, REGISTRY_HOST: `127.0.0.1:${nobody}` },
    REGISTRY_URL_FOR_NODES: `http://127.0.0.1:${nobody}`,
  });
}, 60_000);
afterAll(async () => {
  await machines?.close();
  rmSync(directory, { recursive: true, force: true });
}, 60_000);

test('each issues tokens of the registry, whether it has the host or not, and one follows another', async () => {
  const [first, second] = [await machines.startWorker(), await machines.startWorker()];
  expect(await machines.holder()).toBe(first.pid);
  expect([await issuesTokens(first), await issuesTokens(second)]).toEqual([200, 200]);

  first.signal('SIGTERM');
  await machines.held(second);
  expect(await first.ended).toBe(0);
  expect(await issuesTokens(second)).toBe(200);
  const third = await machines.startWorker();
  const killedAt = performance.now();
  second.signal('SIGKILL');
  await machines.held(third);
  expect(performance.now() - killedAt).toBeLessThan(20_000);
  expect(await issuesTokens(third)).toBe(200);
}, 120_000);

async function issuesTokens({ registryPort }: WorkerOfMachine): Promise<number> {
  const headers = { Authorization: `Basic ${Buffer.from(`owner:${machines.key()}`).toString('base64')}` };
  const address = `http://127.0.0.1:${registryPort}/token?service=registry`;
  return (await fetch(address, { headers })).status;
}

function kubeconfigOf(server: string): string {
  return JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'none' },
    clusters: [{ name: 'none', cluster: { server } }],
    users: [{ name: 'none', user: { token: 'none' } }],
    contexts: [{ name: 'none', context: { cluster: 'none', user: 'none' } }],
  });
}
