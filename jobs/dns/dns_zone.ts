// DNS zones: served by the name server of the host, and their delegation looked for at the parent again and again.
import type { NameserverDriver, ZoneObserved, ZoneRecord, ZoneSpec } from '../../engines/dns';
import { toSentence } from '../../core/sentence';
import { DriverError, driverContext, type Desired, type Observation } from '../../core/driver';
import { DnsZone, delegationReason, delegationVerdictOf } from '../../models/dns/dns_zone';
import { wakeRecordOwners } from '../../models/dns/dns_record/owners';
import type { DelegationFindings } from '../../models/dns/dns_zone/delegation';
import { dnssecVerdictOf, openKeys, sealKeys } from '../../models/dns/dns_zone/dnssec';
import {
  isActiveElsewhere,
  claimRefusalOf,
  REFUSAL_REASONS,
  resolveFindings,
  supersedeClaims,
  wakeClaims,
  type Refusal,
} from '../../models/dns/dns_zone/claims';
import { raiseAboveLast, recordLastSerial } from '../../models/dns/dns_zone/last_serials';
import { pruneKeys, raiseSerial, recordDnssec, recordsToServe } from '../../models/dns/dns_zone/job_queries';
import {
  gone,
  jittered,
  progressing,
  requireHost,
  settled,
  type Job,
  type JobContext,
  type LoopRow,
  type Outcome,
  type Values,
} from '../job';

type ZoneRow = LoopRow &
  Pick<
    DnsZone,
    | 'project_id'
    | 'name'
    | 'serial'
    | 'default_ttl'
    | 'soa'
    | 'name_servers'
    | 'observed_name_servers'
    | 'status'
    | 'status_reason'
    | 'elsewhere_since'
    | 'last_checked_at'
    | 'created_at'
    | 'signing_keys'
    | 'dnssec_status'
  >;

const OBSERVE_MS = 5_000;
/** External changes in an engine (drift) are repaired after this time. */
const DRIFT_MS = 5 * 60_000;
const RENEW_MS = 3 * 86_400_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export const job: Job<ZoneRow> = {
  table: DnsZone.table,
  host: true,
  park: async (row, ctx) => {
    await stopAnswering(row, ctx);
    return settled({ is_served: false });
  },
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcile(row, ctx)),
};

async function reconcile(row: ZoneRow, ctx: JobContext): Promise<Outcome> {
  const driver = nameserverOf(ctx);
  if (!driver) return progressing(jittered(HOUR_MS));
  await renewForSecondaries(driver, row, ctx);
  // Checked before the zone is first served: the name may still be delegated here for a removed zone.
  const isNew = row.last_checked_at === null;
  // Claims that were made at the same time did not see each other.
  if (isNew) await wakeClaims(ctx.sql, row);
  const first = isNew ? await check(row, ctx) : {};
  const { columns, refusal, serial } = await serve(driver, { ...row, ...first }, ctx);
  const before = { ...row, ...first, ...columns, serial };
  const dueInMs = Date.parse(before.last_checked_at ?? '') + intervalMsOf(driver, before, refusal) - Date.now();
  // A changed record is served at once; the parent zone is queried afterwards.
  if (dueInMs > 0) return settled({ ...first, ...columns }, dueInMs);
  const found = await check(row, ctx);
  const after = { ...before, ...found };
  // The delegation by the parent zone decides which claim is served.
  const served = await serve(driver, after, ctx);
  const nextMs = jittered(intervalMsOf(driver, after, served.refusal));
  return settled({ ...columns, ...found, ...served.columns }, nextMs);
}

/**
 * Secondaries have the signatures of their last transfer, which live for 14 days and are renewed five days before their
 * end. A new serial in between makes them fetch fresh ones.
 */
async function renewForSecondaries(driver: NameserverDriver, row: ZoneRow, ctx: JobContext): Promise<void> {
  if (driver.isExternal || !ctx.config.dnsSecondaries.length || row.signing_keys === null) return;
  const since = Date.parse((row.observed as { renewed_at?: string } | null)?.renewed_at ?? row.created_at);
  if (Date.now() - since < RENEW_MS) return;
  const serial = await raiseSerial(ctx.sql, row);
  if (serial === null) return;
  row.serial = serial;
  row.observed = { ...(row.observed as object | null), renewed_at: new Date().toISOString() };
}

interface Served {
  columns: Values;
  refusal: Refusal | null;
  /** Of the row, which may have been raised. */
  serial: number;
}

async function serve(driver: NameserverDriver, row: ZoneRow, ctx: JobContext): Promise<Served> {
  const desired = await desiredZone(row, ctx);
  const before = await driver.observe(desired, driverContext(OBSERVE_MS, ctx.signal));
  const refusal = await claimRefusalOf(ctx.sql, row, ctx.config.dnsDomain);
  const reason = refusal ? REFUSAL_REASONS[refusal] : delegationReason(row.name_servers, row.observed_name_servers);
  if (refusal) {
    await remove(driver, row, desired, before, ctx);
    const columns = { driver: driver.name, status_reason: reason, is_served: false };
    return { columns, refusal, serial: row.serial };
  }
  // The zone of another claim that is being removed, or one that was created outside the platform.
  if (before.state === 'foreign') throw new DriverError('transient', 'The name server has another zone of this name.');
  if (row.driver === null) await ctx.record({ driver: driver.name });
  if (before.state === 'absent') desired.spec.serial = await raiseAboveLast(ctx.sql, row);
  const { ref } = await driver.ensure(desired, before, ctx).catch(async (error) => {
    if (error instanceof DriverError && error.reason === 'invalid')
      await ctx.record({ status_reason: toSentence(error.message) });
    throw error;
  });
  const after = await driver.observe(desired, driverContext(OBSERVE_MS, ctx.signal));
  if (after.state !== 'present' || !after.upToDate)
    throw new DriverError('transient', 'The name server does not have the zone yet.');
  const { observed } = after;
  const { renewed_at } = (row.observed ?? {}) as { renewed_at?: string };
  const seen = { ...observed, ...(renewed_at !== undefined && { renewed_at }) };
  const serial = driver.isExternal ? observed.serial : desired.spec.serial;
  const columns = { driver: driver.name, ref, observed: seen, status_reason: reason, is_served: true };
  return { columns: { ...columns, ...(driver.isExternal && { serial }) }, refusal, serial };
}

/** Its serial is kept, where the name server has the zone. */
async function remove(
  driver: NameserverDriver,
  row: ZoneRow,
  desired: Desired<ZoneSpec>,
  before: Observation<ZoneObserved>,
  ctx: JobContext,
): Promise<void> {
  if (before.state === 'present')
    await recordLastSerial(ctx.sql, row, Math.max(before.observed.serial, driver.isExternal ? 0 : row.serial));
  await driver.remove(desired, before, ctx);
}

async function tearDown(row: ZoneRow, ctx: JobContext): Promise<Outcome> {
  await stopAnswering(row, ctx);
  return gone;
}

async function stopAnswering(row: ZoneRow, ctx: JobContext): Promise<void> {
  const driver = nameserverOf(ctx);
  if (!driver) return;
  const desired = await desiredZone(row, ctx);
  await remove(driver, row, desired, await driver.observe(desired, driverContext(OBSERVE_MS, ctx.signal)), ctx);
}

function nameserverOf(ctx: JobContext): NameserverDriver | null {
  return requireHost(ctx).nameserver;
}

async function desiredZone(row: ZoneRow, ctx: JobContext): Promise<Desired<ZoneSpec>> {
  const { name, serial, default_ttl, soa, name_servers } = row;
  const records = (await recordsToServe(ctx.sql, row.id)) as ZoneRecord[];
  const keys = openKeys(ctx.secrets, row);
  return { id: row.id, spec: { name, serial, default_ttl, soa, name_servers, records, keys } };
}

/** Queries the parent zone and adopts its answer. Without an answer nothing changes. */
async function check(row: ZoneRow, ctx: JobContext): Promise<Values> {
  const answer = await ctx.probes.zone.delegation(row.name);
  const now = new Date();
  if (!answer) {
    ctx.log.warn('no server of the parent zone gave an answer');
    return { last_checked_at: now.toISOString() };
  }
  const findings = await resolveFindings(ctx.sql, row, answer);
  const verdict = delegationVerdictOf(row, findings, now);
  const moves = verdict.status !== row.status;
  if (moves && verdict.status === 'active') {
    await supersedeClaims(ctx.sql, row, findings.name_servers);
    if (await isActiveElsewhere(ctx.sql, row)) return { ...verdict, status: row.status };
  }
  if (row.signing_keys !== null) await checkDnssec(row, findings, ctx, now);
  if (moves) {
    // Recorded first, since the rows that are woken read it.
    await ctx.record({ status: verdict.status });
    await wakeClaims(ctx.sql, row);
    await wakeRecordOwners(ctx.sql, row);
  }
  return { ...verdict, ...(moves && { updated_at: now.toISOString() }) };
}

async function checkDnssec(
  row: ZoneRow,
  { ds_records }: DelegationFindings,
  ctx: JobContext,
  now: Date,
): Promise<void> {
  const verdict = dnssecVerdictOf(row.name, openKeys(ctx.secrets, row), ds_records, now);
  await recordDnssec(ctx.sql, row, { status: verdict.dnssec_status, checked_at: verdict.dnssec_checked_at });
  if (verdict.keys) await pruneKeys(ctx.sql, row, sealKeys(ctx.secrets, row.id, verdict.keys));
}

/** Delay until the next check of the delegation, which also repairs external changes in an engine. */
function intervalMsOf(driver: NameserverDriver, row: ZoneRow, refusal: Refusal | null): number {
  const intervalMs = checkIntervalMs(row, refusal);
  return driver.isExternal ? Math.min(intervalMs, DRIFT_MS) : intervalMs;
}

/** Parents of new and of contested zones are queried often: their owners are waiting. */
function checkIntervalMs(
  { status, created_at, elsewhere_since, dnssec_status }: ZoneRow,
  refusal: Refusal | null,
): number {
  const isFresh = Date.now() - Date.parse(created_at) < HOUR_MS;
  if (status !== 'active' && (isFresh || refusal === 'contested')) return MINUTE_MS;
  if (status !== 'active' || elsewhere_since || dnssec_status === 'pending') return 10 * MINUTE_MS;
  return HOUR_MS;
}
