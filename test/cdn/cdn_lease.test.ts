/** @covers server/agents/cdn/cdn_lease.ts */
// For how long purges wait for the cache of a further ingress.
import { openCacheLease, type CacheLease } from '../../server/agents/cdn/cdn_lease';
import { startService, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

let service: TestService;

beforeAll(async () => void (service = await startService()));
afterAll(() => service?.close());

test('not for one that cannot do them, until it can', async () => {
  const { database, log } = service.platform;
  const lease: CacheLease = openCacheLease({ database, log });
  const isWaitedFor = async (): Promise<boolean> =>
    (await service.sql('select 1 from cdn_caches where id = $1', [lease.id])).length > 0;
  let fails = true;
  let seen = false;
  const { first, close } = lease.start(async () => {
    seen = await isWaitedFor();
    if (fails) throw new Error('the disk is full');
  });
  try {
    await first;
    expect([seen, await isWaitedFor(), lease.isCurrent()]).toEqual([true, false, false]);
    fails = false;
    await waitFor('the lease', async () => lease.isCurrent());
    expect(await isWaitedFor()).toBe(true);
  } finally {
    await close();
  }
  expect([await isWaitedFor(), lease.isCurrent()]).toEqual([false, false]);
});
