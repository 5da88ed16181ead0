// Refused calls, summed up per key, project, code and minute for the activity log (docs/decisions/rules.md §22). The
// request log has each.
import type { Identity } from '../../core/context';
import type { Logger } from '../../core/log/log';
import type { Sql } from '../../core/context';
import { repeatWork } from '../../core/process/background';
import { recordRefusals, type Refusals } from '../../models/projects/activity';

export interface RefusalCounter {
  count(identity: Identity, project: Refusals['project'], code: string): void;
  /** Flushes pending counts. */
  close(): Promise<void>;
}

const MINUTE_MS = 60_000;
const ENTRIES_MAX = 10_000;

export function openRefusalCounter(sql: Sql, log: Logger): RefusalCounter {
  let open = new Map<string, Refusals>();
  const failure = 'refused calls not noted';
  const { finish } = repeatWork({ name: 'refused_calls', everyMs: MINUTE_MS, log, failure }, async () => {
    const entries = [...open.values()];
    open = new Map();
    let failed: unknown;
    for (const entry of entries) await recordRefusals(sql, entry).catch((error: unknown) => (failed = error));
    if (failed) throw failed;
  });
  return {
    count(identity, project, code) {
      const name = `${identity.id} ${project?.id} ${code}`;
      const entry = open.get(name);
      if (entry) entry.count += 1;
      else if (open.size < ENTRIES_MAX) open.set(name, { identity, project, code, count: 1 });
    },
    close: finish,
  };
}
