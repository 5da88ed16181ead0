// Spares a driver that is down: when several rows in a row met transient failures, its rows wait for a while. Where all
// of them are of one account, what is down may be its own, and only its rows wait.

export interface Breaker {
  failed(table: string, driver: string | null, id: string, account: string): void;
  succeeded(table: string, driver: string | null): void;
  /** Drivers of the table to leave alone now; '' stands for rows that have none yet. */
  open(table: string): string[];
  /** Accounts whose rows of the table are to be left alone now. */
  openFor(table: string): string[];
}

interface Circuit {
  table: string;
  driver: string;
  /** Different rows, and whose they are: one bad row must not stop the others. */
  failing: Map<string, string>;
  openUntil: number;
}

/**
 * Opens for `openMs` when `threshold` different rows failed without a success between. Then one more failure opens it
 * again.
 */
export function openBreaker({ threshold, openMs }: { threshold: number; openMs: number }): Breaker {
  const circuits = new Map<string, Circuit>();
  const openOf = (table: string): { driver: string; accounts: string[] }[] =>
    [...circuits.values()]
      .filter((circuit) => circuit.table === table && circuit.openUntil > performance.now())
      .map(({ driver, failing }) => ({ driver, accounts: [...new Set(failing.values())] }));
  return {
    failed(table, driver, id, account) {
      const key = `${table} ${driver ?? ''}`;
      const circuit = circuits.get(key) ?? { table, driver: driver ?? '', failing: new Map(), openUntil: 0 };
      circuits.set(key, circuit);
      circuit.failing.set(id, account);
      if (circuit.failing.size >= threshold) circuit.openUntil = performance.now() + openMs;
    },
    succeeded: (table, driver) => void circuits.delete(`${table} ${driver ?? ''}`),
    open: (table) => openOf(table).flatMap(({ driver, accounts }) => (accounts.length > 1 ? driver : [])),
    openFor: (table) => openOf(table).flatMap(({ accounts }) => (accounts.length > 1 ? [] : accounts)),
  };
}
