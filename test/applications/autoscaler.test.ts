/** @user any */
// The autoscaler: its decision, sample by sample, and what a host measures and writes.
import { setTimeout as sleep } from 'node:timers/promises';
import { openAutoscaler, type Autoscaler } from '../../jobs/applications/autoscaler';
import { createLog } from '../../core/log/log';
import { driverContext } from '../../core/driver';
import type { Traffic } from '../../engines/ingress/ingress';
import {
  decideInstances,
  SAMPLE_MS,
  withinWindow,
  type AutoscalerSample,
} from '../../models/processes/process/autoscale';
import { openObserved, type Observed } from '../support/observers/observed';
import { withinMs } from '../support/builds/runtime';

const POLICY = { min_instances: 1, max_instances: 8, metric: 'cpu', target: 50 } as const;
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
const MINUTE = 60_000 / SAMPLE_MS;

/** Measures one after another; answers the number of instances after each. As the host, it begins anew with each. */
function run(
  values: readonly (number | ((instances: number) => number))[],
  start = 2,
  policy: Parameters<typeof decideInstances>[0] = POLICY,
): number[] {
  let samples: AutoscalerSample[] = [];
  let instances = start;
  return values.map((value, index) => {
    const measured = typeof value === 'number' ? value : value(instances);
    samples = withinWindow([...samples, { at: index * SAMPLE_MS, value: measured }]);
    const decided = decideInstances(policy, samples, instances).instances;
    if (decided !== instances) samples = [];
    return (instances = decided);
  });
}

describe('the decision', () => {
  it('goes up after two samples in a row, at once to what the load asks for', () => {
    expect(run([100, 100])).toEqual([2, 4]);
    expect(run([60, 60])).toEqual([2, 3]);
    expect(run([1000, 1000])).toEqual([2, 8]);
    expect(SAMPLE_MS * 3).toBeLessThanOrEqual(15_000);
  });

  it('does nothing after one sample, or after samples that are not in a row', () => {
    expect(run([100, 50, 100, 50, 100, 50])).toEqual(times(6, 2));
  });

  it('counts no sample for two changes', () => {
    expect(run([100, 100, 100, 100])).toEqual([2, 4, 4, 8]);
    expect(run([...times(100, 10), 10], 4).filter((count) => count === 3)).toHaveLength(42);
  });

  it.each([55, 54.9, 50, 40, 35.1, 35])('does nothing near the target: %d', (value) => {
    expect(run(times(20 * MINUTE, value))).toEqual(times(20 * MINUTE, 2));
  });

  it('goes down by one after five minutes, and again after five more', () => {
    const counts = run(times(16 * MINUTE, 10), 4);
    expect([1, 4, 6, 9, 11, 14, 15.9].map((minutes) => counts[Math.floor(minutes * MINUTE)])).toEqual([
      4, 4, 3, 3, 2, 2, 1,
    ]);
  });

  it('does not go down within five minutes of a load that needs the instances', () => {
    const burst = [...times(4 * MINUTE, 10), 45, 45];
    expect(run([...burst, ...burst, ...burst], 4)).toEqual(times(burst.length * 3, 4));
  });

  it('does not go down where the rest would be above the target again', () => {
    // One instance of two at 34 percent would be at 68.
    expect(run(times(20 * MINUTE, 34), 2)).toEqual(times(20 * MINUTE, 2));
    expect(run(times(20 * MINUTE, 24), 2).at(-1)).toBe(1);
  });

  it('keeps to its bounds, and comes back into bounds that have changed', () => {
    expect(run(times(3, 1000), 7, { ...POLICY, max_instances: 7 })).toEqual([7, 7, 7]);
    expect(run(times(10 * MINUTE, 0), 3, { ...POLICY, min_instances: 3 })).toEqual(times(10 * MINUTE, 3));
    expect(decideInstances({ ...POLICY, min_instances: 3 }, [], 1)).toEqual({ instances: 3 });
    expect(decideInstances(POLICY, [], 9)).toEqual({ instances: 8 });
  });

  it('is calm under a load that swings', () => {
    expect(
      new Set(
        run(
          times(200, 0).map((_, index) => (index % 2 ? 80 : 20)),
          4,
        ),
      ),
    ).toEqual(new Set([4]));
  });

  it.each([30, 90, 140, 210, 333])('finds a number for a steady load of %d and stays there', (load) => {
    const counts = run(
      times(60 * MINUTE, (instances: number) => load / instances),
      4,
    );
    expect(new Set(counts.slice(30 * MINUTE)).size).toBe(1);
    expect(load / (counts.at(-1) as number)).toBeLessThanOrEqual(POLICY.target * 1.1);
  });
});

describe('a host', () => {
  let observed: Observed;
  let autoscaler: Autoscaler;

  beforeAll(async () => {
    observed = await openObserved();
  });
  afterAll(() => observed.close());
  beforeEach(async () => {
    await observed.sql(`update applications set status = 'running'`);
    await observed.sql('delete from instances');
    const { database, trial } = observed;
    autoscaler = openAutoscaler({ database, runtime: trial.runtime, log: createLog('silent') });
  });

  const id = (): string => observed.application.processes.web as string;
  const wanted = async (policy: object, instances = 2): Promise<void> => {
    await observed.sql(
      `update processes set autoscaling = $2, instances = $3, status = 'running', version = version + 1 where id = $1`,
      [id(), JSON.stringify({ ...POLICY, ...policy }), instances],
    );
  };
  const web = async (): Promise<unknown> =>
    (await observed.sql('select instances, status from processes where id = $1', [id()]))[0];
  const traffic = (requests: number, preview_id: string | null = null): Traffic[] => [
    {
      application_id: observed.application.id,
      ...{ preview_id, instance_id: null, requests, received_bytes: 0, sent_bytes: 0, latency: [] },
      responses: { '2xx': requests, '3xx': 0, '4xx': 0, '5xx': 0 },
    },
  ];

  it('scales by the requests of the last seconds, makes the application due, and says so', async () => {
    await wanted({ metric: 'requests_per_second', target: 10 });
    const [before] = await observed.sql<{ generation: number }>('select generation from applications');
    // What was counted before the first look belongs to no interval that was measured.
    await autoscaler.run(traffic(100_000));
    await sleep(50);
    await autoscaler.run(traffic(10_000));
    expect(await web()).toEqual({ instances: 2, status: 'running' });
    await sleep(50);
    await autoscaler.run(traffic(10_000));
    expect(await web()).toEqual({ instances: 8, status: 'scaling' });
    expect(await observed.sql('select generation, next_at <= now() as due from applications')).toEqual([
      { generation: (before?.generation ?? 0) + 1, due: true },
    ]);
    expect(await observed.sql('select action, resource_name from activity order by id desc limit 1')).toEqual([
      { action: 'process.autoscaled', resource_name: 'web' },
    ]);
  });

  it('counts requests of the application, not those of its previews, and of web alone', async () => {
    await wanted({ metric: 'requests_per_second', target: 10 });
    for (let round = 0; round < 4; round += 1) {
      await sleep(20);
      await autoscaler.run(traffic(10_000, 'pvw_1'));
    }
    expect(await web()).toEqual({ instances: 2, status: 'running' });
  });

  it('scales by the processor share of its size', async () => {
    await wanted({ metric: 'cpu', target: 5 }, 1);
    const instance = await observed.instance();
    const handle = await observed.trial.start(observed.trial.spec(instance, 'while :; do :; done'));
    await observed.sql('update instances set handle = $2 where id = $1', [instance, JSON.stringify(handle)]);
    for (let round = 0; round < 3; round += 1) {
      await autoscaler.run([]);
      await sleep(400);
    }
    expect(await web()).toMatchObject({ status: 'scaling' });
    await observed.trial.runtime.destroy(instance, driverContext(withinMs));
  });

  it('scales by memory', async () => {
    await wanted({ metric: 'memory', target: 1, max_instances: 2 }, 1);
    const instance = await observed.instance();
    const grow = `exec ${process.execPath} -e 'globalThis.kept = Buffer.alloc(64 << 20, 1); setInterval(() => 0, 1e3)'`;
    const handle = await observed.trial.start(observed.trial.spec(instance, grow));
    await observed.sql('update instances set handle = $2 where id = $1', [instance, JSON.stringify(handle)]);
    await sleep(700);
    for (let round = 0; round < 3; round += 1) await autoscaler.run([]);
    expect(await web()).toEqual({ instances: 2, status: 'scaling' });
    await observed.trial.runtime.destroy(instance, driverContext(withinMs));
  });

  it.each(['stopped', 'deploying', 'restarting', 'crashed'])('leaves a %s application alone', async (status) => {
    await wanted({ min_instances: 3 });
    await observed.sql('update applications set status = $1', [status]);
    await autoscaler.run([]);
    expect(await web()).toEqual({ instances: 2, status: 'running' });
  });

  it('begins anew with each request that changes the process type', async () => {
    await wanted({ metric: 'requests_per_second', target: 10 });
    await autoscaler.run([]);
    await autoscaler.run(traffic(10_000));
    await wanted({ metric: 'requests_per_second', target: 10 });
    await autoscaler.run(traffic(10_000));
    await autoscaler.run(traffic(10_000));
    expect(await web()).toEqual({ instances: 2, status: 'running' });
    await autoscaler.run(traffic(10_000));
    expect(await web()).toMatchObject({ status: 'scaling' });
  });

  it('gives way to a request that came meanwhile', async () => {
    await wanted({ min_instances: 3 });
    const { database, trial } = observed;
    const runtime = {
      // The request is committed between what is read and what is written.
      usage: async (handles: Parameters<typeof trial.runtime.usage>[0]) => {
        await observed.sql('update processes set autoscaling = null, version = version + 1 where id = $1', [id()]);
        return trial.runtime.usage(handles);
      },
    };
    await openAutoscaler({ database, runtime, log: createLog('silent') }).run([]);
    expect(await web()).toEqual({ instances: 2, status: 'running' });
  });
});
