// The last routes of the ingress, in a file: after a restart they are served at once, before the database has answered.
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { replaceFile } from '../../core/files';
import type { Logger } from '../../core/log/log';
import type { Route, Target } from '../../engines/ingress/ingress';
import { isUnitListening } from '../../drivers/runtime/listening';

export interface StoredRoutes {
  /** Routes of the last run. Targets that have ended since are left out: another program may use their port now. */
  load(): Promise<Route[]>;
  /** Written within a second; of many calls the last one counts. */
  save(routes: () => readonly Route[]): void;
  /** Writes what waits. */
  close(): Promise<void>;
}

const WRITE_AFTER_MS = 500;

/** @param directories `units` holds the run directories of the runtime */
export function openStoredRoutes({ file, units, log }: { file: string; units: string; log: Logger }): StoredRoutes {
  let waiting: (() => readonly Route[]) | null = null;
  let written: string | null = null;
  let timer: NodeJS.Timeout | null = null;
  let writing = Promise.resolve();
  const write = (): void => {
    timer = null;
    const text = waiting && JSON.stringify(waiting());
    waiting = null;
    if (text === null || text === written) return;
    writing = writing
      .then(() => mkdir(path.dirname(file), { recursive: true }))
      .then(() => replaceFile(file, text))
      .then(
        () => void (written = text),
        (error: unknown) => log.warn({ err: error }, 'The routes could not be stored for the next start.'),
      );
  };
  return {
    load: () => loadRoutes(file, units),
    save(routes) {
      waiting = routes;
      timer ??= setTimeout(write, WRITE_AFTER_MS).unref();
    },
    async close() {
      if (timer) clearTimeout(timer);
      write();
      await writing;
    },
  };
}

async function loadRoutes(file: string, units: string): Promise<Route[]> {
  const routes = parseRoutes(await readFile(file, 'utf8').catch(() => ''));
  return Promise.all(
    routes.map(async (route) => ({ ...route, targets: await listeningTargets(route.targets, units) })),
  );
}

async function listeningTargets(targets: readonly Target[], units: string): Promise<Target[]> {
  const listening = await Promise.all(
    targets.map(({ instance_id, port, location }) =>
      // The address of a pod may be another tenant's by now.
      location ? Promise.resolve(false) : isUnitListening(units, instance_id, port).catch(() => false),
    ),
  );
  return targets.filter((_, index) => listening[index]);
}

/** None where the file is absent or was cut off by a full disk. */
function parseRoutes(text: string): Route[] {
  try {
    return JSON.parse(text) as Route[];
  } catch {
    return [];
  }
}
