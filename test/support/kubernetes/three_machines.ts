// An installation whose roles are spread over the machines of a cluster: on each are a process of the API, a worker, an
// ingress and a name server. PostgreSQL, the registry, the file store and the receiver of mail are beside it.
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestCluster } from '../../cluster/cluster';
import { clusterNetwork, nodeNetwork } from '../../cluster/network';
import { busyboxLayer } from '../builds/images';
import { makeApplication, type TestApplication } from '../deployments/deploy';
import type { MailReceiver } from '../email/mail_receiver';
import type { GitFiles } from '../git/git_server';
import { call } from '../processes/bad_days_program';
import { endPrograms, startProgram, type Program } from '../processes/program';
import type { Distribution } from '../registries/distribution';
import { hostOfCluster, pushBaseImage } from './cluster_settings';
import type { LoadedInstallation } from './machine_loads';
import { openSurroundings } from './surroundings';

export const MACHINES = [1, 2, 3] as const;
const [API_PORT, INGRESS_PORT, DNS_PORT, REGISTRY_PORT, SMTP_PORT] = [8080, 8000, 5300, 5000, 2525] as const;
const STARTS_MAX = 4;
const ENTRIES = ['server/main.ts', 'server/worker.ts', 'server/ingress.ts', 'server/dns.ts'];

/** Its endpoints are those of all machines, with or without power. */
export interface ThreeMachines extends LoadedInstallation {
  receiver: MailReceiver;
  distribution: Distribution;
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

export async function startThreeMachines(
  cluster: TestCluster,
  more: Record<string, string> = {},
): Promise<ThreeMachines> {
  const host = await hostOfCluster(cluster);
  const network = clusterNetwork(Number(host.split('.')[2]));
  const addressOf = (machine: number): string => nodeNetwork(network, machine).address.replace(/\/.*/, '');
  const root = mkdtempSync(path.join(tmpdir(), 'three-machines-'));
  const roles = new Map<number, Program[]>();
  const powered = (): number[] => [...roles.keys()];
  const apis = (): string[] => powered().map((machine) => `http://${addressOf(machine)}:${API_PORT}`);
  const surroundings = await openSurroundings(cluster, apis);
  const { git, distribution, receiver, sql: query } = surroundings;
  const settings: Record<string, string> = {
    ...{ ...surroundings.settings, LOG_LEVEL: 'info', SHUTDOWN_GRACE_SECONDS: '5' },
    ...{ KUBECONFIG: cluster.kubeconfig, KUBERNETES_INGRESS_ADDRESSES: MACHINES.map(addressOf).join(',') },
    WORKLOADS: 'kubernetes',
    ...{ REGISTRY_PORT: String(REGISTRY_PORT), SMTP_PORTS: String(SMTP_PORT) },
    ...{ DNS_DOMAIN: 'dns.example.net', DNS_IPS: '192.0.2.1,192.0.2.2,192.0.2.3' },
    ...more,
  };

  async function startRoles(machine: number): Promise<void> {
    const node = await cluster.processOfNode(machine);
    const programs: Program[] = [];
    roles.set(machine, programs);
    // As a supervisor does, for a start during which the database does not answer in time.
    const startSupervised = async (entry: string, starts = 1): Promise<void> => {
      const program = startProgram({ ...settings, ...settingsOf(entry, machine) }, { entry, node });
      programs.push(program);
      await program.ready().catch((error: unknown) => {
        if (starts === STARTS_MAX) throw error;
        return startSupervised(entry, starts + 1);
      });
    };
    await Promise.all(ENTRIES.map((entry) => startSupervised(entry)));
  }
  const settingsOf = (entry: string, machine: number): Record<string, string> => {
    const address = addressOf(machine);
    return {
      ...{ PLATFORM_DATA_DIR: path.join(root, `${machine}`, path.basename(entry, '.ts')), HOST: address },
      ...(entry.endsWith('main.ts') && { WORKER: 'separate', PORT: String(API_PORT), DNS_PORT: '5302' }),
      ...(entry.endsWith('worker.ts') && { REGISTRY_LISTEN: address, SMTP_LISTEN: address, DNS_PORT: '5301' }),
      ...(entry.endsWith('ingress.ts') && { INGRESS_PORT: String(INGRESS_PORT), INGRESS_LISTEN: address }),
      ...(entry.endsWith('dns.ts') && { DNS_PORT: String(DNS_PORT), DNS_LISTEN: address }),
    };
  };

  const at = (port: number): string[] => MACHINES.map((machine) => `${addressOf(machine)}:${port}`);
  const self: ThreeMachines = {
    ...{ git, receiver, distribution, sql: query },
    platform: { config: { ingressPort: INGRESS_PORT } },
    endpoints: { api: at(API_PORT), ingress: at(INGRESS_PORT), dns: at(DNS_PORT), smtp: at(SMTP_PORT) },
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
      await surroundings.close();
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
  await surroundings.startDistribution(certificate);
  await Promise.all([2, 3].map(startRoles));
  await pushBaseImage(self, self.access.key, Number(new URL(distribution.url).port), [await busyboxLayer()]);
  return self;
}

/** The worker that has the host, by the name of its machine. */
const HOLDER = `select a.application_name as name from pg_stat_activity a join pg_locks l on l.pid = a.pid
  where l.locktype = 'advisory' and l.granted and a.application_name like 'platform host %'
    and a.datname = current_database()`;
