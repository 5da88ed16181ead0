/** @tier heavy @quarter 4 @covers jobs/deployments server/start_worker.ts server/start_dns.ts engines/ingress */
// Three machines with all roles on each: the power of one after the other is cut under everything at once, then that
// of two.
import { Resolver } from 'node:dns/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { kubectl } from '../cluster/kubectl';
import type { TestCluster } from '../cluster/cluster';
import { describeOnTestCluster } from '../cluster/on_cluster';
import { buildOperator } from '../cluster/operator';
import { removeDisks } from '../support/kubernetes/database_image';
import type { TestApplication } from '../support/deployments/deploy';
import { openFurtherLoads, prepareEngines, type FurtherLoads } from '../support/kubernetes/further_loads';
import { longestGap, startMachineLoads, type Done, type MachineLoads } from '../support/kubernetes/machine_loads';
import { MACHINES, startThreeMachines, type ThreeMachines } from '../support/kubernetes/three_machines';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 240_000;
/** A minute of what a machine that is away costs, and a schedule that is due in it. */
const AWAY_MS = 60_000;
const FILES = { Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n', 'site/index.html': 'version 0' };

const BUILD_MS = 30 * 60_000;
const storageClass = `machines-${process.pid}`;

interface Line {
  machines: string;
  hadHost: boolean;
  takenOverS: number;
  requests: number;
  repeated: number;
  lost: number;
  apiGapS: number;
  writes: number;
  writesLost: number;
  dnsGapS: number;
  mails: number;
  mailsRefused: number;
  deployments: number;
  deploymentsFailed: number;
  slowestDeploymentS: number;
  /** Of CDN, pulls and databases: how many succeeded and failed, and the longest time without a success. */
  further: Record<string, string>;
}

const theTest = (cluster: () => TestCluster): void => {
  let machines: ThreeMachines;
  let application: TestApplication;
  let loads: MachineLoads & { zone: string };
  let further: FurtherLoads;
  let version = 0;

  beforeAll(async () => {
    await buildOperator();
    machines = await startThreeMachines(cluster(), await prepareEngines(cluster(), storageClass));
    application = await machines.application(FILES);
    const { status, status_reason } = await application.ended((await application.ask()).id, WITHIN_MS);
    expect([status, status_reason]).toEqual(['active', null]);
    const [web] = (await application.get('/processes')).data as { id: string }[];
    await application.post(`/processes/${web?.id}/scale`, { instances: 3 });
    await waitFor('three instances', async () => (await running()) === 3, WITHIN_MS);
    const body = { name: 'every-minute', cron: '* * * * *', command: 'echo fired' };
    expect((await machines.call('POST', `/v2/applications/${application.id}/schedules`, { body })).status).toBe(201);
    further = await openFurtherLoads(cluster(), machines);
    await further.settled();
  }, BUILD_MS);
  afterAll(async () => {
    await loads?.stop();
    further?.close();
    await machines?.close();
    await removeDisks(cluster(), storageClass);
  }, 240_000);

  const running = async (): Promise<number> =>
    (await application.get('/instances?limit=100')).data.filter(
      ({ status }: { status: string }) => status === 'running',
    ).length;

  test('nobody loses what may be repeated, and all that was acknowledged is there', async () => {
    const push = (): void =>
      void machines.git.commit(application.name, { 'site/index.html': `version ${(version += 1)}` });
    loads = await startMachineLoads(machines, application, push, further.loads);
    await sleep(10_000);
    const lines: Line[] = [];
    const first = await machines.holder();
    for (const machine of [first, ...MACHINES.filter((one) => one !== first)]) lines.push(await lose([machine]));
    const holder = await machines.holder();
    lines.push(await lose([holder, (holder % MACHINES.length) + 1]));
    await loads.stop();
    const failures = [...loads.visits, ...loads.writes, ...loads.mails].flatMap(({ value, reason }) =>
      value === null ? (reason ?? []) : [],
    );
    process.stdout.write(
      failures
        .slice(0, 20)
        .map((reason) => `${reason}\n`)
        .join(''),
    );
    expect(
      lines.map(({ lost, writesLost, mailsRefused, deploymentsFailed }) => [
        lost,
        writesLost,
        mailsRefused,
        deploymentsFailed,
      ]),
    ).toEqual(lines.map(() => [0, 0, 0, 0]));
    for (const { name, rows } of further.databases) {
      const there = await rows();
      expect([name, succeeded(loads.further[name]).filter((number) => !there.has(number))]).toEqual([name, []]);
    }
    await allNamesAreServed(loads.writes.flatMap(({ value }) => value ?? []));
    await eachMinuteFiredOnce();
    const arrived = (): Set<string> => new Set(machines.receiver.mails.map(({ to }) => to));
    const missing = (): string[] => loads.mails.flatMap(({ value }) => (value && !arrived().has(value) ? [value] : []));
    await waitFor('all mail that was accepted', () => Promise.resolve(missing().length === 0), WITHIN_MS);
  }, 2_400_000);

  async function lose(lost: readonly number[]): Promise<Line> {
    const hadHost = lost.includes(await machines.holder());
    const begun = Object.fromEntries(Object.entries(loads.further).map(([name, all]) => [name, all.length]));
    const counted = { visits: 0, writes: 0, mails: 0, deployments: 0 };
    for (const name of ['visits', 'writes', 'mails', 'deployments'] as const) counted[name] = loads[name].length;
    const at = performance.now();
    // From the side of the tests, databases are reached by a machine that stays.
    further.ways.leadBy(MACHINES.find((one) => !lost.includes(one)) ?? 1);
    await Promise.all(lost.map((machine) => machines.kill(machine)));
    const taken = await waitFor(
      'another host',
      async () => ![0, ...lost].includes(await machines.holder()) && performance.now(),
      WITHIN_MS,
    );
    await sleep(AWAY_MS - (performance.now() - at));
    for (const machine of lost) await machines.start(machine);
    for (const machine of lost) await waitFor('a ready node', () => isReady(machine), WITHIN_MS);
    await further.settled();
    await sleep(5_000);
    const [visits, writes] = [loads.visits.slice(counted.visits), loads.writes.slice(counted.writes)];
    const deployments = loads.deployments.slice(counted.deployments);
    const mails = loads.mails.slice(counted.mails);
    const seconds = (ms: number): number => Math.round(ms / 100) / 10;
    const line = {
      ...{ machines: lost.join(' and '), hadHost, takenOverS: seconds(taken - at), requests: visits.length },
      repeated: visits.filter(({ repeated, value }) => repeated > 0 && value !== null).length,
      lost: visits.filter(({ value }) => value === null).length,
      apiGapS: seconds(Math.max(longestGap(loads.writes, at), longestGap(loads.reads, at))),
      ...{ writes: writes.length, writesLost: writes.filter(({ value }) => value === null).length },
      dnsGapS: seconds(longestGap(loads.queries, at)),
      ...{ mails: mails.length, mailsRefused: mails.filter(({ value }) => value === null).length },
      deployments: deployments.length,
      deploymentsFailed: deployments.filter(({ value }) => value === 'failed').length,
      slowestDeploymentS: seconds(Math.max(0, ...deployments.map(({ ms }) => ms))),
      further: Object.fromEntries(
        Object.entries(loads.further).map(([name, all]) => {
          const those = all.slice(begun[name]);
          const failed = those.length - succeeded(those).length;
          const gap = seconds(longestGap(all, at));
          return [name, `${succeeded(those).length} done, ${failed} failed, gap ${gap} s`];
        }),
      ),
    };
    process.stdout.write(`${JSON.stringify(line)}\n`);
    return line;
  }

  async function isReady(machine: number): Promise<boolean> {
    const path = '{.status.conditions[?(@.type=="Ready")].status}';
    const args = ['get', 'node', `node${machine}`, '-o', `jsonpath=${path}`];
    return (await kubectl(cluster().kubeconfig, ...args)).trim() === 'True';
  }

  async function allNamesAreServed(names: string[]): Promise<void> {
    for (const address of machines.endpoints.dns) {
      const resolver = new Resolver({ timeout: 2_000, tries: 3 });
      resolver.setServers([address]);
      const missing = async (): Promise<string[]> => {
        const asked = names.map((name) =>
          resolver.resolveTxt(`${name}.ledger.example.com`).then(
            () => null,
            () => name,
          ),
        );
        return (await Promise.all(asked)).flatMap((one) => one ?? []);
      };
      await waitFor(`all names at ${address}`, async () => (await missing()).length === 0);
    }
  }

  /** No minute between the first and the last is missing, and none is there twice. */
  async function eachMinuteFiredOnce(): Promise<void> {
    const rows = await machines.sql<{ minute: number; outcome: string }>(
      `select (extract(epoch from due_at) / 60)::int as minute, outcome from schedule_firings order by due_at`,
    );
    const [from = 0] = rows.map(({ minute }) => minute);
    expect(rows.map(({ minute }) => minute)).toEqual(rows.map((_, index) => from + index));
    expect(rows.length).toBeGreaterThan(2);
    process.stdout.write(`${rows.map(({ outcome }) => outcome).join(' ')}\n`);
  }
};

const succeeded = (all: readonly Done[] = []): string[] => all.flatMap(({ value }) => value ?? []);

describeOnTestCluster('three machines', theTest, MACHINES.length);
