import { limits } from '../../../core/limits';

/** Other limits for the tests of the file that says so; the next file has the usual ones again. */
export function withLimits(changed: Partial<Record<keyof typeof limits, number>>): void {
  const usual = { ...limits };
  Object.assign(limits, changed);
  afterAll(() => void Object.assign(limits, usual));
}
