// Users of the installation, for its operators: who they are and when they were there, and nothing of what they have.
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { named } from '../../db/statement';
import type { AccountStatus } from '../../schema/types';
import type { Page } from '../base/page';
import { newest, noteChange, type NewestArguments } from '../base/row';
import { requireOperator } from './operator';
import type { SessionRow } from './session';

export interface InstallationUser {
  id: string;
  name: string;
  email: string;
  account_id: string;
  account_status: AccountStatus;
  is_operator: boolean;
  email_confirmed: boolean;
  two_factor_enabled: boolean;
  last_seen_at: string | null;
  sessions: number;
  keys: number;
  projects: number;
  created_at: string;
}

const ALIVE = 's.expires_at > now() and s.last_seen_at > now() - make_interval(hours => $1)';
// The parts of a user are read for the rows of the page alone: the limit stands in the same statement.
const USERS = `select u.id, u.name, u.email, u.account_id, a.status as account_status, u.is_operator,
    u.email_confirmed_at is not null as email_confirmed, u.totp_confirmed_at is not null as two_factor_enabled,
    greatest((select max(s.last_seen_at) from sessions s where s.user_id = u.id),
      (select max(k.last_used_at) from api_keys k where k.user_id = u.id and k.revoked_at is null)) as last_seen_at,
    (select count(*)::int from sessions s where s.user_id = u.id and ${ALIVE}) as sessions,
    (select count(*)::int from api_keys k where k.user_id = u.id and k.revoked_at is null) as keys,
    (select count(*)::int from members m where m.user_id = u.id) as projects, u.created_at
  from users u join accounts a on a.id = u.account_id where true`;
const SESSIONS = `select s.id, s.address, s.user_agent, s.id = $3 as current, s.created_at, s.last_seen_at, s.expires_at
  from sessions s where s.user_id = $2 and ${ALIVE}`;
const EXISTS = named('select id, name from users where id = $1');
const END = named('delete from sessions where user_id = $1 and id is distinct from $2 returning id');

/** @throws role_not_permitted, invalid_cursor */
export async function listInstallationUsers(
  ctx: Context,
  { search, ...args }: NewestArguments & { search?: string | null },
): Promise<Page<InstallationUser>> {
  await requireOperator(ctx);
  const words = search?.trim() ?? '';
  const found = words === '' ? '' : ' and (u.id = $2 or u.email ilike $3 or u.name ilike $3)';
  const values = [limits.sessionIdleHours, ...(words === '' ? [] : [words, containing(words)])];
  return newest<InstallationUser>(ctx, args, { text: USERS + found, values, id: 'u.id', idOf: ({ id }) => id });
}

/** Pattern of `ilike` for what contains a text. */
export function containing(text: string): string {
  return `%${text.replace(/[\\%_]/g, '\\$&')}%`;
}

/** @throws role_not_permitted, invalid_cursor */
export async function listUserSessions(
  ctx: Context,
  { user_id, ...args }: NewestArguments & { user_id: string },
): Promise<Page<SessionRow>> {
  await requireOperator(ctx);
  const values = [limits.sessionIdleHours, user_id, ctx.identity?.id ?? null];
  return newest<SessionRow>(ctx, args, { text: SESSIONS, values, id: 's.id', idOf: ({ id }) => id });
}

/** @throws role_not_permitted, not_found */
export async function endUserSessions(ctx: Context, userId: string): Promise<{ count: number }> {
  await requireOperator(ctx);
  const [user] = await ctx.sql.query<{ id: string; name: string }>(EXISTS, [userId]);
  if (!user) throw problem('not_found', 'There is no such user.');
  const ended = await ctx.sql.query<{ id: string }>(END, [userId, ctx.identity?.id ?? null]);
  await ctx.forget({ user_id: userId });
  noteChange(ctx, { type: 'user', id: user.id, name: user.name });
  return { count: ended.length };
}
