// Observers: target, interval and notifiers. For the evaluation of results see models/observers/observer/results.ts.
import type { CheckOutcome, MetricRule } from '../../core/protocols/checks';
import { CHECK_NOW_SECONDS_MAX } from '../../core/protocols/checks';
import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { mintId, timeOfId } from '../../core/ids';
import { defineStates } from '../../core/states';
import type {
  CheckResult,
  CreateObserverInput,
  ObserverStatus,
  ObserverType,
  UpdateObserverInput,
} from '../../schema/types';
import type { Bin } from '../base/bin';
import { kindNamed } from '../base/kinds';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import type { CheckResult as CheckResultRow } from './check_result';
import { Notifier } from './notifier';
import type { Values } from '../../db/table';
import { named } from '../../db/statement';
import { masked, mergeMetric, mergeUptime, requireFields, type StoredUptime } from './observer/fields';
import { metricValues } from './observer/metric';
import { resolveIncident } from './observer/incident_moves';
import { checkElsewhere } from './observer/check_elsewhere';
import { localRegion, regionsOf, requireRegions } from './observer/regions';
import { applyFindings } from './observer/results';
import { observerBin, stopObserver } from './observer/bin';
import { scheduleChecks, unscheduleChecks } from './observer/check_rows';
import { sealedColumns } from '../base/sealed_columns';
import { requestedChanges } from '../base/requested_changes';

/** The result of a check on request. */
export type CheckedNow = { outcome: CheckOutcome | null } | { result: CheckResult };

/** Watches a target over the network, or a metric of an application or a database. */
export class Observer extends Resource {
  static readonly table = 'observers';
  static readonly kind = 'observer';
  static readonly idPrefix = 'obs';
  static override readonly projectChild = 'observers';
  static override readonly filters = {
    type: 'type = ?',
    status: 'status = ?',
    resource_id: 'resource_id = ?',
    notifier_id: 'notifier_ids @> array[?]::text[]',
  };
  static override readonly sorts = ['name'];
  static override readonly quotas = [{ resource: 'observers' }];
  static override readonly bin: Bin<Observer> = observerBin;
  static override readonly states = defineStates<ObserverStatus>({
    initial: ['pending', 'paused'],
    moves: {
      pending: ['ok', 'alerting', 'no_data', 'paused'],
      ok: ['alerting', 'no_data', 'paused'],
      alerting: ['ok', 'no_data', 'paused'],
      no_data: ['ok', 'alerting', 'paused'],
      paused: ['pending'],
    },
  });

  declare name: string;
  declare type: ObserverType;
  declare enabled: boolean;
  /** Values of headers are masked. */
  declare uptime: StoredUptime | null;
  declare sealed_headers: string | null;
  declare metric: MetricRule | null;
  declare resource_id: string | null;
  declare interval_seconds: number;
  declare failure_threshold: number;
  declare recovery_threshold: number;
  declare notifier_ids: string[];
  declare reminder_minutes: number | null;
  declare status: ObserverStatus;
  declare last_result: CheckResult | null;
  declare open_incident_id: string | null;

  /** @throws validation_failed, engine_unavailable, reference_not_found, quota_exceeded */
  static async create(ctx: Context, input: CreateObserverInput): Promise<Observer> {
    requireOwnObject(input);
    const uptime = input.uptime ? mergeUptime(null, input.uptime) : null;
    const metric = input.metric ? mergeMetric(null, input.metric) : null;
    const interval_seconds = input.interval_seconds ?? 60;
    requireFields({ uptime, metric, interval_seconds }, ctx.config);
    await requireReferences(ctx, { uptime, metric, notifier_ids: input.notifier_ids ?? [] });
    const enabled = input.enabled ?? true;
    const id = mintId(Observer.idPrefix);
    const created_at = timeOfId(id).toISOString();
    const made = await Observer.insert(ctx, {
      id,
      name: input.name,
      type: input.type,
      enabled,
      interval_seconds,
      ...uptimeColumns(ctx, id, uptime),
      ...metricColumns(metric),
      failure_threshold: input.failure_threshold ?? 2,
      recovery_threshold: input.recovery_threshold ?? 1,
      notifier_ids: input.notifier_ids ?? [],
      reminder_minutes: input.reminder_minutes ?? null,
      status: enabled ? 'pending' : 'paused',
      data_at: created_at,
    });
    if (enabled) await scheduleChecks(ctx, made, 'afresh');
    return made;
  }

  /** @throws validation_failed, engine_unavailable, reference_not_found */
  async change(ctx: Context, input: UpdateObserverInput): Promise<this> {
    requireSameType(this.type, input);
    const uptime = this.uptime && mergeUptime(this.withHeaders(ctx), input.uptime ?? {});
    const metric = this.metric && mergeMetric(this.metric, input.metric ?? {});
    const interval_seconds = input.interval_seconds ?? this.interval_seconds;
    requireFields({ uptime, metric, interval_seconds }, ctx.config);
    const present = { uptime: this.uptime && this.withHeaders(ctx), metric: this.metric };
    const checked = requestedChanges({ uptime, metric }, present);
    await requireReferences(ctx, {
      uptime: checked.uptime ?? null,
      regions: this.uptime?.regions,
      metric: checked.metric ?? null,
      notifier_ids: requestedChanges(input, this).notifier_ids ?? [],
    });
    const was = { enabled: this.enabled, interval: this.interval_seconds };
    const { reminder_minutes, enabled, ...plain } = requestedChanges(input, this);
    await this.update(ctx, {
      ...{ ...plain, reminder_minutes, enabled, uptime: undefined, metric: undefined },
      ...(checked.uptime && uptimeColumns(ctx, this.id, uptime)),
      ...(checked.metric && { ...metricColumns(metric), data_at: new Date().toISOString() }),
      ...(await this.switched(ctx, enabled)),
    });
    const isAfresh = !was.enabled || Boolean(checked.uptime ?? checked.metric);
    if (this.enabled && (isAfresh || was.interval !== interval_seconds))
      await scheduleChecks(ctx, this, isAfresh ? 'afresh' : 'as_they_are');
    if (reminder_minutes !== undefined) await ctx.sql.query(REMIND, [this.id, this.reminder_minutes]);
    return this;
  }

  /** Its results and incidents stay with it in the bin. */
  async destroy(ctx: Context): Promise<void> {
    await stopObserver(ctx, this, 'The observer was deleted.');
    await removeToBin(ctx, this);
  }

  /**
   * What the check finds now, for `check`: from here, or from a probe, whose result has been counted already. Null
   * where there is no such observer, or it is paused.
   */
  static async probe(ctx: Context, id: string): Promise<CheckedNow | null> {
    const observer = await Observer.get(ctx, id).catch(() => null);
    if (!observer?.enabled) return null;
    if (observer.metric) return { outcome: (await metricValues(ctx.sql, [observer.metric]))[0] ?? null };
    if (!regionsOf(observer.uptime, ctx.config).includes(localRegion(ctx.config)))
      return { result: await checkElsewhere(ctx, id) };
    const check = observer.withHeaders(ctx);
    const timeout_seconds = Math.min(check.timeout_seconds, CHECK_NOW_SECONDS_MAX);
    return { outcome: await ctx.probes.check({ ...check, timeout_seconds }) };
  }

  /** Counts what a probe has found. @throws invalid_state while paused; provider_error where the metric has no value */
  async record(ctx: Context, checked: CheckedNow | null): Promise<CheckResultRow> {
    this.requireStatus(['pending', 'ok', 'alerting', 'no_data']);
    ctx.activity.resource = { type: Observer.kind, id: this.id, name: this.name, project_id: this.project_id };
    if (checked && 'result' in checked) return checked.result as unknown as CheckResultRow;
    const outcome = checked?.outcome;
    if (!outcome) throw problem('provider_error', 'The metric has no value in its window.');
    const region = localRegion(ctx.config);
    const [result] = await applyFindings(ctx.sql, [
      { observer_id: this.id, region, fence: null, checked_at: new Date(), outcome },
    ]);
    if (!result) throw problem('not_found');
    // A plain row without a version.
    return result as unknown as CheckResultRow;
  }

  /** What to check, with the values of headers. */
  withHeaders(ctx: Pick<Context, 'secrets'>): StoredUptime {
    return openUptime(ctx, this);
  }

  override revertState(ctx: Pick<Context, 'secrets'>): Values {
    return { ...(this as object), uptime: this.uptime && this.withHeaders(ctx) };
  }

  // Changes of `enabled`; no changes where it stays the same.
  private async switched(ctx: Context, enabled: boolean | null | undefined): Promise<Values> {
    if (enabled == null || enabled === this.enabled) return {};
    if (enabled) return { status: 'pending', data_at: new Date().toISOString() };
    if (this.open_incident_id) await resolveIncident(ctx.sql, this, new Date(), null);
    await unscheduleChecks(ctx, this.id);
    return { status: 'paused', open_incident_id: null };
  }
}

const REMIND = named(
  `update incidents set remind_at = now() + $2::int * interval '1 minute' where observer_id = $1 and status = 'open'`,
);

interface Sealed {
  id: string;
  uptime: StoredUptime | null;
  sealed_headers: string | null;
}

/** What an uptime observer checks, with the values of its headers. */
export function openUptime(
  { secrets }: Pick<Context, 'secrets'>,
  { id, uptime, sealed_headers }: Sealed,
): StoredUptime {
  if (!uptime) throw new Error('not an uptime observer');
  if (!sealed_headers) return uptime;
  return {
    ...uptime,
    headers: JSON.parse(
      secrets.open(sealed_headers, sealedColumns.observerHeaders.contextOf(id)),
    ) as StoredUptime['headers'],
  };
}

function uptimeColumns({ secrets }: Context, id: string, uptime: StoredUptime | null): Values {
  if (!uptime) return { uptime: null };
  const sealed_headers = uptime.headers.length
    ? secrets.seal(JSON.stringify(uptime.headers), sealedColumns.observerHeaders.contextOf(id))
    : null;
  return { uptime: masked(uptime), sealed_headers };
}

function metricColumns(metric: MetricRule | null): Values {
  return { metric, resource_id: metric?.resource_id ?? null };
}

function requireOwnObject({ type, uptime, metric }: CreateObserverInput): void {
  const given = type === 'uptime' ? uptime : metric;
  if (!given) throw validationFailed([{ field: type, code: 'required', detail: `is required for the type ${type}` }]);
}

function requireSameType(type: Observer['type'], input: UpdateObserverInput): void {
  const other = type === 'uptime' ? 'metric' : 'uptime';
  if (input[other])
    throw validationFailed([{ field: other, code: 'depends_on', detail: `needs an observer of the type ${other}` }]);
  if (input[type] === null) throw validationFailed([{ field: type, code: 'required', detail: 'must not be null' }]);
}

interface References {
  uptime: StoredUptime | null;
  /** Of the observer before an update. */
  regions?: readonly string[];
  metric: MetricRule | null;
  notifier_ids: readonly string[];
}

async function requireReferences(
  ctx: Context,
  { uptime, regions = [], metric, notifier_ids }: References,
): Promise<void> {
  if (uptime) await requireRegions(ctx, uptime, regions);
  if (metric)
    await Resource.referenced.call(kindNamed(metric.resource_type), ctx, metric.resource_id, 'metric.resource_id');
  for (const id of [...notifier_ids].sort()) await Notifier.referenced(ctx, id, 'notifier_ids');
}
