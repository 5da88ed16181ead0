// Whose row is next: the accounts that have due rows in a table get one row each in turn, however many rows one of them
// has. In memory: a process that starts begins a round.

export interface Turns {
  /** Accounts whose rows are left alone for the next claim. */
  served(table: string): string[];
  /** A row of the account was claimed. */
  serve(table: string, account: string): void;
  /** No account but the served ones has a due row: each of them may have another. */
  endRound(table: string): void;
}

interface Round {
  served: Set<string>;
  /** All that had due rows when another was looked for in vain. */
  known: ReadonlySet<string>;
  /** Until then no other is looked for, which means to read all the rows of those. */
  knownUntil: number;
}

/** An account whose rows become due meanwhile waits for so long, beside its turn. */
const KNOWN_MS = 250;
const SERVED_MAX = 1_000;

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
    serve: (table, account) => void roundOf(table).served.add(account),
    endRound(table) {
      const round = roundOf(table);
      Object.assign(round, { served: new Set(), known: round.served, knownUntil: now() + KNOWN_MS });
    },
  };
}
