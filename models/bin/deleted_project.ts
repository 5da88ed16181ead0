// Deleted projects. No project has them in its bin: those who own them list and restore them.
import type { Context, Identity } from '../../core/context';
import { isId } from '../../core/ids';
import { problem } from '../../core/errors';
import { named } from '../../db/statement';
import { page, type Page, type PageArguments } from '../base/page';
import { BinEntry } from './bin_entry';

const OWN = (user: string, ids: string): string => `deleted_resources d
    join members m on m.project_id = d.project_id and m.role = 'owner' and m.user_id = ${user}
  where d.resource_type = 'project' and (${ids}::text[] is null or d.project_id = any(${ids}))`;
const SOURCE = `(select d.* from ${OWN(':user', ':ids')}) as own`;
const LOCK = named(`select d.* from ${OWN('$2', '$3')} and d.id = $1 for update of d`, { makes: BinEntry });

/** One page of the deleted projects that the caller owned, within the restriction of its key. */
export function ownDeletedProjects(ctx: Context, args: PageArguments): Promise<Page<BinEntry>> {
  const { user, project_ids } = ctx.identity as Identity;
  const values = { user: user?.id ?? null, ids: project_ids };
  return page(BinEntry, ctx, args, {}, { from: SOURCE, columns: '*', values });
}

/** Its entry, locked. @throws not_found */
export async function ownDeletedProject(ctx: Context, id: string): Promise<BinEntry> {
  const { user, project_ids } = ctx.identity as Identity;
  if (!isId(BinEntry.idPrefix, id)) throw problem('not_found');
  const [entry] = await ctx.sql.query<BinEntry>(LOCK, [id, user?.id, project_ids]);
  if (!entry) throw problem('not_found');
  return entry;
}
