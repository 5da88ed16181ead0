/** @tier heavy @quarter 4 @covers server/agents/observers server/probe.ts */
// Two regions over real processes: a worker here and a probe elsewhere, which is killed in the middle of a storm.
// Incidents and messages are counted to the last one. Then it stays away, which is no outage of what it checked.
// Workers that are killed: observer_storm.test.ts.
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createProbe } from '../../../models/observers/probe';
import { makeAuthority } from '../../support/databases/authority';
import { startTarget, type Target } from '../../support/deployments/breakable_target';
import { startObserverWorker, startProbeProcess } from '../../support/observers/observer_processes';
import { observersOf } from '../../support/observers/observers';
import { kill } from '../../support/processes/processes';
import { startReceiver, until, type Receiver } from '../../support/email/receivers';
import { startService, type TestService } from '../../support/service';
import { withConfig } from '../../support/config';

const COUNT = 40;

let service: TestService;
let target: Target;
let receiver: Receiver;
let settings: Record<string, string>;
let key: string;
const processes: ChildProcess[] = [];

beforeAll(async () => {
  const authority = await makeAuthority();
  receiver = await startReceiver(await authority.issue(['127.0.0.1']));
  target = await startTarget();
  settings = {
    ALLOW_PRIVATE_ADDRESSES: '1',
    OUTBOUND_CA_FILE: authority.write(path.join(mkdtempSync(path.join(tmpdir(), 'probe-storm-')), 'ca.pem')),
    QUOTAS: '{"observers": 1000}',
    ...withConfig({ probeLostSeconds: 5 }),
  };
  service = await startService({ settings });
  key = (await createProbe(service.platform.database, { region: 'far', name: 'Far' })).token;
});

afterAll(async () => {
  await Promise.all(processes.map(kill));
  await service.close();
  await Promise.all([receiver.close(), target.close()]);
});

const started = (child: ChildProcess): ChildProcess => {
  processes.push(child);
  return child;
};
const startWorker = (): ChildProcess => started(startObserverWorker(service, settings));
const startProbe = (): ChildProcess => started(startProbeProcess(service, key, settings));
const count = async (text: string): Promise<number> => Number((await service.sql<{ count: number }>(text))[0]?.count);
const inStatus = (status: string): Promise<number> =>
  count(`select count(*) from observers where status = '${status}'`);
const pending = (): Promise<number> => count(`select count(*) from notifications where status = 'pending'`);
const isLost = (): Promise<number> => count(`select count(*) from monitored_regions where lost_at is not null`);
const told = (type: string): number =>
  new Set(
    receiver
      .at('/storm')
      .filter(({ body }) => body.type === type)
      .map(({ headers }) => String(headers['webhook-id'])),
  ).size;
const checkNow = (): Promise<unknown> =>
  service.sql('update observer_checks set check_at = now() - make_interval(secs => 1) where counted_fence = fence');

test('every outage is one incident with two messages, though the probe is killed', async () => {
  const observers = observersOf(service);
  const { id: notifier } = await observers.notifier({ config: { url: `https://127.0.0.1:${receiver.port}/storm` } });
  target.status = 500;
  for (let index = 0; index < COUNT; index += 1)
    await observers.made(`http://127.0.0.1:${target.port}/switch`, {
      ...{ failure_threshold: 1, interval_seconds: 30, notifier_ids: [notifier] },
      uptime: { regions: ['local', 'far'], timeout_seconds: 1 },
    });

  // One region alone alerts nobody, while the other one is waited for: on a busy machine this takes longer than a probe
  // may be silent here.
  await service.sql(`update probes set seen_at = now() + interval '1 minute'`);
  startWorker();
  await until(async () => (await count(`select count(*) from check_results where region = 'local'`)) >= COUNT, 60_000);
  expect(await count('select count(*) from incidents')).toBe(0);

  let probe = startProbe();
  await until(async () => (await inStatus('alerting')) > 3, 60_000);
  await kill(probe);
  probe = startProbe();
  await until(async () => {
    await checkNow();
    return (await inStatus('alerting')) === COUNT;
  }, 90_000);
  await until(async () => (await pending()) === 0, 120_000);
  expect(await count('select count(*) from incidents')).toBe(COUNT);
  expect(await count('select count(*) from notifications')).toBe(COUNT);
  expect(told('observer.alerting')).toBe(COUNT);

  // The probe stays away. Its region has no verdict, and the other one decides.
  await kill(probe);
  await until(async () => (await isLost()) === 1, 60_000);
  expect(await (await fetch(`${service.adminUrl}/metrics`)).text()).toMatch(/^platform_check_regions_lost 1$/m);
  expect(await inStatus('alerting')).toBe(COUNT);
  target.status = 200;
  await until(async () => {
    await checkNow();
    return (await inStatus('ok')) === COUNT;
  }, 90_000);
  await until(async () => (await pending()) === 0, 120_000);
  expect(await count(`select count(*) from incidents where status = 'resolved'`)).toBe(COUNT);
  expect(await count('select count(*) from notifications')).toBe(2 * COUNT);
  expect(told('observer.resolved')).toBe(COUNT);

  // Back again, it finds what the other region finds.
  const [{ now: back }] = (await service.sql<{ now: string }>('select now() as now')) as [{ now: string }];
  startProbe();
  await until(async () => (await isLost()) === 0, 60_000);
  await until(async () => {
    const results = await service.sql<{ count: number }>(
      `select count(distinct observer_id) as count from check_results where region = 'far' and checked_at > $1`,
      [back],
    );
    return Number(results[0]?.count) === COUNT;
  }, 60_000);
  expect([await inStatus('ok'), await count('select count(*) from incidents')]).toEqual([COUNT, COUNT]);
  const events = await service.sql<{ action: string }>(
    `select action from activity where resource_type = 'region' and action like 'region.probe%' order by id`,
  );
  // Before it was first started too, if that took long.
  expect(events.slice(-2).map(({ action }) => action)).toEqual(['region.probe_lost', 'region.probe_returned']);
}, 600_000);
