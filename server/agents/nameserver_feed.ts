// Keeps a further name server in step with the rows of DNS zones: those that changed are read on NOTIFY, the serials of
// all at the start, after a lost connection, and periodically.
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../core/driver';
import type { Logger } from '../../core/log/log';
import { repeatWork } from '../../core/process/background';
import type { SecretBox } from '../../core/secrets';
import type { ControlDatabase } from '../../db/control_database';
import type { EmbeddedNameserver, ZoneRecord, ZoneSpec } from '../../engines/dns';
import { openKeys } from '../../models/dns/dns_zone/dnssec';
import { claimNotices, servedSerials, zonesToServe, type ZoneToServe } from '../../models/dns/dns_zone/served';
import { DnsZone } from '../../models/dns/dns_zone';
import { listen } from '../platform/listener';

interface Parts {
  database: ControlDatabase;
  databaseUrl: string;
  secrets: SecretBox;
  server: EmbeddedNameserver;
  /** Whether there are secondaries to notify. */
  hasSecondaries: boolean;
  log: Logger;
}

interface State extends Parts {
  /** Zones that may have changed. */
  changed: Set<string>;
  /** All may have. */
  all: boolean;
  running: Promise<void> | null;
  /** Zones that were taken over, whose secondaries may have to be notified. */
  taken: Set<string>;
  /** Zones that could not be taken over, as where another one still has the name: tried again. */
  failed: Set<string>;
}

const READ_ALL_EVERY_MS = 30_000;
const READ_TOGETHER = 200;
/** A disk syncs several files in the time of one. */
const SAVED_TOGETHER = 32;
const WITHIN_MS = 30_000;
const RETRY_MS = 5_000;
/** The name server of the jobs notifies sooner, unless it is away. */
const NOTIFY_AFTER_MS = 5_000;
const FAILURE = 'The DNS zones could not be read.';

interface NameserverFeed {
  close(): Promise<void>;
}

/** Resolves when the zones are those of the rows, or the database is away: then they are as soon as it is back. */
export async function startNameserverFeed(parts: Parts): Promise<NameserverFeed> {
  const state: State = { ...parts, changed: new Set(), all: true, running: null, taken: new Set(), failed: new Set() };
  const { databaseUrl, log } = parts;
  const readAll = (): Promise<void> => {
    state.all = true;
    return readNews(state);
  };
  const handlers = {
    dns_zones: (id: string): void => {
      state.changed.add(id);
      void readNews(state).catch((error: unknown) => log.warn({ err: error }, FAILURE));
    },
  };
  const reading = repeatWork({ name: 'dns_zones', everyMs: READ_ALL_EVERY_MS, log, failure: FAILURE }, readAll);
  const retrying = repeatWork({ name: 'dns_zones_again', everyMs: RETRY_MS, log, failure: FAILURE }, async () => {
    for (const id of state.failed) state.changed.add(id);
    state.failed.clear();
    await readNews(state);
  });
  const failure = 'Secondaries could not be notified.';
  const notifying = repeatWork({ name: 'dns_notices', everyMs: NOTIFY_AFTER_MS, log, failure }, () =>
    notifySecondaries(state),
  );
  await readAll().catch((error: unknown) => log.warn({ err: error }, FAILURE));
  const listener = listen(databaseUrl, handlers, log, reading.runNow);
  return {
    async close() {
      await listener.close();
      await reading.stop();
      await retrying.stop();
      await notifying.stop();
      await state.running?.catch(() => undefined);
    },
  };
}

/** One read at a time. Resolves when all that was known to be new by now is read. */
async function readNews(state: State): Promise<void> {
  // A read under way may have begun before the news.
  await state.running?.catch(() => undefined);
  await (state.running ??= readChanged(state).finally(() => (state.running = null)));
}

async function readChanged(state: State): Promise<void> {
  while (state.all || state.changed.size) {
    const { all, changed } = state;
    [state.all, state.changed] = [false, new Set()];
    try {
      const ids = all ? [...new Set([...changed, ...(await differingZones(state))])] : [...changed];
      for (let from = 0; from < ids.length; from += READ_TOGETHER)
        await readZones(state, ids.slice(from, from + READ_TOGETHER));
    } catch (error) {
      state.all = true;
      throw error;
    }
  }
}

/** Zones with another serial than here, and those here that are not answered any more. */
async function differingZones({ database, server }: State): Promise<string[]> {
  const serials = await servedSerials(database);
  const differing = [...serials].filter(([id, serial]) => server.serialOf(id) !== serial).map(([id]) => id);
  for await (const { owner_id } of server.list(driverContext(WITHIN_MS)))
    if (owner_id.startsWith(`${DnsZone.idPrefix}_`) && !serials.has(owner_id)) differing.push(owner_id);
  return differing;
}

async function readZones(state: State, ids: readonly string[]): Promise<void> {
  const zones = await zonesToServe(state.database, ids);
  const found = new Set(zones.map(({ id }) => id));
  // First, since a zone of the same name may follow.
  for (const id of ids) if (!found.has(id)) await removeZone(state, id);
  for (let from = 0; from < zones.length; from += SAVED_TOGETHER)
    await Promise.all(zones.slice(from, from + SAVED_TOGETHER).map((zone) => ensureZone(state, zone)));
}

/** One that cannot be answered, for whatever reason, keeps no other from being taken over. */
async function ensureZone(state: State, zone: ZoneToServe): Promise<void> {
  const { server, secrets, taken, failed, log } = state;
  try {
    const spec = specOf(zone, secrets);
    await server.ensure({ id: zone.id, spec }, { state: 'absent' }, driverContext(WITHIN_MS));
    taken.add(zone.id);
  } catch (error) {
    failed.add(zone.id);
    log.warn({ err: error, zone: zone.id }, 'a DNS zone could not be taken over; it is tried again');
  }
}

async function removeZone({ server }: State, id: string): Promise<void> {
  if (server.serialOf(id) === null) return;
  const desired = { id, spec: { name: '' } as ZoneSpec };
  await server.remove(desired, { state: 'absent' }, driverContext(WITHIN_MS));
}

function specOf(zone: ZoneToServe, secrets: SecretBox): ZoneSpec {
  const { name, serial, default_ttl, soa, name_servers } = zone;
  const records = zone.records as ZoneRecord[];
  return { name, serial, default_ttl, soa, name_servers, records, keys: openKeys(secrets, zone) };
}

/** Of what the name server of the jobs has not taken over meanwhile: each by one server alone. */
async function notifySecondaries(state: State): Promise<void> {
  const ids = [...state.taken];
  state.taken.clear();
  if (!state.hasSecondaries || !ids.length) return;
  await sleep(NOTIFY_AFTER_MS);
  for (const name of await claimNotices(state.database, ids)) state.server.notifySecondaries(name);
}
