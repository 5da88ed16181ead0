// Keeps the routes of the ingress in step with the database: routes of an application are reloaded on NOTIFY, all
// routes at the start, after a lost connection, and periodically.
import type { Logger } from '../../core/log/log';
import { repeatWork } from '../../core/process/background';
import type { IngressDriver, Route } from '../../engines/ingress/ingress';
import type { ControlDatabase } from '../../db/control_database';
import { podRowsConfirmedMsAgo } from '../../models/applications/cluster_facts';
import { loadRoutes } from '../../models/applications/route';
import { listen } from '../platform/listener';
import type { StoredRoutes } from './stored_routes';

interface RouteFeed {
  close(): Promise<void>;
}

const READ_ALL_EVERY_MS = 30_000;
const RETRY_MS = 1_000;
const CONFIRM_EVERY_MS = 1_000;

interface Parts {
  database: ControlDatabase;
  databaseUrl: string;
  ingress: IngressDriver;
  /** Is given all routes after each change. */
  stored?: Pick<StoredRoutes, 'save'>;
  /** Whether instances are pods of a cluster, whose addresses may be another's tomorrow. */
  onCluster: boolean;
  log: Logger;
}

interface State extends Parts {
  /** Applications whose routes may have changed. */
  changed: Set<string>;
  /** All may have. */
  all: boolean;
  running: Promise<void> | null;
  /** As read last, by application. */
  known: Map<string, Route[]>;
  retry: NodeJS.Timeout | undefined;
}

/** Resolves when the ingress has its first routes. */
export async function startRouteFeed(parts: Parts): Promise<RouteFeed> {
  const state: State = { ...parts, changed: new Set(), all: true, running: null, known: new Map(), retry: undefined };
  await readRoutes(state);
  if (parts.onCluster) await confirmRead(state);
  const readAll = (): Promise<void> => {
    state.all = true;
    return readRoutes(state);
  };
  const readOne = (id: string): void => {
    state.changed.add(id);
    void readRoutes(state);
  };
  const listener = listen(
    parts.databaseUrl,
    { routes: readOne, certificates: (host) => parts.ingress.forgetCertificate(host) },
    parts.log,
    () => void readAll(),
  );
  const { log } = parts;
  const failure = 'The routes could not be read.';
  const reading = repeatWork({ name: 'all_routes', everyMs: READ_ALL_EVERY_MS, log, failure }, async () => {
    await readAll();
    // Which has logged why, and tries again sooner.
    if (state.all) throw new Error('the routes could not be read');
  });
  const confirming = parts.onCluster
    ? repeatWork({ name: 'routes_confirmation', everyMs: CONFIRM_EVERY_MS, log, failure }, () => confirmRead(state))
    : null;
  return {
    async close() {
      clearTimeout(state.retry);
      await listener.close();
      await Promise.all([reading.stop(), confirming?.stop()]);
      await state.running;
    },
  };
}

/** That the routes are those of the rows, and the rows those of the cluster; not while a change waits to be read. */
async function confirmRead(state: State): Promise<void> {
  const isRead = (): boolean => state.running === null && !state.all && state.changed.size === 0;
  if (!isRead()) return;
  const startedAt = performance.now();
  const ageMs = await podRowsConfirmedMsAgo(state.database).catch(() => null);
  if (ageMs !== null && isRead()) state.ingress.confirmRoutes(ageMs + performance.now() - startedAt);
}

/** One read at a time: what changes meanwhile is read next. */
function readRoutes(state: State): Promise<void> {
  return (state.running ??= readWhatChanged(state).finally(() => (state.running = null)));
}

async function readWhatChanged(state: State): Promise<void> {
  while (state.all || state.changed.size) {
    try {
      await readNext(state);
    } catch (error) {
      // The ingress goes on with the routes that it has; the next read replaces them all.
      state.log.warn({ err: error }, 'The routes could not be read.');
      state.all = true;
      clearTimeout(state.retry);
      state.retry = setTimeout(() => void readRoutes(state), RETRY_MS).unref();
      return;
    }
  }
}

async function readNext(state: State): Promise<void> {
  const { database, ingress, changed, known } = state;
  const read = ingress.beginRead();
  if (state.all) {
    state.all = false;
    changed.clear();
    const routes = await loadRoutes(database, null);
    ingress.replaceRoutes(routes, read);
    known.clear();
    for (const route of routes) known.set(route.application_id, [...(known.get(route.application_id) ?? []), route]);
  } else {
    const id = changed.values().next().value as string;
    changed.delete(id);
    const routes = await loadRoutes(database, id);
    ingress.replaceApplicationRoutes(id, routes, read);
    known.set(id, routes);
  }
  state.stored?.save(() => [...known.values()].flat());
}
