// What is done again and again is shown to the operator: by /metrics, and by `platform doctor` with the last error.
import { repeatWork } from '../../core/process/background';
import { background } from '../../server/operator/doctor';
import { startService, type TestService } from '../support/service';

let service: TestService;

beforeAll(async () => void (service = await startService()));
afterAll(() => service.close());

const doctor = () =>
  background({ ...service.platform.config, adminHost: '127.0.0.1', adminPort: Number(new URL(service.adminUrl).port) });
const metrics = async () => (await fetch(`${service.adminUrl}/metrics`)).text();

test('works that succeed are one line of the doctor', async () => {
  expect(await doctor()).toEqual([
    {
      check: 'background work',
      status: 'ok',
      detail: expect.stringMatching(/^\d+ repeated works run without an error$/),
    },
  ]);
  expect(await metrics()).toContain('platform_background_period_seconds{work="refused_calls"} 60');
});

test('one that fails is named with its error, until it succeeds', async () => {
  let isAway = true;
  const work = repeatWork({ name: 'test_work', everyMs: 20 }, () => {
    if (isAway) throw new Error('the tape is full');
  });
  work.runNow();
  const [finding] = await doctor();
  expect(finding).toMatchObject({
    status: 'warning',
    detail: expect.stringMatching(/^test_work fails: the tape is full/),
  });
  expect(await metrics()).toContain('platform_background_failing{work="test_work"} 1');
  isAway = false;
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await metrics()).toContain('platform_background_failing{work="test_work"} 0');
  await work.stop();
  expect(await metrics()).not.toContain('test_work');
});

test('one that has not run for long is named', async () => {
  const begin = (name: string): void => repeatWork({ name, everyMs: 10 }, () => new Promise(() => undefined)).runNow();
  begin('young_work');
  expect(await doctor()).toMatchObject([{ status: 'ok' }]);
  const now = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 120_000);
  begin('test_work');
  now.mockRestore();
  expect((await doctor()).map(({ detail }) => detail)).toContainEqual(
    expect.stringMatching(/^test_work is done every 0\.01 s, but its last run began at 20/),
  );
});

test('without a service there is nothing to look at', async () => {
  expect(await background({ ...service.platform.config, adminHost: '127.0.0.1', adminPort: 1 })).toMatchObject([
    { status: 'ok', detail: expect.stringContaining('no running service') },
  ]);
});
