/** @tier heavy @quarter 2 @covers docs/kubernetes Dockerfile server/platform/liveness.ts */
// The control plane on a cluster, by the manifests and the document of an owner: a first application, then what happens
// to such a cluster on any day, under everything at once.
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestCluster } from '../cluster/cluster';
import { kubectl } from '../cluster/kubectl';
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { TestApplication } from '../support/deployments/deploy';
import {
  DEPLOYMENTS,
  importPlatformImage,
  installManifests,
  leastAvailable,
  ofRole,
  rolledOut,
  type InstalledOnCluster,
} from '../support/kubernetes/manifests';
import { longestGap, startMachineLoads, type Done, type MachineLoads } from '../support/kubernetes/machine_loads';
import { IMAGE_PROGRAMS, obstacleToImage } from '../support/releases/platform_image';
import { named, needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 240_000;
const NODES = 3;
/** Before and after what is tried. */
const QUIET_MS = 5_000;
const INSTALLED_MS = 1_200_000;
const LANES = ['visits', 'reads', 'writes', 'queries', 'mails', 'deployments'] as const;
const TIMED_OUT = /^[\d.:]+: [^;]*(timeout|no answer)[^;]*; $/i;
const FILES = { Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n', 'site/index.html': 'version 0' };

const theTest = (cluster: () => TestCluster): void => {
  let installed: InstalledOnCluster;
  let application: TestApplication;
  let loads: MachineLoads | null = null;
  let version = 0;

  beforeAll(async () => {
    await importPlatformImage(cluster());
    installed = await installManifests(cluster());
  }, INSTALLED_MS);
  afterAll(async () => {
    await loads?.stop();
    await installed?.close();
  }, WITHIN_MS);

  test('an owner deploys a first application, and the roles are on several machines', async () => {
    application = await installed.application(FILES);
    const { status, status_reason } = await application.ended((await application.ask()).id, WITHIN_MS);
    expect([status, status_reason]).toEqual(['active', null]);
    const [web] = (await application.get('/processes')).data as { id: string }[];
    await application.post(`/processes/${web?.id}/scale`, { instances: 2 });
    const running = async (): Promise<number> =>
      (await application.get('/instances')).data.filter((one: { status: string }) => one.status === 'running').length;
    await waitFor('two instances', async () => (await running()) === 2, WITHIN_MS);
    const nodes = await Promise.all(
      DEPLOYMENTS.map(async (name) => (await installed.podsOf(name)).map((pod) => pod.node)),
    );
    expect(nodes.map((all) => new Set(all).size)).toEqual(DEPLOYMENTS.map(() => 2));
    const restarts = 'jsonpath={.items[*].status.containerStatuses[*].restartCount}';
    expect((await installed.run('get', 'pods', '-o', restarts)).trim().split(' ')).toEqual(Array(8).fill('0'));
  }, 400_000);

  /** Each role has one address: what is repeated has failed once. */
  async function underLoad(name: string, work: () => Promise<unknown>): Promise<void> {
    loads ??= await startMachineLoads(installed, application, () => {
      installed.git.commit(application.name, { 'site/index.html': `version ${(version += 1)}` });
    });
    await sleep(QUIET_MS);
    const counted = Object.fromEntries(LANES.map((lane) => [lane, loads?.[lane].length ?? 0]));
    const from = performance.now();
    const least = await leastAvailable(installed, work);
    const took = performance.now() - from;
    await sleep(QUIET_MS);
    const all = loads;
    const failed = LANES.map((lane) => failuresOf(lane, all[lane].slice(counted[lane])));
    const gaps = LANES.map((lane) => `${lane} ${all[lane].length - (counted[lane] ?? 0)}, ${gapOf(all[lane], from)} s`);
    process.stdout.write(`${name}: ${(took / 1000).toFixed(1)} s; ${gaps.join('; ')}\n`);
    expect(failed).toEqual(LANES.map(() => []));
    expect(Object.values(least).every((count) => count >= 1)).toBe(true);
    expect(Object.keys(least).sort()).toEqual([...DEPLOYMENTS].sort());
  }

  test('a rolling restart of every Deployment loses nothing', async () => {
    await underLoad('rolling restart', async () => {
      for (const name of DEPLOYMENTS) {
        await installed.run('rollout', 'restart', `deployment/${name}`);
        await rolledOut(installed.run, name);
      }
    });
  }, 900_000);

  test('a drained node loses nothing, and of each role one is always there', async () => {
    // This machine reaches Services by the first node.
    const node = (await installed.podsOf('worker')).map((pod) => pod.node).find((one) => one !== 'node1') ?? '';
    const ofCluster = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
    await underLoad(`drain of ${node}`, async () => {
      await ofCluster('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=240s');
      for (const name of DEPLOYMENTS) await rolledOut(installed.run, name);
    });
    await ofCluster('uncordon', node);
  }, 900_000);

  test('a worker that hangs is started again', async () => {
    await loads?.stop();
    loads = null;
    const [pod] = await installed.podsOf('worker');
    const name = pod?.name ?? '';
    const restarts = async (): Promise<number> => {
      const path = 'jsonpath={.status.containerStatuses[0].restartCount}';
      return Number(await installed.run('get', 'pod', name, '-o', path));
    };
    expect(await restarts()).toBe(0);
    const isNode = '[ "$(readlink $one/exe)" = /opt/platform/bin/node ]';
    const hang = `for one in /proc/[0-9]*; do ${isNode} && kill -STOP "\${one#/proc/}"; done`;
    await installed.run('exec', name, '--', 'sh', '-c', `${hang}; touch -d '-5 minutes' alive`);
    await waitFor('a restart', async () => (await restarts()) === 1, WITHIN_MS);
    await installed.run('wait', 'pod', name, '--for=condition=Ready', '--timeout=120s');
    expect(await installed.run('get', 'pods', ...ofRole('worker'), '-o', 'name')).toContain(name);
  }, 400_000);
};

/** A client that gives up on a busy machine has lost nothing; mail and writes are repeated by those that send them. */
function failuresOf(lane: string, all: readonly Done[]): string[] {
  const lost = all.filter(({ value }) => value === null || value === 'failed');
  return lost.map(({ reason = '' }) => reason).filter((reason) => lane === 'deployments' || !TIMED_OUT.test(reason));
}

const gapOf = (all: readonly Done[], from: number): string => (longestGap(all, from) / 1000).toFixed(1);

const obstacle = obstacleToImage();
if (obstacle === null)
  needs(...IMAGE_PROGRAMS).describe('an image', () => describeOnTestCluster('manifests', theTest, NODES));
else
  (named(describe.skip, ` (needs: ${obstacle})`) as jest.Describe)('manifests', () =>
    theTest(() => undefined as never),
  );
