// Rate limit for stored log output of tenants and their visitors: bytes per second and log, with a burst of an hour. It
// bounds the disk usage of the table of log lines.

export interface LogBudget {
  /** Whether a line of this size is stored. @param key identifies the log */
  take(key: string, bytes: number): boolean;
  /** Number of dropped lines that were not reported yet. Returns 0 within a minute of the last report. */
  lost(key: string): number;
}

interface Account {
  bytes: number;
  at: number;
  lost: number;
  reportedAt: number;
}

/** Overhead of a row. */
const ROW_BYTES = 256;
const BURST_SECONDS = 3_600;
const REPORT_MS = 60_000;
const ACCOUNTS_MAX = 10_000;

/** @param now milliseconds of a monotonic clock */
export function openLogBudget(bytesPerSecond: number, now: () => number = () => performance.now()): LogBudget {
  const most = bytesPerSecond * BURST_SECONDS;
  const accounts = new Map<string, Account>();
  const filled = ({ bytes, at }: Account): number => Math.min(most, bytes + ((now() - at) / 1_000) * bytesPerSecond);
  const accountOf = (key: string): Account => {
    const found = accounts.get(key);
    if (found) return Object.assign(found, { bytes: filled(found), at: now() });
    if (accounts.size >= ACCOUNTS_MAX) for (const [id, one] of accounts) if (filled(one) === most) accounts.delete(id);
    const account = { bytes: most, at: now(), lost: 0, reportedAt: -Infinity };
    accounts.set(key, account);
    return account;
  };
  return {
    take(key, bytes) {
      const account = accountOf(key);
      const isKept = account.bytes >= bytes + ROW_BYTES;
      if (isKept) account.bytes -= bytes + ROW_BYTES;
      else account.lost += 1;
      return isKept;
    },
    lost(key) {
      const account = accounts.get(key);
      if (!account?.lost || now() - account.reportedAt < REPORT_MS) return 0;
      const { lost } = account;
      Object.assign(account, { lost: 0, reportedAt: now() });
      return lost;
    },
  };
}

/** Message for a log with dropped lines. */
export function lossMessage(lost: number): string {
  return `${lost} ${lost === 1 ? 'line was' : 'lines were'} not kept: more was printed than a log may take.`;
}
