/** @tier heavy @quarter 2 @covers test/cluster/ */
// The cluster of the tests itself, by kubectl: what later tests build on, and that nothing of it stays.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { startCluster } from '../cluster/cluster';
import { PROGRAM_IMAGE } from '../cluster/image';
import { kubectl, kubectlApply } from '../cluster/kubectl';
import { describeOnTestCluster } from '../cluster/on_cluster';
import { waitForCluster } from '../support/kubernetes/wait_for_cluster';

/** Two pods on different nodes; they leave a node soon after it is known to be gone. */
const web = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        tolerations: ['not-ready', 'unreachable'].map((name) => ({
          key: `node.kubernetes.io/${name}`,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 1,
        })),
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'kubernetes.io/hostname',
            whenUnsatisfiable: 'ScheduleAnyway',
            labelSelector: { matchLabels: { app: 'web' } },
          },
        ],
        containers: [
          {
            name: 'web',
            image: PROGRAM_IMAGE,
            args: ['print=started', 'serve=8080'],
            readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
          },
        ],
      },
    },
  },
};
const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web' },
  spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
};

describeOnTestCluster('the cluster', (cluster) => {
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  const pods = async (): Promise<{ name: string; node: string; address: string; ready: boolean }[]> =>
    (await run('get', 'pods', '-l', 'app=web', '-o', 'go-template', '--template', PODS))
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' '))
      .map(([name = '', node = '', address = '', ready]) => ({ name, node, address, ready: ready === 'True' }));

  test('runs pods on both nodes, and they answer the host and each other', async () => {
    await kubectlApply(cluster().kubeconfig, web, service);
    await run('rollout', 'status', 'deployment/web', '--timeout=60s');
    const both = await pods();
    expect(new Set(both.map(({ node }) => node)).size).toBe(2);
    for (const { name, address } of both) {
      expect(await (await fetch(`http://${address}:8080/here`)).text()).toBe(`${name} /here\n`);
      expect(await run('logs', name)).toContain('GET /here\n');
      expect((await run('exec', name, '--', '/bin/program', 'print=inside')).trim()).toBe('inside');
    }
  });

  test('an API server that was away comes back with all that it had', async () => {
    const before = await run('get', 'deployment', 'web', '-o', 'jsonpath={.metadata.uid}');
    await cluster().stopApiServer();
    await expect(run('get', 'deployment', 'web')).rejects.toThrow(/refused/);
    await cluster().startApiServer();
    expect(await run('get', 'deployment', 'web', '-o', 'jsonpath={.metadata.uid}')).toBe(before);
  });

  test('an API server that hangs answers nothing until it goes on', async () => {
    await cluster().freezeApiServer();
    await expect(run('get', 'nodes', '--request-timeout=2s')).rejects.toThrow(/[Tt]imeout|deadline/);
    await cluster().thawApiServer();
    expect(await run('get', 'nodes')).toContain('node1');
  });

  test('pods of a node that is killed become ready on the other one', async () => {
    await cluster().killNode(2);
    await waitForCluster('both pods on node1', async () => {
      const ready = (await pods()).filter((pod) => pod.ready && pod.node === 'node1');
      return ready.length === 2;
    });
    await cluster().startNode(2);
    await run('wait', 'node/node2', '--for=condition=Ready', '--timeout=60s');
  }, 150_000);
});

describeOnTestCluster('of a cluster nothing stays', (other) => {
  // Beside another one, which must not notice.
  const traces = (slot: number, directory: string): string[] => {
    const processes = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(directory));
    return [
      ...processes.map((pid) => `${pid} ${commandOf(pid)}`),
      ...[directory, `/sys/class/net/ktest${slot}`, `/run/platform-api-test-clusters/${slot}`].filter(existsSync),
      ...readFileSync('/proc/mounts', 'utf8')
        .split('\n')
        .filter((line) => line.includes(directory)),
      ...spawnSync('find', ['/sys/fs/cgroup', '-path', `*platform-api-test-${slot}/*`, '-type', 'd'])
        .stdout.toString()
        .split('\n')
        .filter(Boolean),
    ];
  };
  const slotOf = (directory: string): number =>
    Number(/10\.123\.(\d)\.1/.exec(readFileSync(path.join(directory, 'kubeconfig'), 'utf8'))?.[1]);

  test('after it was stopped', async () => {
    const cluster = await startCluster(1);
    const slot = slotOf(cluster.directory);
    await kubectl(cluster.kubeconfig, 'run', 'pod', `--image=${PROGRAM_IMAGE}`, '--', 'pause');
    await kubectl(cluster.kubeconfig, 'wait', 'pod/pod', '--for=condition=Ready', '--timeout=60s');
    expect(traces(slot, cluster.directory).length).toBeGreaterThan(10);
    await cluster.stop();
    expect(traces(slot, cluster.directory)).toEqual([]);
    expect(await kubectl(other().kubeconfig, 'get', 'nodes')).toContain('node2');
  }, 120_000);

  test('after the process that started it was killed', async () => {
    const starts = `require('./test/cluster/cluster').startCluster(1).then(({ directory }) => console.log(directory))`;
    const runner = ['--require', './test/support/runner/typescript.js', '-e', starts];
    const child = spawn(process.execPath, runner, { cwd: path.join(__dirname, '../..') });
    const directory = await new Promise<string>((resolve) =>
      child.stdout.once('data', (out) => resolve(String(out).trim())),
    );
    const slot = slotOf(directory);
    child.kill('SIGKILL');
    await waitForCluster('nothing left', () => traces(slot, directory).length === 0);
  }, 120_000);
});

const PODS =
  '{{range .items}}{{.metadata.name}} {{.spec.nodeName}} {{.status.podIP}} ' +
  '{{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{"\\n"}}{{end}}';

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}
