// Holds a cluster. As the child of a test it does what cluster.ts sends it, and ends with the test, however that ends.
// Started by hand, it keeps a cluster for many runs, until Ctrl-C:
//   node --require ./test/support/runner/typescript.js test/cluster/supervisor.ts [NODES]
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { buildPrograms } from './build';
import { startControlPlane, type ControlPlane } from './control_plane';
import { startClusterDns } from './dns';
import { takeSlot } from './host';
import { writeImageArchive } from './image';
import { startNode, type ClusterNode, type NodeParts } from './node';
import { waitUntil } from './processes';

/** Verbs of cluster.ts. */
export interface Supervised {
  start(nodes: number): Promise<{ kubeconfig: string; directory: string }>;
  killNode(number: number): Promise<void>;
  startNode(number: number): Promise<void>;
  processOfNode(number: number): number;
  stopApiServer(): Promise<void>;
  startApiServer(): Promise<void>;
  freezeApiServer(): void;
  thawApiServer(): void;
  stop(): Promise<void>;
}

const NODE_READY_SECONDS = 120;

function supervise(): Supervised {
  const slot = takeSlot();
  const directory = mkdtempSync(path.join(os.tmpdir(), 'test-cluster-'));
  const nodes = new Map<number, ClusterNode>();
  let controlPlane: ControlPlane | null = null;
  let parts: NodeParts | null = null;
  let stopDns: (() => void) | null = null;
  const running = (): ControlPlane => controlPlane ?? fail('The cluster is not running.');
  const run = async (number: number): Promise<void> => {
    nodes.set(number, await startNode(parts ?? fail('The cluster is not running.'), number));
  };
  return {
    async start(count) {
      const programs = await buildPrograms();
      controlPlane = await startControlPlane({ directory, network: slot.network, programs });
      stopDns = await startClusterDns(slot.network.host, controlPlane);
      const { kubeconfig } = controlPlane;
      const images = path.join(directory, 'images.tar');
      await writeImageArchive(programs.program, images);
      parts = { ...slot, directory, programs, kubeconfig, images, nodes: count };
      for (let number = 1; number <= count; number += 1) await run(number);
      await untilReady(controlPlane, directory, count);
      return { kubeconfig, directory };
    },
    async killNode(number) {
      await nodes.get(number)?.kill();
      nodes.delete(number);
    },
    startNode: run,
    processOfNode: (number) => nodes.get(number)?.pid ?? fail(`The node ${number} is not running.`),
    stopApiServer: () => running().stopApiServer(),
    startApiServer: () => running().startApiServer(),
    freezeApiServer: () => running().freezeApiServer(),
    thawApiServer: () => running().thawApiServer(),
    async stop() {
      await Promise.all([...nodes.values()].map((node) => node.kill()));
      stopDns?.();
      await controlPlane?.stop();
      slot.release();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** All nodes are ready, and the account that pods of the namespace `default` need is there. */
async function untilReady(controlPlane: ControlPlane, directory: string, count: number): Promise<void> {
  const isReady = async (): Promise<boolean> => {
    const account = await controlPlane.get('/api/v1/namespaces/default/serviceaccounts/default');
    const nodes = await controlPlane.get('/api/v1/nodes');
    const ready = nodes?.body.match(/"type":"Ready"/g) ?? [];
    const bad =
      nodes?.body.match(/"status":"(False|Unknown)"[^}]*"reason":"(KubeletNotReady|NodeStatusUnknown)"/g) ?? [];
    return account?.status === 200 && ready.length - bad.length === count;
  };
  const log = path.join(directory, `node${count}/kubelet.log`);
  await waitUntil(isReady, { what: `A node of ${count}`, log, seconds: NODE_READY_SECONDS });
}

function fail(message: string): never {
  throw new Error(message);
}

async function answerParent(cluster: Supervised, { id, verb, args }: Request): Promise<void> {
  const call = cluster[verb] as (...given: unknown[]) => unknown;
  const answer = await Promise.resolve(call(...args)).then(
    (result) => ({ id, result }),
    (error: Error) => ({ id, error: error.message }),
  );
  process.send?.(answer, undefined, undefined, () => undefined);
}

export interface Request {
  id: number;
  verb: keyof Supervised;
  args: unknown[];
}

export interface Reply {
  id: number;
  result?: unknown;
  error?: string;
}

async function main(): Promise<void> {
  const cluster = supervise();
  let ending: Promise<void> | null = null;
  const end = (): void => void (ending ??= stopAndExit(cluster));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  if (process.send) {
    process.on('disconnect', end);
    process.on('message', (request: Request) => void answerParent(cluster, request));
    return;
  }
  try {
    const { kubeconfig } = await cluster.start(Number(process.argv[2] ?? 2));
    process.stdout.write(`export KUBECONFIG=${kubeconfig}\n`);
    setInterval(() => undefined, 1 << 30);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 1;
    end();
  }
}

async function stopAndExit(cluster: Supervised): Promise<void> {
  try {
    await cluster.stop();
    process.exit();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(1);
  }
}

if (require.main === module) void main();
