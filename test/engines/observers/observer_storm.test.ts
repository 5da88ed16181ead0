/** @tier heavy @quarter 3 @covers server/agents/observers */
// Workers that are killed in the middle of a storm: every target fails at once, then every one recovers. Incidents and
// messages are counted to the last one.
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makeAuthority } from '../../support/databases/authority';
import { startTarget, type Target } from '../../support/deployments/breakable_target';
import { startObserverWorker } from '../../support/observers/observer_processes';
import { observersOf, type Observers } from '../../support/observers/observers';
import { kill } from '../../support/processes/processes';
import { startReceiver, until, type Receiver } from '../../support/email/receivers';
import { startService, type TestService } from '../../support/service';

const COUNT = 80;

let service: TestService;
let observers: Observers;
let target: Target;
let receiver: Receiver;
let settings: Record<string, string>;
const workers: ChildProcess[] = [];
const startWorker = (): ChildProcess => {
  const worker = startObserverWorker(service, settings);
  workers.push(worker);
  return worker;
};

beforeAll(async () => {
  const authority = await makeAuthority();
  receiver = await startReceiver(await authority.issue(['127.0.0.1']));
  target = await startTarget();
  settings = {
    ALLOW_PRIVATE_ADDRESSES: '1',
    OUTBOUND_CA_FILE: authority.write(path.join(mkdtempSync(path.join(tmpdir(), 'storm-')), 'ca.pem')),
    QUOTAS: '{"observers": 1000}',
  };
  service = await startService({ settings });
  observers = observersOf(service);
});

afterAll(async () => {
  await Promise.all(workers.map(kill));
  await service.close();
  await Promise.all([receiver.close(), target.close()]);
});

const count = async (text: string): Promise<number> => Number((await service.sql<{ count: number }>(text))[0]?.count);
const inStatus = (status: string): Promise<number> =>
  count(`select count(*) from observers where status = '${status}'`);
const distinct = (type: string): string[] =>
  receiver
    .at('/storm')
    .filter(({ body }) => body.type === type)
    .map(({ headers }) => String(headers['webhook-id']));

test('each target has one incident with one message at its begin and one at its end', async () => {
  const { id: notifier } = await observers.notifier({ config: { url: `https://127.0.0.1:${receiver.port}/storm` } });
  target.status = 500;
  for (let index = 0; index < COUNT; index += 1)
    await observers.made(`http://127.0.0.1:${target.port}/switch`, { failure_threshold: 1, notifier_ids: [notifier] });

  // Killed while it counts, and again while it sends.
  let worker = startWorker();
  await until(async () => (await inStatus('alerting')) > 5);
  await kill(worker);
  worker = startWorker();
  await until(async () => (await inStatus('alerting')) === COUNT, 60_000);
  await until(() => receiver.at('/storm').length > 5);
  await kill(worker);
  const two = [startWorker(), startWorker()];
  await until(async () => (await count(`select count(*) from notifications where status = 'pending'`)) === 0, 120_000);
  expect(await count('select count(*) from incidents')).toBe(COUNT);
  expect(await count('select count(*) from notifications')).toBe(COUNT);
  expect(new Set(distinct('observer.alerting')).size).toBe(COUNT);

  target.status = 200;
  await service.sql('update observer_checks set check_at = now()');
  await until(async () => (await inStatus('ok')) > 5);
  await kill(two[0] as ChildProcess);
  await until(async () => (await inStatus('ok')) === COUNT, 60_000);
  await until(async () => (await count(`select count(*) from notifications where status = 'pending'`)) === 0, 120_000);
  expect(await count('select count(*) from incidents')).toBe(COUNT);
  expect(await count(`select count(*) from incidents where status = 'resolved'`)).toBe(COUNT);
  expect(await count('select count(*) from notifications')).toBe(2 * COUNT);
  expect(new Set(distinct('observer.resolved')).size).toBe(COUNT);
}, 300_000);
