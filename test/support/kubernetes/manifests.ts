// The control plane on a cluster of tests, installed as docs/KUBERNETES.md says: with the manifests of docs/kubernetes,
// and the image that Dockerfile makes.
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { kubectl } from '../../cluster/kubectl';
import type { ClusterOfMachine } from '../../cluster/cluster';
import { busyboxLayer } from '../builds/images';
import { makeApplication, type TestApplication } from '../deployments/deploy';
import type { GitFiles } from '../git/git_server';
import { call } from '../processes/bad_days_program';
import { buildPlatformImage, openImageBuild, PLATFORM_IMAGE } from '../releases/platform_image';
import { ROOT } from '../runner/repository';
import { pushBaseImage } from './cluster_settings';
import type { LoadedInstallation } from './machine_loads';
import { openServiceWays } from './service_ways';
import { openSurroundings, type Surroundings } from './surroundings';

/** As `kustomization.yaml` names it, so that nothing of it has to be changed. */
export const IMAGE = 'registry.example.com/platform-api:1';
export const NAMESPACE = 'platform-api';
/** In the order in which docs/kubernetes/kustomization.yaml has them, and name servers. */
export const DEPLOYMENTS = ['api', 'worker', 'ingress', 'dns'] as const;

const ROLLED_OUT_WITHIN = '--timeout=240s';
const DATA = '/var/lib/platform-api';
const PORTS = { api: ['api', 80], ingress: ['ingress', 80], dns: ['dns', 53], smtp: ['smtp', 587] } as const;

export interface InstalledOnCluster extends LoadedInstallation {
  surroundings: Surroundings;
  /** kubectl, in the namespace of the control plane. @returns what it printed */
  run(...args: string[]): Promise<string>;
  application(files: GitFiles, settings?: object): Promise<TestApplication>;
  /** Pods of a Deployment that are not ending, by name, with the nodes that they are on. */
  podsOf(deployment: string): Promise<{ name: string; node: string }[]>;
  close(): Promise<void>;
}

/** Builds the image, and imports it on all nodes: two minutes, and 40 s more where there is no release of today. */
export async function importPlatformImage({ directory }: ClusterOfMachine): Promise<void> {
  const home = mkdtempSync(path.join(tmpdir(), 'platform-image-'));
  try {
    const build = openImageBuild(home);
    await buildPlatformImage(build, home);
    const archive = path.join(home, 'platform.tar');
    await build.buildah('push', '--quiet', PLATFORM_IMAGE, `docker-archive:${archive}:${IMAGE}`);
    await importArchive(directory, archive);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

async function importArchive(directory: string, archive: string): Promise<void> {
  for (let node = 1; existsSync(path.join(directory, `node${node}`)); node += 1) {
    const socket = path.join(directory, `node${node}`, 'containerd.sock');
    await promisify(execFile)('ctr', ['--address', socket, '--namespace', 'k8s.io', 'images', 'import', archive]);
  }
}

/** The image is there. Resolves once an application may be deployed. */
export async function installManifests(cluster: ClusterOfMachine): Promise<InstalledOnCluster> {
  const run = (...args: string[]): Promise<string> => kubectl(cluster.kubeconfig, '-n', NAMESPACE, ...args);
  const ways = await openServiceWays(cluster);
  let api = '';
  const surroundings = await openSurroundings(cluster, () => [`http://${api}`]);
  const manifests = mkdtempSync(path.join(tmpdir(), 'manifests-'));
  cpSync(path.join(ROOT, 'docs/kubernetes'), manifests, { recursive: true });
  fillIn(manifests, surroundings.settings);
  await kubectl(cluster.kubeconfig, 'apply', '-k', manifests);
  for (const name of DEPLOYMENTS) await rolledOut(run, name);
  const addressOf = async (service: string): Promise<string> => {
    const address = (await run('get', 'service', service, '-o', 'jsonpath={.spec.clusterIP}')).trim();
    ways.open(address);
    return address;
  };
  const endpoints = Object.fromEntries(
    await Promise.all(
      Object.entries(PORTS).map(async ([role, [name, port]]) => [role, [`${await addressOf(name)}:${port}`]]),
    ),
  ) as unknown as InstalledOnCluster['endpoints'];
  api = endpoints.api[0] as string;
  const first = await filesIn(run, 'api', 'first-key.json');
  const access = JSON.parse(first.find((text) => text.includes('"key"')) ?? '') as LoadedInstallation['access'];
  const certificate = path.join(manifests, 'token.crt');
  const [token = ''] = await filesIn(run, 'worker', 'registry/token.crt');
  writeFileSync(certificate, token);
  await surroundings.startDistribution(certificate);
  const self: InstalledOnCluster = {
    ...{ surroundings, run, endpoints, access, git: surroundings.git, sql: surroundings.sql },
    platform: { config: { ingressPort: 0 } },
    call: (method, place, options) => call(`http://${api}`, access, method, place, options),
    application: (files, settings = {}) => makeApplication(self, files, settings),
    async podsOf(deployment) {
      const columns =
        'jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.metadata.deletionTimestamp}{"\\n"}';
      const lines = (await run('get', 'pods', ...ofRole(deployment), '-o', `${columns}{end}`)).split('\n');
      return lines
        .map((line) => line.split(' '))
        .filter(([name, , endsAt]) => name && !endsAt)
        .map(([name = '', node = '']) => ({ name, node }));
    },
    async close() {
      ways.close();
      await kubectl(cluster.kubeconfig, 'delete', '-k', manifests, '--wait=false');
      rmSync(manifests, { recursive: true, force: true });
      await surroundings.close();
    },
  };
  await pushBaseImage(self, access.key, Number(new URL(surroundings.distribution.url).port), [await busyboxLayer()]);
  return self;
}

export const ofRole = (name: string): string[] => ['-l', `app.kubernetes.io/component=${name}`];

export async function rolledOut(run: InstalledOnCluster['run'], name: string): Promise<void> {
  await run('rollout', 'status', `deployment/${name}`, ROLLED_OUT_WITHIN).catch(async (error: Error) => {
    const pods = await run('describe', 'pods', ...ofRole(name));
    const said = await run('logs', ...ofRole(name), '--tail=20', '--prefix').catch(() => '');
    throw new Error(`${error.message}\n${pods.slice(-4_000)}\n${said}`);
  });
}

/** Values of the examples that are not of this cluster are replaced, and what tests need is added. */
function fillIn(manifests: string, settings: Record<string, string>): void {
  const names = (file: string): string[] =>
    readFileSync(path.join(manifests, file), 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.slice(0, line.indexOf('=')));
  const secrets = names('secrets.env.example');
  const write = (file: string, wanted: (name: string) => boolean): void => {
    const example = readFileSync(path.join(manifests, `${file}.example`), 'utf8');
    const given = Object.entries(settings).filter(([name]) => wanted(name));
    const rest = example.split('\n').filter((line) => line && !(line.slice(0, line.indexOf('=')) in settings));
    writeFileSync(
      path.join(manifests, file),
      [...rest, ...given.map(([name, value]) => `${name}=${value}`), ''].join('\n'),
    );
  };
  write('secrets.env', (name) => secrets.includes(name));
  write('settings.env', (name) => !secrets.includes(name));
  const kustomization = path.join(manifests, 'kustomization.yaml');
  writeFileSync(kustomization, readFileSync(kustomization, 'utf8').replace('# - dns.yaml', '- dns.yaml'));
}

/** Of each pod of a role. */
async function filesIn(run: InstalledOnCluster['run'], role: string, file: string): Promise<string[]> {
  const pods = (await run('get', 'pods', ...ofRole(role), '-o', 'name')).split('\n').filter(Boolean);
  return Promise.all(pods.map((pod) => run('exec', pod, '--', 'cat', `${DATA}/${file}`)));
}

/** Least that was available of each Deployment while `work` was under way. */
export async function leastAvailable(
  { run }: Pick<InstalledOnCluster, 'run'>,
  work: () => Promise<unknown>,
): Promise<Record<string, number>> {
  const least: Record<string, number> = {};
  let isDone = false;
  const watching = (async () => {
    while (!isDone) {
      const lines = 'jsonpath={range .items[*]}{.metadata.name} {.status.availableReplicas}{"\\n"}{end}';
      for (const line of (await run('get', 'deployments', '-o', lines)).split('\n').filter(Boolean)) {
        const [name = '', count] = line.split(' ');
        least[name] = Math.min(least[name] ?? Infinity, Number(count || 0));
      }
      await sleep(500);
    }
  })();
  try {
    await work();
  } finally {
    isDone = true;
    await watching;
  }
  return least;
}
