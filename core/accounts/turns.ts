// Whose rows are next: the accounts that have due rows in a table are served in turn, however many rows one of them
// has. In memory: a process that starts begins a round.

export interface Turns {
  /** Accounts whose rows are left alone for the next claim. */
  served(table: string): string[];
  /** A row of the account was claimed; '' takes no turns: rows of the platform, or of accounts that are not known. */
  serve(table: string, account: string): void;
  /** No account but the served ones has a due row: each of them may have another. */
  endRound(table: string): void;
}

interface Round {
  served: Set<string>;
  /** The accounts with due rows when no further one was found. */
  known: ReadonlySet<string>;
  /** Until then no further account is looked for: that reads all due rows of the known ones. */
  knownUntil: number;
}

/** Claims at most `limit` due rows, of accounts that are not in `passOver`. */
type ClaimOfOthers<Row> = (limit: number, passOver: string[]) => Promise<Row[]>;

/**
 * Claims rows of accounts whose turn it is, and then, where they are fewer than `limit`, of the others.
 * @param busy accounts that get none at all
 */
export async function claimInTurns<Row extends { account: string }>(
  turns: Turns,
  table: string,
  { limit, busy }: { limit: number; busy: readonly string[] },
  claim: ClaimOfOthers<Row>,
): Promise<Row[]> {
  const served = turns.served(table);
  const found = await claim(limit, [...served, ...busy]);
  for (const { account } of found) turns.serve(table, account);
  if (found.length === limit || !served.length) return found;
  turns.endRound(table);
  const more = await claim(limit - found.length, [...busy]);
  for (const { account } of more) turns.serve(table, account);
  return [...found, ...more];
}

/** How many rows of one account are worked on at a time, so that slow ones leave a place for others. */
interface Shares {
  /** Accounts that have all of their share, and get no more rows. */
  busy(): string[];
  /** How many of one account may be claimed now. */
  room(): number;
  begin(account: string): void;
  end(account: string): void;
}

/** A tenth of the places is for other accounts. */
const SHARE = 0.9;

/** @param places rows that are worked on at a time, of all accounts */
export function openShares(places: number): Shares {
  const share = Math.max(1, Math.floor(places * SHARE));
  const counts = new Map<string, number>();
  const add = (account: string, by: number): void => {
    if (!account) return;
    const count = (counts.get(account) ?? 0) + by;
    if (count > 0) counts.set(account, count);
    else counts.delete(account);
  };
  return {
    busy: () => [...counts].flatMap(([account, count]) => (count >= share ? account : [])),
    room: () => share - Math.max(0, ...[...counts.values()].filter((count) => count < share)),
    begin: (account) => add(account, 1),
    end: (account) => add(account, -1),
  };
}

/** An account whose first row becomes due meanwhile waits for so much longer. */
const KNOWN_MS = 250;
const SERVED_MAX = 1_000;

/** @param now milliseconds of a monotonic clock */
export function openTurns(now: () => number = () => performance.now()): Turns {
  const rounds = new Map<string, Round>();
  const roundOf = (table: string): Round => {
    const round = rounds.get(table) ?? { served: new Set(), known: new Set(), knownUntil: 0 };
    rounds.set(table, round);
    return round;
  };
  const isOver = ({ served, known, knownUntil }: Round): boolean =>
    served.size >= SERVED_MAX || (now() < knownUntil && [...known].every((account) => served.has(account)));
  return {
    served(table) {
      const round = roundOf(table);
      if (isOver(round)) round.served = new Set();
      return [...round.served];
    },
    serve: (table, account) => void (account && roundOf(table).served.add(account)),
    endRound(table) {
      const round = roundOf(table);
      Object.assign(round, { served: new Set(), known: round.served, knownUntil: now() + KNOWN_MS });
    },
  };
}
