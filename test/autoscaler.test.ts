// The autoscaler: its decision, look by look, and what one look reads and writes.
import { decide, POLL_MS, type AutoscalerState } from '../models/process/autoscale';
import { autoscale } from '../models/autoscaler';
import { addMetricPoints } from '../models/metric_point';
import { deployed, type DeployedApplication } from './support/deployed';
import { startService, type TestService } from './support/service';

const POLICY = { min_instances: 1, max_instances: 8, metric: 'cpu', target: 50 } as const;

/** Looks one after another, half a minute apart; answers the number of instances after each. */
function run(values: (number | null)[], start = 2, policy: Parameters<typeof decide>[0] = POLICY): number[] {
  let state: AutoscalerState | null = null;
  let instances = start;
  return values.map((value, index) => {
    const decision = decide(policy, state, { instances, value, now: new Date(1_800_000_000_000 + index * POLL_MS) });
    ({ state, instances } = decision);
    return instances;
  });
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

describe('the decision', () => {
  it('goes up after two looks in a row, at once to what the load asks for', () => {
    expect(run([100, 100])).toEqual([2, 4]);
    expect(run([60, 60])).toEqual([2, 3]);
    expect(run([1000, 1000])).toEqual([2, 8]);
  });

  it('does nothing after one look, or after looks that are not in a row', () => {
    expect(run([100, 50, 100, 50, 100, null, 100])).toEqual(times(7, 2));
  });

  it.each([55, 54.9, 50, 40, 35.1, 35])('does nothing near the target: %d', (value) => {
    expect(run(times(30, value))).toEqual(times(30, 2));
  });

  it('goes down by one after ten looks in a row, and again after ten more', () => {
    expect(run(times(11, 10), 4)).toEqual([...times(9, 4), 3, 3]);
    expect(run(times(40, 10), 3).at(-1)).toBe(1);
    expect(run(times(20, 10), 4).at(-1)).toBe(3);
    expect(run(times(21, 10), 4).at(-1)).toBe(2);
  });

  it('starts counting again after a look that is not below', () => {
    expect(run([...times(9, 10), 50, ...times(9, 10)], 4)).toEqual(times(19, 4));
    expect(run([...times(9, 10), null, ...times(9, 10)], 4)).toEqual(times(19, 4));
  });

  it('does not go down where the rest would be above the target again', () => {
    // One instance of two at 34 percent would be at 68.
    expect(run(times(30, 34), 2)).toEqual(times(30, 2));
    expect(run(times(30, 24), 2).at(-1)).toBe(1);
  });

  it('waits a minute after each change', () => {
    // 0 s and 30 s above; changed at 30 s; 60 s is within the minute, 90 s is not, and one look is not enough.
    expect(run([100, 100, 100, 100, 100])).toEqual([2, 4, 4, 4, 8]);
  });

  it('keeps to its bounds, and comes back into bounds that have changed', () => {
    expect(run(times(3, 1000), 7, { ...POLICY, max_instances: 7 })).toEqual([7, 7, 7]);
    expect(run(times(30, 0), 3, { ...POLICY, min_instances: 3 })).toEqual(times(30, 3));
    expect(run([null], 1, { ...POLICY, min_instances: 3 })).toEqual([3]);
    expect(run([null], 9, POLICY)).toEqual([8]);
  });

  it('does nothing without a measure', () => {
    expect(run(times(30, null), 4)).toEqual(times(30, 4));
  });

  it('is calm under a load that swings', () => {
    const counts = run(
      Array.from({ length: 200 }, (_, index) => (index % 2 ? 80 : 20)),
      4,
    );
    expect(new Set(counts)).toEqual(new Set([4]));
  });

  it('finds a number for a steady load and stays there', () => {
    for (const load of [30, 90, 140, 210, 333]) {
      let state: AutoscalerState | null = null;
      let instances = 4;
      const seen: number[] = [];
      for (let look = 0; look < 120; look += 1) {
        ({ state, instances } = decide(POLICY, state, {
          instances,
          value: load / instances,
          now: new Date(look * POLL_MS),
        }));
        seen.push(instances);
      }
      const rest = seen.slice(60);
      expect([load, new Set(rest).size]).toEqual([load, 1]);
      expect(load / instances).toBeLessThanOrEqual(POLICY.target * 1.1);
    }
  });
});

describe('a look', () => {
  let service: TestService;
  let application: DeployedApplication;
  let serial = 0;

  beforeAll(async () => {
    service = await startService();
  });

  afterAll(() => service.close());

  beforeEach(async () => {
    await service.sql('update processes set autoscaling = null');
    const { body } = await service.call('POST', '/v2/applications', { body: { name: `shop-${(serial += 1)}` } });
    application = await deployed(service, body.id);
  });

  const now = (): Date => new Date();
  const look = (): ReturnType<typeof autoscale> => autoscale(service.platform.database);
  const id = (): string => application.processes.web as string;

  /** As after the request and the work of the application's job. */
  async function scaled(autoscaling: object, instances = 2): Promise<void> {
    await service.call('POST', `/v2/applications/${application.id}/processes/${id()}/scale`, {
      body: { autoscaling: { ...POLICY, ...autoscaling } },
    });
    await service.sql(`update processes set status = 'running', instances = $2, running_instances = $2 where id = $1`, [
      id(),
      instances,
    ]);
  }

  async function measure(metric: string, total: number, samples: number, at: Date): Promise<void> {
    await addMetricPoints(service.platform.database, [
      { at, project_id: service.project, resource_id: application.id, part_id: id(), metric, samples, total },
    ]);
  }

  /** In the minute before and in this one: whichever is the last whole one when the look comes. */
  async function measureMinutes(metric: string, total: number, samples: number): Promise<void> {
    const at = Date.now();
    await measure(metric, total, samples, new Date(at - 60_000));
    await measure(metric, total, samples, new Date(at));
  }

  const web = async (): Promise<{
    instances: number;
    status: string;
    version: number;
    autoscaler: AutoscalerState | null;
  }> =>
    (
      await service.sql<{ instances: number; status: string; version: number; autoscaler: AutoscalerState | null }>(
        'select instances, status, version, autoscaler from processes where id = $1',
        [id()],
      )
    )[0]!;

  it('scales up by the processor share of its size, makes the application due, and says so', async () => {
    await scaled({ metric: 'cpu', target: 50 });
    // 50 percent of a core, of which the size has a half: 100 percent.
    await measure('cpu_percent', 200, 4, now());
    const before = await web();
    const [{ generation }] = (await service.sql('select generation from applications where id = $1', [
      application.id,
    ])) as [{ generation: number }];
    expect(await look()).toEqual({ checked: 1, changed: [] });
    expect(await web()).toEqual({ ...before, autoscaler: { above: 1, below: 0, changed_at: null } });
    expect(await look()).toEqual({ checked: 1, changed: [{ id: id(), from: 2, to: 4 }] });
    expect(await web()).toMatchObject({
      instances: 4,
      status: 'scaling',
      version: before.version + 1,
      autoscaler: { above: 0, below: 0, changed_at: expect.any(String) },
    });
    expect(
      await service.sql('select generation, next_at <= now() as due from applications where id = $1', [application.id]),
    ).toEqual([{ generation: generation + 1, due: true }]);
    const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id()}&limit=1`);
    expect(body.data[0]).toMatchObject({
      action: 'process.autoscaled',
      actor: { type: 'system' },
      resource: { type: 'process', name: 'web' },
    });
    // On its way: nothing to look at.
    expect(await look()).toEqual({ checked: 0, changed: [] });
  });

  it('scales by memory', async () => {
    await scaled({ metric: 'memory', target: 50 });
    await measure('memory_mb', 4 * 384, 4, now());
    await look();
    expect((await look()).changed).toEqual([{ id: id(), from: 2, to: 3 }]);
  });

  it('scales by the requests of the last whole minute, shared among the instances', async () => {
    await scaled({ metric: 'requests_per_second', target: 10 });
    await measureMinutes('requests', 60 * 50, 0);
    await measureMinutes('instances', 8, 4);
    await look();
    expect((await look()).changed).toEqual([{ id: id(), from: 2, to: 5 }]);
  });

  it('takes a measured minute without requests for none, and one that nobody measured for nothing', async () => {
    await scaled({ metric: 'requests_per_second', target: 10 });
    await look();
    expect((await web()).autoscaler).toEqual({ above: 0, below: 0, changed_at: null });
    await measureMinutes('instances', 8, 4);
    await look();
    expect((await web()).autoscaler).toEqual({ above: 0, below: 1, changed_at: null });
  });

  it('believes no measure of long ago', async () => {
    await scaled({ metric: 'cpu', target: 50 });
    await measure('cpu_percent', 400, 4, new Date(Date.now() - 10 * 60_000));
    await look();
    expect((await look()).changed).toEqual([]);
  });

  it.each(['stopped', 'deploying', 'restarting', 'crashed'])('leaves a %s application alone', async (status) => {
    await scaled({});
    await service.sql('update applications set status = $2 where id = $1', [application.id, status]);
    expect(await look()).toEqual({ checked: 0, changed: [] });
  });

  it('gives way to a request that came meanwhile', async () => {
    await scaled({ metric: 'cpu', target: 50 });
    await measure('cpu_percent', 200, 4, now());
    await look();
    const { database } = service.platform;
    const query = database.query.bind(database);
    // The request is committed between what the look reads and what it writes.
    const late = {
      ...database,
      query: async (...args: Parameters<typeof query>) => {
        const rows = await query(...args);
        await service.call('POST', `/v2/applications/${application.id}/processes/${id()}/scale`, {
          body: { instances: 1 },
        });
        return rows;
      },
    } as typeof database;
    expect((await autoscale(late)).changed).toEqual([]);
    expect(await web()).toMatchObject({ instances: 1, autoscaler: null });
  });
});
