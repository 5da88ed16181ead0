// The period of reads that would otherwise end now, so that two readings are of the same time.
import type { Operation } from '../../../contract/operations';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const end = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
const PERIOD = { from: end - HOUR_MS, to: end };

/** `from` and `to` for an operation that takes a period, otherwise nothing. */
export function fixedPeriod({ query }: Operation): Record<string, string> {
  const bounds = query.filter(({ name }) => name in PERIOD);
  return Object.fromEntries(
    bounds.map(({ name, type }) => {
      const time = new Date(PERIOD[name as keyof typeof PERIOD]).toISOString();
      return [name, String(type) === 'DateTime' ? time : time.slice(0, 10)];
    }),
  );
}
