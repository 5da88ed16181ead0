// Observers in the bin: those that were deleted, and those that went with what they watch.
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';
import type { Bin } from '../../base/bin';
import { kindNamed } from '../../base/kinds';
import { requireCountWithin } from '../../base/quota';
import { Resource } from '../../base/resource';
import type { Observer } from '../observer';
import { scheduleChecks, unscheduleChecks } from './check_rows';
import { resolveIncident, type Alerting } from './incident_moves';

const RESULTS = named('delete from check_results where observer_id = $1');
const NOTIFIERS = named('select id from notifiers where id = any($1) and project_id = $2 and deleted_at is null');
const WATCHING = named(`select * from observers where resource_id = $1 and project_id = $2 and deleted_at is null
  order by id for update`);
const REMOVE = named('update observers set deleted_at = now() where id = $1');
const BRING_BACK = named(`update observers set deleted_at = null, open_incident_id = null, data_at = now(),
    status = case when enabled then 'pending' else 'paused' end, version = version + 1,
    updated_at = greatest(now(), updated_at)
  where id = any($1) and deleted_at is not null returning *`);

export const observerBin: Bin<Observer> = {
  nameFormat: 'label',
  purge: async ({ sql }, { id }) => void (await sql.query(RESULTS, [id])),
  async restore(ctx, observer) {
    const { metric, enabled, notifier_ids } = observer;
    if (metric)
      await Resource.referenced.call(kindNamed(metric.resource_type), ctx, metric.resource_id, 'metric.resource_id');
    const present = await presentNotifiers(ctx, observer);
    const status = enabled ? 'pending' : 'paused';
    const changes = { status, open_incident_id: null, data_at: new Date().toISOString(), notifier_ids: present };
    await observer.update(ctx, changes);
    if (enabled) await scheduleChecks(ctx, observer, 'afresh');
    const missing = notifier_ids.length - present.length;
    return missing ? [`${missing} of the notifiers of the observer \`${observer.name}\` were deleted.`] : [];
  },
};

/** Stops an observer: an open incident is resolved, so that its notifiers get a message about the end. */
export async function stopObserver(ctx: Context, observer: Alerting, note: string): Promise<void> {
  if (observer.open_incident_id) await resolveIncident(ctx.sql, observer, new Date(), note);
  await unscheduleChecks(ctx, observer.id);
}

/** Stops the observers of a resource and takes them out of all reads. @returns their ids, to go along into the bin */
export async function removeObserversOf(ctx: Context, resource: Resource): Promise<string[]> {
  const watching = await ctx.sql.query<Alerting>(WATCHING, [resource.id, resource.project_id]);
  for (const observer of watching) {
    await stopObserver(ctx, observer, 'The watched resource was deleted.');
    await ctx.sql.query(REMOVE, [observer.id]);
  }
  return watching.map(({ id }) => id);
}

/** The observers that went along with a resource which is there again. @throws quota_exceeded */
export async function bringBackObservers(
  ctx: Context,
  { project_id }: Resource,
  ids: readonly string[],
): Promise<void> {
  if (!ids.length) return;
  for (const observer of await ctx.sql.query<Observer>(BRING_BACK, [ids]))
    if (observer.enabled) await scheduleChecks(ctx, observer, 'afresh');
  await requireCountWithin(ctx, kindNamed('observer'), project_id);
}

async function presentNotifiers(ctx: Context, { notifier_ids, project_id }: Observer): Promise<string[]> {
  const found = await ctx.sql.query<{ id: string }>(NOTIFIERS, [notifier_ids, project_id]);
  const present = new Set(found.map(({ id }) => id));
  return notifier_ids.filter((id) => present.has(id));
}
