import DataLoader from 'dataloader';
import type { Context } from '../../core/context';
import { firstIdAt } from '../../core/ids';
import type { IncidentNotification, IncidentStatus, QueryListObserverIncidentsArgs } from '../../schema/types';
import { named } from '../../db/statement';
import { page, type Page, type PageArguments } from '../base/page';
import { Resource } from '../base/resource';

/** An incident: a period in which an observer was alerting. */
export class Incident extends Resource {
  static readonly table = 'incidents';
  static readonly kind = 'incident';
  static readonly idPrefix = 'inc';
  static override readonly filters = { status: 'status = ?', since: 'id >= ?', until: 'id < ?' };

  declare observer_id: string;
  declare status: IncidentStatus;
  declare cause: string;
  declare started_at: string;
  declare resolved_at: string | null;

  /** Incidents of an observer. `since` and `until` become bounds of ids, which carry the start time. */
  static list(ctx: Context, { id: observer_id, ...args }: QueryListObserverIncidentsArgs): Promise<Page<Incident>> {
    const since = args.since && firstIdAt(Incident.idPrefix, args.since);
    const until = args.until && firstIdAt(Incident.idPrefix, args.until);
    return page(Incident, ctx, { ...args, since, until } as PageArguments, { observer_id });
  }

  get duration_seconds(): number | null {
    if (!this.resolved_at) return null;
    return Math.round((Date.parse(this.resolved_at) - Date.parse(this.started_at)) / 1000);
  }

  /** Messages about it, in their order: one query for all incidents of a page. */
  notifications(ctx: Context): Promise<IncidentNotification[]> {
    const name = `incident.notifications:${this.project_id}`;
    const known = ctx.loaders.get(name) as DataLoader<string, IncidentNotification[]> | undefined;
    const loader = known ?? new DataLoader((ids) => load(ctx, this.project_id, ids));
    ctx.loaders.set(name, loader);
    return loader.load(this.id);
  }
}

const NOTIFICATIONS = named(
  `select incident_id, notifier_id, case when status = 'delivered' then sent_at end as sent_at, status
    from notifications
  where incident_id = any($1) and project_id = $2 order by incident_id, seq`,
);

async function load(ctx: Context, projectId: string, ids: readonly string[]): Promise<IncidentNotification[][]> {
  const rows = await ctx.sql.query<IncidentNotification & { incident_id: string }>(NOTIFICATIONS, [ids, projectId]);
  return ids.map((id) => rows.filter(({ incident_id }) => incident_id === id));
}
