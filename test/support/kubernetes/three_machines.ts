// An installation whose roles are spread over the machines of a cluster: on each are a process of the API, a worker, an
// ingress and a name server. PostgreSQL, the registry, the file store and the receiver of mail are beside it.
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { TestCluster } from '../../cluster/cluster';
import { clusterNetwork, nodeNetwork } from '../../cluster/network';
import { busyboxLayer } from '../builds/images';
import { createTestDatabase } from '../databases/database';
import { makeApplication, type TestApplication, type Workplace } from '../deployments/deploy';
import { startMailReceiver, type MailReceiver } from '../email/mail_receiver';
import { startGitServer, type GitFiles } from '../git/git_server';
import { openFileStoreTrial } from '../object_storage/file_store';
import { call } from '../processes/bad_days_program';
import { freePort } from '../processes/free_port';
import { endPrograms, startProgram, type Program } from '../processes/program';
import { openRelay, type Relay } from '../processes/relay';
import { openDistribution } from '../registries/distribution';
import { hostOfCluster, pushBaseImage, trustRegistry } from './cluster_settings';

export const MACHINES = [1, 2, 3] as const;
const [API_PORT, INGRESS_PORT, DNS_PORT, REGISTRY_PORT, SMTP_PORT] = [8080, 8000, 5300, 5000, 2525];
const ENTRIES = ['server/main.ts', 'server/worker.ts', 'server/ingress.ts', 'server/dns.ts'];

export interface ThreeMachines extends Workplace {
  sql<Row>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Of all machines, with or without power. */
  addresses: readonly string[];
  receiver: MailReceiver;
  access: { key: string; project_id: string };
  application(files: GitFiles, settings?: object): Promise<TestApplication>;
  /** Number of the machine whose worker has the host; 0: none has. */
  holder(): Promise<number>;
  /** The power of a machine is gone, and its network. */
  kill(machine: number): Promise<void>;
  /** It has power again, with empty directories. Resolves when all of its roles answer. */
  start(machine: number): Promise<void>;
  /** What all of its processes have written that may say why. */
  said(machine: number): string;
  close(): Promise<void>;
}

export { API_PORT, DNS_PORT, INGRESS_PORT, SMTP_PORT };

export async function startThreeMachines(
  cluster: TestCluster,
  more: Record<string, string> = {},
): Promise<ThreeMachines> {
  const host = await hostOfCluster(cluster);
  const network = clusterNetwork(Number(host.split('.')[2]));
  const addressOf = (machine: number): string => nodeNetwork(network, machine).address.replace(/\/.*/, '');
  const root = mkdtempSync(path.join(tmpdir(), 'three-machines-'));
  const database = await createTestDatabase();
  const [git, store] = [await startGitServer({ host }), await openFileStoreTrial('embedded')];
  const [distribution, receiver] = [await openDistribution(host), await startMailReceiver({ host })];
  trustRegistry(cluster, distribution.host);
  const roles = new Map<number, Program[]>();
  const powered = (): number[] => [...roles.keys()];
  const apis = (): string[] => powered().map((machine) => `http://${addressOf(machine)}:${API_PORT}`);
  const relays: Relay[] = [];
  const reached = async (targets: () => readonly string[]): Promise<string> => {
    const relay = await openRelay(host, targets);
    relays.push(relay);
    return `${host}:${relay.port}`;
  };
  const url = new URL(database.url);
  const socket = socketOf(url);
  const server = await reached(() => [socket]);
  url.search = '';
  const databaseUrl = Object.assign(url, { host: server }).href;
  const files = await reached(() => [store.faults.url]);
  const tokens = await reached(apis);
  const settings: Record<string, string> = {
    ...{ DATABASE_URL: databaseUrl, LOG_LEVEL: 'info', SHUTDOWN_GRACE_SECONDS: '5' },
    ...{ PLATFORM_SECRET_KEY: randomBytes(32).toString('base64'), WORKLOADS: 'kubernetes' },
    ...{ KUBECONFIG: cluster.kubeconfig, KUBERNETES_INGRESS_ADDRESSES: MACHINES.map(addressOf).join(',') },
    KUBERNETES_NAMESPACE_PREFIX: `test-${process.pid}-${await freePort()}`,
    ...{ ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1' },
    ...{ RATE_LIMIT_READ: '100000', RATE_LIMIT_WRITE: '100000', RATE_LIMIT_DEPLOY: '100000' },
    ...{
      DISTRIBUTION_URL: distribution.url,
      REGISTRY_HOST: distribution.host,
      REGISTRY_URL_FOR_NODES: distribution.url,
    },
    ...{ DISTRIBUTION_EVENTS_KEY: distribution.eventsKey, RELEASE_BASE_IMAGE: `${distribution.host}/bases/busybox:1` },
    ...{ ...store.settings, FILE_STORE_URL: `http://${files}`, SMTP_URL: `smtp://${host}:${receiver.port}` },
    ...{
      REGISTRY_PORT: String(REGISTRY_PORT),
      SMTP_PORTS: String(SMTP_PORT),
      DNS_DOMAIN: 'dns.example.net',
      DNS_IPS: '192.0.2.1,192.0.2.2,192.0.2.3',
    },
    ...more,
  };
  const sql = new pg.Pool({ connectionString: database.url, max: 3 });
  const query = async <Row>(text: string, values?: unknown[]): Promise<Row[]> => (await sql.query(text, values)).rows;

  async function startRoles(machine: number): Promise<void> {
    const [node, address] = [await cluster.processOfNode(machine), addressOf(machine)];
    const programs = ENTRIES.map((entry) => {
      const own = {
        ...{ PLATFORM_DATA_DIR: path.join(root, `${machine}`, path.basename(entry, '.ts')), HOST: address },
        ...(entry.endsWith('main.ts') && { WORKER: 'separate', PORT: String(API_PORT), DNS_PORT: '5302' }),
        ...(entry.endsWith('worker.ts') && { REGISTRY_LISTEN: address, SMTP_LISTEN: address, DNS_PORT: '5301' }),
        ...(entry.endsWith('ingress.ts') && { INGRESS_PORT: String(INGRESS_PORT), INGRESS_LISTEN: address }),
        ...(entry.endsWith('dns.ts') && { DNS_PORT: String(DNS_PORT), DNS_LISTEN: address }),
      };
      return startProgram({ ...settings, ...own }, { entry, node });
    });
    roles.set(machine, programs);
    await Promise.all(programs.map((program) => program.ready()));
  }

  const self: ThreeMachines = {
    ...{ git, receiver, sql: query },
    platform: { config: { ingressPort: INGRESS_PORT } },
    addresses: MACHINES.map(addressOf),
    access: { key: '', project_id: '' },
    call: (method, place, options) => call(apis()[0] as string, self.access, method, place, options),
    application: (files_, wanted = {}) => makeApplication(self, files_, wanted),
    async holder() {
      const [found] = await query<{ name: string }>(HOLDER);
      return Number(/^platform host node(\d) /.exec(found?.name ?? '')?.[1] ?? 0);
    },
    async kill(machine) {
      roles.delete(machine);
      await cluster.killNode(machine);
    },
    async start(machine) {
      rmSync(path.join(root, String(machine)), { recursive: true, force: true });
      await cluster.startNode(machine);
      await startRoles(machine);
    },
    said: (machine) =>
      (roles.get(machine) ?? [])
        .flatMap((program) => program.out().split('\n'))
        .filter((line) => /"level":(40|50|60)/.test(line))
        .join('\n'),
    async close() {
      // `nsenter` ends at once, and what it has started does not.
      for (const machine of powered()) await self.kill(machine);
      await endPrograms();
      for (const relay of relays) relay.close();
      await Promise.all([git.close(), store.close(), distribution.close(), receiver.close(), sql.end()]);
      await database.drop();
      rmSync(root, { recursive: true, force: true });
    },
  };
  await startRoles(1);
  const directory = path.join(root, '1');
  self.access = JSON.parse(
    readFileSync(path.join(directory, 'main/first-key.json'), 'utf8'),
  ) as ThreeMachines['access'];
  const certificate = path.join(root, 'token.crt');
  copyFileSync(path.join(directory, 'worker/registry/token.crt'), certificate);
  await distribution.start({ port: Number(tokens.split(':')[1]), path: '/registry', certificate });
  await Promise.all([2, 3].map(startRoles));
  await pushBaseImage(self, self.access.key, Number(new URL(distribution.url).port), [await busyboxLayer()]);
  return self;
}

/** The worker that has the host, by the name of its machine. */
const HOLDER = `select a.application_name as name from pg_stat_activity a join pg_locks l on l.pid = a.pid
  where l.locktype = 'advisory' and l.granted and a.application_name like 'platform host %'
    and a.datname = current_database()`;

/** The server of the tests listens on a socket. */
function socketOf(url: URL): string {
  return path.join(url.searchParams.get('host') ?? '', `.s.PGSQL.${url.searchParams.get('port') ?? url.port}`);
}
