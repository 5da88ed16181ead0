// What of a log is kept, over time.
import { openLogBudget } from '../../core/log/log_budget';

describe('the budget of a log', () => {
  let now = 0;
  const clock = (): number => now;
  const taken = (budget: ReturnType<typeof openLogBudget>, key: string, lines: number): number =>
    Array.from({ length: lines }, () => budget.take(key, 744)).filter(Boolean).length;

  test('is a rate, of which an hour may come at once', () => {
    const budget = openLogBudget(1_000, clock);
    expect(taken(budget, 'app_a', 5_000)).toBe(3_600);
    expect(taken(budget, 'app_b', 5_000)).toBe(3_600);
    now += 10_000;
    expect(taken(budget, 'app_a', 100)).toBe(10);
    now += 7_200_000;
    expect(taken(budget, 'app_a', 5_000)).toBe(3_600);
  });

  test('tells once a minute what was lost', () => {
    const budget = openLogBudget(1_000, clock);
    expect(budget.lost('app_a')).toBe(0);
    taken(budget, 'app_a', 3_601);
    expect([budget.lost('app_a'), budget.lost('app_a')]).toEqual([1, 0]);
    taken(budget, 'app_a', 5);
    expect(budget.lost('app_a')).toBe(0);
    now += 60_000;
    expect(budget.lost('app_a')).toBe(5);
  });

  test('is forgotten of logs that are quiet', () => {
    const budget = openLogBudget(1_000, clock);
    for (let log = 0; log < 20_000; log += 1) {
      now += 1_000;
      expect(taken(budget, `app_${log}`, 1)).toBe(1);
    }
  });
});
