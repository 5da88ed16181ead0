// The control plane: etcd, API server, controllers and scheduler, on the address that the host has on the bridge.
import type { ChildProcess } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import path from 'node:path';
import { makeAuthority, type Leaf } from '../support/databases/authority';
import type { ClusterPrograms } from './build';
import type { ClusterNetwork } from './network';
import { killProcess, startProcess, waitUntil } from './processes';

export interface ControlPlane {
  /** Of an administrator, with a client certificate. */
  kubeconfig: string;
  /** GET as the administrator; null where no answer comes. */
  get(path: string): Promise<{ status: number; body: string } | null>;
  /** Killed, as by the kernel: connections break off, and new ones are refused. */
  stopApiServer(): Promise<void>;
  startApiServer(): Promise<void>;
  /** Stopped by SIGSTOP: connections stay open, and nothing answers. */
  freezeApiServer(): void;
  thawApiServer(): void;
  stop(): Promise<void>;
}

interface Parts {
  directory: string;
  network: ClusterNetwork;
  programs: ClusterPrograms;
}

const READY_SECONDS = 120;

export async function startControlPlane(parts: Parts): Promise<ControlPlane> {
  const { directory, network } = parts;
  const files = await writeKeys(directory, network);
  const logOf = (name: string): string => path.join(directory, `${name}.log`);
  const start = (name: string, command: readonly [string, ...string[]]): ChildProcess =>
    startProcess(logOf(name), command);
  const etcd = start('etcd', etcdCommand(parts));
  let apiServer = start('apiserver', apiServerCommand(parts));
  const get = (url: string): ReturnType<ControlPlane['get']> => getJson(network, files, url);
  const isReady = (): Promise<void> =>
    waitUntil(async () => (await get('/readyz'))?.status === 200, {
      ...{ what: 'The API server', log: logOf('apiserver'), child: apiServer, seconds: READY_SECONDS },
    });
  await isReady();
  const others = [start('controllers', controllersCommand(parts)), start('scheduler', schedulerCommand(parts))];
  return {
    kubeconfig: files.kubeconfig,
    get,
    stopApiServer: () => killProcess(apiServer),
    async startApiServer() {
      apiServer = start('apiserver', apiServerCommand(parts));
      await isReady();
    },
    freezeApiServer: () => void apiServer.kill('SIGSTOP'),
    thawApiServer: () => void apiServer.kill('SIGCONT'),
    async stop() {
      await Promise.all([...others, apiServer, etcd].map((child) => killProcess(child)));
    },
  };
}

function etcdCommand({ directory, network }: Parts): [string, ...string[]] {
  const [client, peer] = network.etcdPorts.map((port) => `http://127.0.0.1:${port}`);
  return [
    ...(['etcd', '--data-dir', path.join(directory, 'etcd'), '--unsafe-no-fsync'] as const),
    ...['--listen-client-urls', client!, '--advertise-client-urls', client!],
    ...['--listen-peer-urls', peer!, '--initial-advertise-peer-urls', peer!, '--initial-cluster', `default=${peer}`],
  ];
}

function apiServerCommand({ directory, network, programs }: Parts): [string, ...string[]] {
  const file = (name: string): string => path.join(directory, name);
  const flags = {
    'etcd-servers': `http://127.0.0.1:${network.etcdPorts[0]}`,
    'secure-port': network.apiPort,
    'bind-address': network.host,
    'advertise-address': network.host,
    'client-ca-file': file('ca.crt'),
    'tls-cert-file': file('apiserver.crt'),
    'tls-private-key-file': file('apiserver.key'),
    'token-auth-file': file('tokens.csv'),
    'authorization-mode': 'Node,RBAC',
    'service-account-key-file': file('accounts.key'),
    'service-account-signing-key-file': file('accounts.key'),
    'service-account-issuer': 'https://kubernetes.default.svc',
    'service-cluster-ip-range': network.services,
    // Names of nodes are in no name server: logs and exec would not find them.
    'kubelet-preferred-address-types': 'InternalIP',
    // It is no node, so addresses of Services, as those of webhooks, lead nowhere from here.
    'enable-aggregator-routing': true,
    'allow-privileged': true,
  };
  return [programs.kubernetes, 'kube-apiserver', ...flagsOf(flags)];
}

function controllersCommand({ directory, network, programs }: Parts): [string, ...string[]] {
  const flags = {
    kubeconfig: path.join(directory, 'kubeconfig'),
    'service-account-private-key-file': path.join(directory, 'accounts.key'),
    'root-ca-file': path.join(directory, 'ca.crt'),
    'cluster-cidr': network.pods,
    'node-monitor-grace-period': '20s',
    'leader-elect': false,
    'secure-port': 0,
  };
  return [programs.kubernetes, 'kube-controller-manager', ...flagsOf(flags)];
}

function schedulerCommand({ directory, programs }: Parts): [string, ...string[]] {
  const flags = { kubeconfig: path.join(directory, 'kubeconfig'), 'leader-elect': false, 'secure-port': 0 };
  return [programs.kubernetes, 'kube-scheduler', ...flagsOf(flags)];
}

const flagsOf = (flags: Record<string, string | number | boolean>): string[] =>
  Object.entries(flags).map(([name, value]) => `--${name}=${value}`);

interface KeyFiles extends Leaf {
  kubeconfig: string;
  ca: string;
}

/** A token of `tokens.csv` is one of a user without rights, for tests. */
async function writeKeys(directory: string, network: ClusterNetwork): Promise<KeyFiles> {
  if (!existsSync(directory)) mkdirSync(directory, { recursive: true, mode: 0o700 });
  const authority = await makeAuthority();
  const names = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', network.host, network.kubernetesService];
  const server = await authority.issue(names);
  const admin = await authority.issue(['admin'], undefined, 'CN=admin, O=system:masters');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const write = (name: string, content: string): string => {
    writeFileSync(path.join(directory, name), content, { mode: 0o600 });
    return path.join(directory, name);
  };
  write('ca.crt', authority.pem);
  write('apiserver.crt', server.cert);
  write('apiserver.key', server.key);
  write('accounts.key', privateKey.export({ type: 'sec1', format: 'pem' }).toString());
  write('tokens.csv', `${STRANGER_TOKEN},stranger,1\n`);
  const kubeconfig = write('kubeconfig', kubeconfigOf(network, authority.pem, admin));
  return { kubeconfig, ca: authority.pem, ...admin };
}

/** Of the user `stranger`, who has no rights. */
const STRANGER_TOKEN = 'a-token-of-a-stranger';

function kubeconfigOf(network: ClusterNetwork, ca: string, { cert, key }: Leaf): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'test',
        cluster: { server: `https://${network.host}:${network.apiPort}`, 'certificate-authority-data': base64(ca) },
      },
    ],
    users: [{ name: 'admin', user: { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    'current-context': 'test',
  });
}

function getJson(
  { host, apiPort: port }: ClusterNetwork,
  { ca, cert, key }: KeyFiles,
  url: string,
): ReturnType<ControlPlane['get']> {
  return new Promise((resolve) => {
    const sent = request({ host, port, path: url, ca, cert, key, timeout: 5000, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      response.on('close', () => resolve(response.complete ? { status: response.statusCode ?? 0, body } : null));
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer')));
    sent.on('error', () => resolve(null));
    sent.end();
  });
}
