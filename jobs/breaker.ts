// Spares a driver that is down: when several rows in a row met transient failures, its rows wait for a while.

export interface Breaker {
  failed(table: string, driver: string | null, id: string): void;
  succeeded(table: string, driver: string | null): void;
  /** Drivers of the table to leave alone now; '' stands for rows that have none yet. */
  open(table: string): string[];
}

interface Circuit {
  table: string;
  driver: string;
  /** Different rows: one bad row must not stop the others. */
  failing: Set<string>;
  openUntil: number;
}

/**
 * Opens for `openMs` when `threshold` different rows failed without a success between. Then one more failure opens it
 * again.
 */
export function openBreaker({ threshold, openMs }: { threshold: number; openMs: number }): Breaker {
  const circuits = new Map<string, Circuit>();
  return {
    failed(table, driver, id) {
      const key = `${table} ${driver ?? ''}`;
      const circuit = circuits.get(key) ?? { table, driver: driver ?? '', failing: new Set<string>(), openUntil: 0 };
      circuits.set(key, circuit);
      circuit.failing.add(id);
      if (circuit.failing.size >= threshold) circuit.openUntil = performance.now() + openMs;
    },
    succeeded: (table, driver) => void circuits.delete(`${table} ${driver ?? ''}`),
    open: (table) =>
      [...circuits.values()]
        .filter((circuit) => circuit.table === table && circuit.openUntil > performance.now())
        .map(({ driver }) => driver),
  };
}
