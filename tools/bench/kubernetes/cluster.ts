// The cluster that is measured: that of KUBECONFIG where it is one of test/cluster, else one that starts for it.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { LABEL } from '../../../drivers/workload/kubernetes/names';
import { tarOf } from '../../../test/support/builds/images';

export interface BenchCluster {
  kubeconfig: string;
  directory: string;
  /** Nobody else uses it. */
  isOwn: boolean;
  stop(): Promise<void>;
}

const SUPERVISOR = ['--require', './test/support/runner/typescript.js', 'test/cluster/supervisor.ts'];

/** @throws Error where KUBECONFIG is another cluster: its nodes cannot be told where the images are */
export async function openCluster(): Promise<BenchCluster> {
  const given = process.env.KUBECONFIG;
  if (given === undefined) return startCluster();
  const directory = path.dirname(given);
  if (!existsSync(path.join(directory, 'images.tar'))) throw new Error('KUBECONFIG is not that of a test cluster.');
  return { kubeconfig: given, directory, isOwn: false, stop: () => Promise.resolve() };
}

async function startCluster(): Promise<BenchCluster> {
  const child = spawn(process.execPath, SUPERVISOR, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const started = once(child.stdout, 'data').then(([line]) => String(line));
  const line = await Promise.race([started, ended.then(() => Promise.reject(new Error('The cluster has ended.')))]);
  const kubeconfig = line.trim().replace('export KUBECONFIG=', '');
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  return { kubeconfig, directory: path.dirname(kubeconfig), isOwn: true, stop };
}

const OF_WORKLOADS =
  /^apiserver_request_total\{.*resource="(?:deployments|secrets|networkpolicies|poddisruptionbudgets|namespaces)"/;
/** Controllers of the cluster watch, and update. */
const BY_US = /verb="(?:GET|LIST|APPLY)"/;

/** Requests for objects of workloads that the API server has answered since its start. */
export async function answeredRequests({ kubeconfig }: BenchCluster): Promise<number> {
  const args = ['--kubeconfig', kubeconfig, 'get', '--raw', '/metrics'];
  const { stdout } = await promisify(execFile)('kubectl', args, { maxBuffer: 1 << 28 });
  const lines = stdout.split('\n').filter((line) => OF_WORKLOADS.test(line) && BY_US.test(line));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

/** All that a service with this prefix has left there. */
export async function removeNamespaces({ kubeconfig, isOwn }: BenchCluster, prefix: string): Promise<void> {
  if (isOwn) return;
  const selector = `${LABEL.installation}=${prefix}`;
  await promisify(execFile)('kubectl', ['--kubeconfig', kubeconfig, 'delete', 'namespaces', '-l', selector]);
}

/** The C library of this machine and what its Node.js needs, for a base image without a distribution. */
export function nodeLibraries(): Promise<Buffer> {
  const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' })
    .split('\n')
    .flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  return tarOf(libraries.map((file) => ({ name: file.slice(1), mode: 0o755, content: readFileSync(file) })));
}
