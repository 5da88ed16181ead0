// What counters in memory cost when somebody makes up names for them.
import { openAttempts } from '../../rest/rate_limit';

const NAMES = 150_000;

// All in one minute.
beforeAll(() => void jest.useFakeTimers({ now: 0 }));
afterAll(() => void jest.useRealTimers());

it('a flood of names pushes out the oldest counters', () => {
  const attempts = openAttempts(1);
  attempts.count('first');
  expect(attempts.refusal('first')).toMatchObject({ code: 'rate_limited', detail: 'Too many failed attempts.' });
  for (let name = 0; name < NAMES; name += 1) attempts.count(`name ${name}`);
  expect(attempts.refusal(`name ${NAMES - 1}`)).toMatchObject({ code: 'rate_limited' });
  expect(attempts.refusal('first')).toBeNull();
});
