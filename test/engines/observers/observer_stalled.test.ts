/** @tier heavy @quarter 1 @covers jobs/observers/check_loop.ts server/agents/observers/observers.ts */
// A worker that stands still for longer than its checks may take, and goes on: what it missed is its own fault, not
// that of every target.
import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTarget, type Target } from '../../support/deployments/breakable_target';
import { startObserverWorker } from '../../support/observers/observer_processes';
import { observersOf } from '../../support/observers/observers';
import { kill } from '../../support/processes/processes';
import { until } from '../../support/email/receivers';
import { startService, type TestService } from '../../support/service';

const COUNT = 40;
const TIMEOUT_SECONDS = 3;
const settings = { ALLOW_PRIVATE_ADDRESSES: '1', QUOTAS: '{"observers": 1000}' };

let service: TestService;
let target: Target;
const workers: ChildProcess[] = [];

beforeAll(async () => {
  target = await startTarget();
  service = await startService({ settings });
});

afterAll(async () => {
  await Promise.all(workers.map(kill));
  await service.close();
  await target.close();
});

const startWorker = (): ChildProcess => {
  const worker = startObserverWorker(service, settings);
  workers.push(worker);
  return worker;
};
const count = async (text: string): Promise<number> => Number((await service.sql<{ count: number }>(text))[0]?.count);
const checked = (): Promise<number> => count('select count(distinct observer_id) from check_results');
/** How many requests the target has heard of and not answered. */
const open = (): number => target.heard.filter(({ url }) => url === '/slow').length - target.answered;

test('nobody is alerted when a stopped worker goes on, alone or beside one that took over', async () => {
  const observers = observersOf(service);
  for (let index = 0; index < COUNT; index += 1)
    await observers.made(`http://127.0.0.1:${target.port}/slow`, {
      failure_threshold: 1,
      uptime: { timeout_seconds: TIMEOUT_SECONDS },
    });
  const worker = startWorker();

  for (const isRelieved of [false, true]) {
    await service.sql('delete from check_results');
    await service.sql(
      'update observer_checks set check_at = now() - make_interval(secs => 1) where counted_fence = fence',
    );
    await until(() => open() >= COUNT / 2, 60_000);
    worker.kill('SIGSTOP');
    // Longer than the time of every check that is under way.
    await sleep((TIMEOUT_SECONDS + 1) * 1000);
    if (isRelieved) {
      // As if their leases had ended.
      await service.sql('update observer_checks set check_at = now() - make_interval(secs => 1)');
      startWorker();
      await until(async () => (await checked()) === COUNT, 60_000);
    }
    worker.kill('SIGCONT');
    await until(async () => (await checked()) === COUNT, 60_000);
    expect(await count(`select count(*) from check_results where status = 'fail'`)).toBe(0);
    expect(await count('select count(*) from incidents')).toBe(0);
    expect(await count(`select count(*) from observers where status = 'ok'`)).toBe(COUNT);
  }
}, 300_000);
