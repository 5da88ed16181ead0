// Keeps the cache of a further ingress in step with the rows of CDN zones and their purges: those that changed are read
// on NOTIFY, all zones at the start, after a lost connection, and periodically.
import type { Config } from '../../../core/config';
import { DriverError } from '../../../core/driver';
import type { Logger } from '../../../core/log/log';
import { repeatWork } from '../../../core/process/background';
import type { SecretBox } from '../../../core/secrets';
import type { ControlDatabase } from '../../../db/control_database';
import type { CdnDriver } from '../../../engines/cdn';
import { zoneSpecOf } from '../../../jobs/cdn/zone_spec';
import { openPurges, recordPurges, type OpenPurge } from '../../../models/cdn/cdn_purge/progress';
import { servedZones, type ServedZone } from '../../../models/cdn/cdn_zone/job_queries';
import { listen } from '../../platform/listener';
import type { CacheLease } from './cdn_lease';

interface CdnFeed {
  close(): Promise<void>;
}

interface Parts {
  config: Config;
  secrets: SecretBox;
  database: ControlDatabase;
  databaseUrl: string;
  cdn: CdnDriver;
  lease: CacheLease;
  ingressPort: number;
  log: Logger;
}

interface State extends Parts {
  /** Zones that may have changed. */
  changed: Set<string>;
  /** All may have. */
  all: boolean;
  arePurgesOpen: boolean;
  running: Promise<void> | null;
  /** Ids of the zones that are served. */
  served: Set<string>;
}

const READ_ALL_EVERY_MS = 30_000;
const FAILURE = 'The CDN zones could not be read.';

/** Resolves when the zones are served, or the database is away: then they are as soon as it is back. */
export async function startCdnFeed(parts: Parts): Promise<CdnFeed> {
  const state: State = {
    ...parts,
    ...{ changed: new Set(), all: true, arePurgesOpen: true, running: null, served: new Set() },
  };
  const { lease, databaseUrl, log } = parts;
  const readAll = (): Promise<void> => {
    state.all = true;
    return readNews(state);
  };
  const readLater = (): void => void readNews(state).catch((error: unknown) => log.warn({ err: error }, FAILURE));
  const handlers = {
    cdn_zones: (id: string): void => {
      state.changed.add(id);
      readLater();
    },
    cdn_purges: (): void => {
      state.arePurgesOpen = true;
      readLater();
    },
  };
  const reading = repeatWork({ name: 'cdn_zones', everyMs: READ_ALL_EVERY_MS, log, failure: FAILURE }, readAll);
  // With each renewal purges are read too: a notification may be lost without the connection.
  const renewing = lease.start(() => {
    state.arePurgesOpen = true;
    return readNews(state);
  });
  await readAll().catch((error: unknown) => log.warn({ err: error }, FAILURE));
  const listener = listen(databaseUrl, handlers, log, reading.runNow);
  await renewing.first;
  return {
    async close() {
      await listener.close();
      await reading.stop();
      await renewing.close();
      await state.running?.catch(() => undefined);
    },
  };
}

/** One read at a time. Resolves when all that was known to be new by now is read. */
async function readNews(state: State): Promise<void> {
  // A read under way may have begun before the news.
  await state.running?.catch(() => undefined);
  await (state.running ??= readAllNews(state).finally(() => (state.running = null)));
}

async function readAllNews(state: State): Promise<void> {
  for (;;) {
    if (state.all || state.changed.size) await readZones(state);
    // After the zones: how they keep objects decides what a purge means.
    else if (state.arePurgesOpen) await readPurges(state);
    else return;
  }
}

async function readZones(state: State): Promise<void> {
  const { all, changed } = state;
  const ids = all ? null : [...changed];
  [state.all, state.changed] = [false, new Set()];
  try {
    const zones = await servedZones(state.database, ids);
    const found = new Set(zones.map(({ id }) => id));
    for (const id of ids ?? state.served) if (!found.has(id)) await removeZone(state, id);
    for (const zone of zones) await ensureZone(state, zone);
  } catch (error) {
    state.all = true;
    throw error;
  }
}

async function ensureZone(state: State, zone: ServedZone): Promise<void> {
  const { config, secrets, ingressPort, cdn } = state;
  try {
    const spec = zoneSpecOf(zone, { config, secrets, ingressPort });
    await cdn.ensureZone(zone.id, spec);
    state.served.add(zone.id);
  } catch (error) {
    // As at the ingress of the jobs, which says so in the status of the zone: it is served as it was.
    if (!(error instanceof DriverError && error.reason === 'invalid')) throw error;
  }
}

async function removeZone({ cdn, served }: State, id: string): Promise<void> {
  await cdn.removeZone(id);
  served.delete(id);
}

async function readPurges(state: State): Promise<void> {
  const { database, lease, cdn } = state;
  const since = lease.caughtUpAt();
  // Before the first renewal nothing is kept.
  state.arePurgesOpen = false;
  if (since === null) return;
  try {
    const purges = await openPurges(database, lease.id, since);
    const run = ({ cdn_zone_id, type, values }: OpenPurge): Promise<void> =>
      cdn.purge(cdn_zone_id, { type, values: values ?? [] });
    await Promise.all(purges.map(run));
    const ids = purges.map(({ id }) => id);
    if (ids.length) await recordPurges(database, ids, lease.id);
  } catch (error) {
    state.arePurgesOpen = true;
    throw error;
  }
}
