// The brake: a key that destroys too much within a minute is paused, until a person lets it go on. Destroying calls are
// counted in the row of the key, so that all processes count together; others cost nothing.
import type { Context, Identity } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { pausedKeyMail } from '../../core/mail/platform_mail';
import { named } from '../../db/statement';
import type { PausedKey } from '../../schema/types';
import type { Page } from '../base/page';
import { newest, type NewestArguments } from '../base/row';
import { sessionUser } from '../identity/user';
import { PLATFORM, recordProjectEvent } from '../projects/activity';
import { mailOwners } from './owners';

const RECENT = `select t from unnest(destroyed_at) t where t > now() - interval '1 minute'`;
const COUNT = named(`update api_keys set destroyed_at = array(${RECENT}) || now(),
    paused_at = case when (select count(*) from (${RECENT}) as recent) >= $2
      and coalesce(resumed_at < now() - make_interval(mins => $3), true) then now() end
  where id = $1 and paused_at is null returning paused_at`);
const WOULD_PAUSE = named(`select (select count(*) from (${RECENT}) as recent) + $2 > $3
    and coalesce(resumed_at < now() - make_interval(mins => $4), true) as pauses
  from api_keys where id = $1`);
const COLUMNS = 'k.id, k.kind, k.name, k.prefix, k.project_id, k.paused_at';
const MINE = `(k.user_id = $1 or exists (select from members m where m.project_id = k.project_id and m.user_id = $1
  and m.role = 'owner'))`;
const PAUSED = `select ${COLUMNS} from api_keys k where k.paused_at is not null and k.revoked_at is null and ${MINE}`;
const RESUME = named(`update api_keys k set paused_at = null, resumed_at = now(), destroyed_at = '{}'
  where k.id = $2 and k.paused_at is not null and k.revoked_at is null and ${MINE} returning ${COLUMNS}`);

/** Counts a destroying call of a key. @throws key_paused where it is one too many */
export async function countDestroyingCall(ctx: Context, key: Identity): Promise<void> {
  const { destroyingCallsPerMinute: max } = ctx.config;
  const isPaused = await ctx.transact(async (inner) => {
    const [row] = await inner.sql.query<{ paused_at: string | null }>(COUNT, [key.id, max, limits.resumedKeyMinutes]);
    if (row?.paused_at) await notifyOfPause(inner, key, max);
    return !row || row.paused_at !== null;
  });
  if (isPaused) throw problem('key_paused');
}

/** Whether so many destroying calls now would pause the key of the caller. */
export async function wouldPauseKey({ sql, identity, config }: Context, calls: number): Promise<boolean> {
  if (!identity || identity.kind === 'session') return false;
  const values = [identity.id, calls, config.destroyingCallsPerMinute, limits.resumedKeyMinutes];
  return (await sql.query<{ pauses: boolean }>(WOULD_PAUSE, values))[0]?.pauses ?? false;
}

async function notifyOfPause(ctx: Context, key: Identity, max: number): Promise<void> {
  await ctx.forget({ key_id: key.id });
  const project_id = key.project_id ?? ctx.project?.id ?? null;
  const { id, name, prefix } = key;
  if (project_id)
    await recordProjectEvent(ctx.sql, {
      ...{ project_id, action: 'api_key.paused', actor: PLATFORM, key_id: id },
      resource: { type: 'api_key', id, name },
    });
  const { baseUrl } = ctx.config;
  const link = project_id ? `${baseUrl}/projects/${project_id}/keys` : baseUrl;
  const mail = pausedKeyMail({ name, prefix, project: ctx.project?.name ?? null, max, link });
  await mailOwners(ctx, { project_id, also: key.user?.id ?? null }, mail);
}

/** One page of the paused keys that the person may let go on. */
export function listPausedKeys(ctx: Context, args: NewestArguments): Promise<Page<PausedKey>> {
  const values = [sessionUser(ctx).id];
  return newest<PausedKey>(ctx, args, { text: PAUSED, values, id: 'k.id', idOf: ({ id }) => id });
}

/** Lets a key go on, unwatched for an hour. @throws not_found, destroy_not_allowed */
export async function resumeKey(ctx: Context, id: string): Promise<PausedKey> {
  const [key] = await ctx.sql.query<PausedKey>(RESUME, [sessionUser(ctx).id, id]);
  if (!key) throw problem('not_found', 'There is no such key that is paused.');
  // Else a key that was leaked with less would open the way for one with more.
  if (!ctx.identity?.may_destroy) throw problem('destroy_not_allowed');
  await ctx.forget({ key_id: id });
  ctx.activity.resource = { type: 'api_key', id, name: key.name, project_id: key.project_id ?? null };
  return key;
}
