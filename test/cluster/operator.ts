// CloudNativePG in a cluster of tests: the operator is built once from its Go module, and kept in a cache of this user.
// As a program it builds it ahead of tests.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { tarOf } from '../support/builds/images';
import { importLayers } from '../support/kubernetes/database_image';
import { GO_BUILD } from './build';
import type { ClusterOfMachine } from './cluster';
import { kubectl } from './kubectl';

export const OPERATOR_NAMESPACE = 'cnpg-system';

const MODULE = 'github.com/cloudnative-pg/cloudnative-pg';
const SOURCES = path.join(__dirname, 'operator');
const CACHE = path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'platform-api/test-operator');
const IMAGE = 'test.local/cloudnative-pg:1';
const DEPLOYMENT = 'deployment/cnpg-controller-manager';
const READY_SECONDS = 120;

interface OperatorFiles {
  /** Static. */
  manager: string;
  manifest: string;
}

/** Builds it where that has not been done: five minutes of processor time. @throws Error with the output of Go */
export async function buildOperator(): Promise<OperatorFiles> {
  const digest = createHash('sha256')
    .update(readFileSync(path.join(SOURCES, 'go.mod')))
    .digest('hex');
  const directory = path.join(CACHE, digest.slice(0, 16));
  const files = { manager: path.join(directory, 'manager'), manifest: path.join(directory, 'manifest.yaml') };
  if (existsSync(files.manifest)) return files;
  mkdirSync(directory, { recursive: true });
  const options = { cwd: SOURCES, env: { ...process.env, ...GO_BUILD.env, CGO_ENABLED: '0' }, maxBuffer: 1 << 26 };
  const run = promisify(execFile);
  const build = ['go', 'build', ...GO_BUILD.flags, '-ldflags', '-s -w', '-o', files.manager, `${MODULE}/cmd/manager`];
  await run('flock', [`${files.manager}.lock`, 'nice', '-n', '10', ...build], options);
  const { stdout } = await run('go', ['list', '-m', '-f', '{{.Dir}} {{.Version}}', MODULE], options);
  const [source = '', version = ''] = stdout.trim().split(' ');
  const released = readFileSync(path.join(source, 'releases', `cnpg-${version.slice(1)}.yaml`), 'utf8');
  writeFileSync(files.manifest, released);
  return files;
}

/** Installed as docs/KUBERNETES.md says, from an image of these nodes. Resolves once it is ready. */
export async function installOperator(cluster: ClusterOfMachine): Promise<void> {
  const { manager, manifest } = await buildOperator();
  const layer = await tarOf([
    { name: 'tmp/', type: 'directory', mode: 0o1777 },
    { name: 'operator/manager_amd64', mode: 0o755, content: readFileSync(manager) },
    { name: 'manager', type: 'symlink', linkname: 'operator/manager_amd64' },
  ]);
  await importLayers(cluster, IMAGE, { layers: [layer] });
  const file = path.join(cluster.directory, 'operator.yaml');
  const text = readFileSync(manifest, 'utf8')
    .replaceAll(/ghcr\.io\/cloudnative-pg\/cloudnative-pg:[\d.]+/g, IMAGE)
    .replaceAll('imagePullPolicy: Always', 'imagePullPolicy: Never');
  writeFileSync(file, text);
  const run = (...args: string[]): Promise<string> => kubectl(cluster.kubeconfig, ...args);
  await run('apply', '--server-side', '-f', file);
  await run('-n', OPERATOR_NAMESPACE, 'patch', DEPLOYMENT, '-p', JSON.stringify(OF_TWO));
  await run('-n', OPERATOR_NAMESPACE, 'rollout', 'status', DEPLOYMENT, `--timeout=${READY_SECONDS}s`);
}

/** One of them is always on a machine that was not lost. */
const OF_TWO = {
  spec: {
    replicas: 2,
    template: {
      spec: {
        tolerations: ['not-ready', 'unreachable'].map((taint) => ({
          ...{ key: `node.kubernetes.io/${taint}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 },
        })),
        topologySpreadConstraints: [
          {
            ...{ maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' },
            labelSelector: { matchLabels: { 'app.kubernetes.io/name': 'cloudnative-pg' } },
          },
        ],
      },
    },
  },
};

if (require.main === module)
  buildOperator().catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });

if (require.main === module)
  buildOperator().catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
