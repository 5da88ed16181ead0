/** @user any */
// The look for what deleted rows have left: one kind that cannot be listed keeps nothing from the others.
import { DriverError, driverContext } from '../../core/driver';
import { createLog } from '../../core/log/log';
import type { Leftovers } from '../../jobs/declarations';
import { sweepHost } from '../../jobs/host_sweep';
import type { HostDrivers } from '../../jobs/job';
import { openObserved, type Observed } from '../support/observers/observed';

let observed: Observed;
beforeAll(async () => {
  observed = await openObserved();
});
afterAll(() => observed.close());

const removed: string[] = [];
const kindOf = (kind: string, list: Leftovers['list']): Leftovers => ({
  ...{ kind, list, withoutRow: (_sql, ids) => Promise.resolve([...ids]) },
  remove: (id) => Promise.resolve(void removed.push(id)),
});
const sweep = (...kinds: Leftovers[]): Promise<number> => {
  const host = { runtime: observed.trial.runtime } as HostDrivers;
  return sweepHost(observed.database, host, createLog('silent'), driverContext(30_000), kinds);
};

test('a cluster that is away keeps nothing else from being removed', async () => {
  const away = kindOf('workload', async function* () {
    yield [{ id: 'before' }];
    await Promise.reject(new DriverError('transient', 'The API server of the cluster cannot be reached.'));
  });
  const directories = kindOf('directory', async function* () {
    yield await Promise.resolve([{ id: 'behind' }]);
  });
  expect(await sweep(away, directories)).toBe(2);
  expect(removed).toEqual(['before', 'behind']);
});

test('a fault of the platform is none of a driver', async () => {
  const broken = kindOf('broken', async function* () {
    yield [];
    await Promise.reject(new Error('a bug'));
  });
  await expect(sweep(broken)).rejects.toThrow('a bug');
});
