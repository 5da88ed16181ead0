// Notifies the loops of all processes that a table has rows that are due. Loops poll every second anyway: the
// notification only saves the wait. So it is sent after the commit, and one for many rows: a NOTIFY inside the
// transactions would make their commits wait for each other (PostgreSQL takes one lock for all that notify).
import { setTimeout as sleep } from 'node:timers/promises';
import type { Statement } from '../core/context';
import { named } from './statement';

const NOTIFY = named(`select pg_notify('due', due) from unnest($1::text[]) due`);

/** The first notification goes out at once; further ones are gathered for so long. */
const PAUSE_MS = 20;

export interface DueNotifier {
  /** Sends a notification soon, batched with others of the interval. */
  notify(table: string): void;
}

/** @param send runs a statement on a connection of the pool */
export function openDueNotifier(send: (statement: Statement, values: unknown[]) => Promise<unknown>): DueNotifier {
  const tables = new Set<string>();
  let isNotifying = false;
  const notifyAll = async (): Promise<void> => {
    while (tables.size) {
      const now = [...tables];
      tables.clear();
      await send(NOTIFY, [now]).catch(() => undefined); // without the database nothing is worked on
      await sleep(PAUSE_MS, undefined, { ref: false });
    }
    isNotifying = false;
  };
  return {
    notify(table) {
      tables.add(table);
      if (isNotifying) return;
      isNotifying = true;
      void notifyAll();
    },
  };
}
