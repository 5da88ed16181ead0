// A real Kubernetes cluster for a test file: etcd, the control plane and nodes on this machine, without a container
// engine. CONTRIBUTING.md says what it needs.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Reply, Request, Supervised } from './supervisor';

export interface TestCluster {
  /** Path of the file. */
  kubeconfig: string;
  /** Logs of all parts are below it. */
  directory: string;
  /** As a power cut would: all that runs on the node ends at once, and its network is gone. @param number from 1 */
  killNode(number: number): Promise<void>;
  /** The node has power again. */
  startNode(number: number): Promise<void>;
  /** Process id of its first process: for programs that run on the node (nsenter), and end with it. */
  processOfNode(number: number): Promise<number>;
  /** Connections break off, and new ones are refused. */
  stopApiServer(): Promise<void>;
  /** Resolves once the API server is ready. */
  startApiServer(): Promise<void>;
  /** Connections stay open, and nothing answers. */
  freezeApiServer(): Promise<void>;
  thawApiServer(): Promise<void>;
  /** Ends all of it: processes, namespaces, mounts, control groups, files. */
  stop(): Promise<void>;
}

/** What is known of one that runs already. */
export type ClusterOfMachine = Pick<TestCluster, 'kubeconfig' | 'directory'>;

export const TEST_CLUSTER_NODES = 2;

/** Resolves once all nodes are ready. Builds the programs where that has not been done: a quarter of an hour. */
export async function startCluster(nodes = TEST_CLUSTER_NODES): Promise<TestCluster> {
  const child = fork(path.join(__dirname, 'supervisor.ts'), [], {
    execArgv: ['--require', path.join(__dirname, '../support/runner/typescript.js')],
  });
  const call = callsOf(child);
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    if (child.connected) child.disconnect();
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0) throw new Error('The supervisor of the cluster could not put everything back.');
  };
  try {
    const { kubeconfig, directory } = await call('start', nodes);
    return {
      ...{ kubeconfig, directory, stop },
      killNode: (number) => call('killNode', number),
      startNode: (number) => call('startNode', number),
      processOfNode: async (number) => call('processOfNode', number),
      stopApiServer: () => call('stopApiServer'),
      startApiServer: () => call('startApiServer'),
      freezeApiServer: async () => call('freezeApiServer'),
      thawApiServer: async () => call('thawApiServer'),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

type Call = <Verb extends keyof Supervised>(
  verb: Verb,
  ...args: Parameters<Supervised[Verb]>
) => Promise<Awaited<ReturnType<Supervised[Verb]>>>;

/** Calls of a supervisor, which answers each by its number. */
function callsOf(child: ChildProcess): Call {
  const waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  let count = 0;
  child.on('message', ({ id, result, error }: Reply) => {
    const call = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) call?.resolve(result);
    else call?.reject(new Error(error));
  });
  child.once('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('The supervisor of the cluster has ended.'));
    waiting.clear();
  });
  return (verb, ...args) =>
    new Promise((resolve, reject) => {
      if (!child.connected) return reject(new Error('The supervisor of the cluster has ended.'));
      const request: Request = { id: (count += 1), verb, args };
      waiting.set(request.id, { resolve: resolve as (result: unknown) => void, reject });
      child.send(request);
    });
}
