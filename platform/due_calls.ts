// Calls the loops of all processes to tables with rows that are due. The rows say so themselves, and a loop that was not
// called looks every second: a call only saves the wait. So it is made after the commit, and one for many: a NOTIFY inside
// the transactions would have their commits wait for each other (PostgreSQL takes one lock for all that notify).
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from '../core/context';
import { named } from '../db/statement';

const NOTIFY = named(`select pg_notify('due', due) from unnest($1::text[]) due`);

/** The first call goes out at once; those that come while many rows are written are gathered for so long. */
const PAUSE_MS = 20;

export interface DueCalls {
  /** Calls soon; what is due meanwhile is called with it. */
  call(table: string): void;
}

export function openDueCalls(database: Sql): DueCalls {
  const tables = new Set<string>();
  let isCalling = false;
  const callAll = async (): Promise<void> => {
    while (tables.size) {
      const now = [...tables];
      tables.clear();
      await database.query(NOTIFY, [now]).catch(() => undefined); // without the database nothing is worked on
      await sleep(PAUSE_MS, undefined, { ref: false });
    }
    isCalling = false;
  };
  return {
    call(table) {
      tables.add(table);
      if (isCalling) return;
      isCalling = true;
      void callAll();
    },
  };
}
