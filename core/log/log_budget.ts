// How much is kept of what tenants and their visitors write into logs: a rate in bytes for each log, of which an hour's
// worth may come at once. It bounds what the table of lines takes of the disk of the platform.

export interface LogBudget {
  /** Whether a line of so many bytes is kept. @param key whose log it is in */
  take(key: string, bytes: number): boolean;
  /** How many lines were not kept that nobody has told of yet. Asked for more than once a minute, it answers 0. */
  lost(key: string): number;
}

interface Account {
  bytes: number;
  at: number;
  lost: number;
  toldAt: number;
}

/** What a row takes beside its message. */
const ROW_BYTES = 256;
const BURST_SECONDS = 3_600;
const TELL_MS = 60_000;
const ACCOUNTS_MAX = 10_000;

/** @param now milliseconds of a clock that only goes on */
export function openLogBudget(bytesPerSecond: number, now: () => number = () => performance.now()): LogBudget {
  const most = bytesPerSecond * BURST_SECONDS;
  const accounts = new Map<string, Account>();
  const filled = ({ bytes, at }: Account): number => Math.min(most, bytes + ((now() - at) / 1_000) * bytesPerSecond);
  const accountOf = (key: string): Account => {
    const found = accounts.get(key);
    if (found) return Object.assign(found, { bytes: filled(found), at: now() });
    if (accounts.size >= ACCOUNTS_MAX) for (const [id, one] of accounts) if (filled(one) === most) accounts.delete(id);
    const account = { bytes: most, at: now(), lost: 0, toldAt: -Infinity };
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
      if (!account?.lost || now() - account.toldAt < TELL_MS) return 0;
      const { lost } = account;
      Object.assign(account, { lost: 0, toldAt: now() });
      return lost;
    },
  };
}

/** Of a log where lines are missing. */
export function lossMessage(lost: number): string {
  return `${lost} ${lost === 1 ? 'line was' : 'lines were'} not kept: more was printed than LOG_BYTES_PER_SECOND.`;
}
