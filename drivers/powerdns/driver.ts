// PowerDNS as name server, through its HTTP API. The `account` of a zone is its resource id; zones with other accounts
// are never touched. PowerDNS maintains serials, signs, and sends transfers.
import type { DriverContext, Fingerprint, Observation, Owned } from '../../core/driver';
import { asDriverErrors, checkpoint, DriverError } from '../../core/driver';
import type { NameserverDriver, ZoneObserved, ZoneSpec } from '../../engines/dns';
import {
  openPowerdnsApi,
  UnexpectedContent,
  type ApiRrset,
  type ApiZone,
  type PowerdnsApi,
  type PowerdnsOptions,
} from './api';
import { openCounters } from './counters';
import { isAsDesired, readKeyState, writeKeys, type KeyState } from './keys';
import { adoptExpectedContent, changesBetween, rrsetsOf, type RrsetChange } from './rrsets';

const NAME = 'powerdns';
const ACCOUNT_PREFIX = 'platform:';
/** PowerDNS accepts bodies of up to 2 MB. */
const PATCH_BYTES_MAX = 1_000_000;
/**
 * The serial consists of the date and a number, incremented with each change; in a signed zone also with new
 * signatures.
 */
const SETTINGS = { kind: 'Master', soa_edit_api: 'DEFAULT', soa_edit: 'INCEPTION-INCREMENT', api_rectify: true };

/** Sends no request yet. */
export function openPowerdns(options: PowerdnsOptions): NameserverDriver {
  const api = openPowerdnsApi(options);
  const counters = openCounters(api, ACCOUNT_PREFIX);
  return {
    name: NAME,
    isExternal: true,
    fingerprint: (ctx) => fingerprint(api, ctx),
    async observe({ id, spec }, ctx) {
      return (await inspect(api, id, spec, ctx)).observation;
    },
    ensure: ({ id, spec }, _, ctx) => asDriverErrors(() => ensure(api, id, spec, ctx)),
    remove: ({ id, spec }, _, ctx) => asDriverErrors(() => remove(api, id, spec, ctx)),
    async *list(ctx): AsyncIterable<Owned> {
      for (const { account } of (await api.call<ApiZone[]>('GET', '/zones', ctx)) ?? []) {
        if (!account.startsWith(ACCOUNT_PREFIX)) continue;
        const owner_id = account.slice(ACCOUNT_PREFIX.length);
        yield { ref: { driver: NAME, name: owner_id }, owner_id };
      }
    },
    takeCounters: (ctx) => counters.take(ctx),
  };
}

async function fingerprint(api: PowerdnsApi, ctx: DriverContext): Promise<Fingerprint> {
  try {
    const server = await api.call<{ version: string }>('GET', '', ctx);
    return { healthy: true, reason: null, facts: { version: server?.version ?? 'unknown', dnssec: true } };
  } catch (error) {
    return { healthy: false, reason: (error as Error).message, facts: {} };
  }
}

interface Inspection {
  observation: Observation<ZoneObserved>;
  changes: RrsetChange[];
  keys: KeyState;
  hasSettings: boolean;
  zone: ApiZone | null;
}

const NO_KEYS: KeyState = { missing: [], surplus: [], unpublished: [] };

async function inspect(api: PowerdnsApi, id: string, spec: ZoneSpec, ctx: DriverContext): Promise<Inspection> {
  const none = { changes: [], keys: NO_KEYS, hasSettings: false, zone: null };
  const zone = await api.call<ApiZone>('GET', pathOf(spec), ctx);
  if (!zone) return { ...none, observation: { state: 'absent' } };
  if (zone.account !== accountOf(id))
    return { ...none, observation: { state: 'foreign', detail: `The zone ${spec.name} belongs to another owner.` } };
  const changes = changesBetween(zone.rrsets, rrsetsOf(spec, zone.serial));
  const keys = spec.keys.length || zone.dnssec ? await readKeyState(api, pathOf(spec), spec.keys, ctx) : NO_KEYS;
  const hasSettings = zone.kind === SETTINGS.kind && zone.soa_edit_api === SETTINGS.soa_edit_api;
  const upToDate = changes.length === 0 && isAsDesired(keys) && hasSettings;
  const observed = {
    // The served serial: SOA-EDIT raises it on some days, also in unsigned zones.
    serial: zone.edited_serial ?? zone.serial,
    record_count: spec.records.length,
    is_signed: zone.dnssec,
  };
  const diff = changes.slice(0, 5).map(({ changetype, name, type }) => `${changetype} ${name} ${type}`);
  const observation = { state: 'present' as const, upToDate, observed, ...(!upToDate && { diff: diff.join(', ') }) };
  return { observation, changes, keys, hasSettings, zone };
}

async function ensure(
  api: PowerdnsApi,
  id: string,
  spec: ZoneSpec,
  ctx: DriverContext,
): Promise<{ ref: { driver: string; name: string } }> {
  checkpoint(ctx);
  const before = await inspect(api, id, spec, ctx);
  if (before.observation.state === 'absent') await create(api, id, spec, ctx).catch(ignoreConflict);
  const found = before.observation.state === 'absent' ? await inspect(api, id, spec, ctx) : before;
  if (found.observation.state !== 'present')
    throw new DriverError('conflict', `The name server has another zone ${spec.name}.`);
  if (!found.hasSettings) await api.call('PUT', pathOf(spec), ctx, SETTINGS);
  for (const rrsets of batchesOf(found.changes)) await writeSets(api, spec, rrsets, ctx);
  if (!isAsDesired(found.keys)) {
    await writeKeys(api, pathOf(spec), found.keys, ctx);
    // A change of keys alone would leave unsigned answers in caches, and the old serial on secondaries.
    const rrsets = [{ ...soaOf(spec, found), changetype: 'REPLACE' as const }];
    await api.call('PATCH', pathOf(spec), ctx, { rrsets });
  }
  return { ref: { driver: NAME, name: id } };
}

/** PowerDNS takes a value only as it would write it itself, which its versions do in different ways. */
async function writeSets(api: PowerdnsApi, spec: ZoneSpec, rrsets: RrsetChange[], ctx: DriverContext): Promise<void> {
  for (;;) {
    try {
      await api.call('PATCH', pathOf(spec), ctx, { rrsets });
      return;
    } catch (error) {
      if (!(error instanceof UnexpectedContent) || !adoptExpectedContent(rrsets, error)) throw error;
    }
  }
}

/** A creation that timed out may still have succeeded: the zone is found by the next observation then. */
function ignoreConflict(error: unknown): void {
  if (!(error instanceof DriverError) || error.reason !== 'conflict') throw error;
}

function soaOf(spec: ZoneSpec, { zone }: Inspection): ApiRrset {
  return rrsetsOf(spec, zone?.serial ?? spec.serial)[0] as ApiRrset;
}

/** Creates the zone with SOA and name servers only; the rest is a regular change. */
async function create(api: PowerdnsApi, id: string, spec: ZoneSpec, ctx: DriverContext): Promise<void> {
  const rrsets = rrsetsOf({ ...spec, records: [] }, spec.serial);
  const zone = { name: `${spec.name}.`, account: accountOf(id), nameservers: [], rrsets };
  await api.call('POST', '/zones', ctx, { ...SETTINGS, ...zone });
}

/** A single batch, if it fits into one body. */
function batchesOf(changes: RrsetChange[]): RrsetChange[][] {
  const batches: RrsetChange[][] = [];
  let bytes = Infinity;
  for (const change of changes) {
    const more = JSON.stringify(change).length;
    if (bytes + more > PATCH_BYTES_MAX) {
      batches.push([]);
      bytes = 0;
    }
    bytes += more;
    batches.at(-1)?.push(change);
  }
  return batches;
}

async function remove(api: PowerdnsApi, id: string, spec: ZoneSpec, ctx: DriverContext): Promise<void> {
  checkpoint(ctx);
  const zone = await zoneOf(api, id, spec, ctx);
  if (zone) await api.call('DELETE', pathOf({ name: zone.name.replace(/\.$/, '') }), ctx);
}

/** Found by name, or by account where the name differs (only the id of an orphan is known). */
async function zoneOf(api: PowerdnsApi, id: string, spec: ZoneSpec, ctx: DriverContext): Promise<ApiZone | null> {
  const named = await api.call<ApiZone>('GET', `${pathOf(spec)}?rrsets=false`, ctx);
  if (named?.account === accountOf(id)) return named;
  const zones = (await api.call<ApiZone[]>('GET', '/zones', ctx)) ?? [];
  return zones.find(({ account }) => account === accountOf(id)) ?? null;
}

/** PowerDNS encodes slashes in ids as `=2F`. */
function pathOf({ name }: Pick<ZoneSpec, 'name'>): string {
  return `/zones/${name.replaceAll('/', '=2F')}.`;
}

function accountOf(id: string): string {
  return `${ACCOUNT_PREFIX}${id}`;
}
