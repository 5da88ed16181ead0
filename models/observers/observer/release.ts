// What watches an application or a database goes with it.
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';
import { resolveIncident, type Alerting } from './incident_moves';

const WATCHING = named('select * from observers where resource_id = $1 and project_id = $2 order by id for update');
const RESULTS = named('delete from check_results where observer_id = $1');
const REMOVE = named('delete from observers where id = $1');

/** Deletes the observers of a resource, with their results and incidents; an open incident is resolved first. */
export async function releaseObservers(ctx: Context, resourceId: string): Promise<void> {
  for (const observer of await ctx.sql.query<Alerting>(WATCHING, [resourceId, ctx.project?.id])) {
    if (observer.open_incident_id)
      await resolveIncident(ctx.sql, observer, new Date(), 'The watched resource was deleted.');
    await ctx.sql.query(RESULTS, [observer.id]);
    await ctx.sql.query(REMOVE, [observer.id]);
  }
}
