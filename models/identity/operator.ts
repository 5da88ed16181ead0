// Operators of the installation: users who may see and change in their sessions what belongs to no project. Read from
// the database by each call, so that a role that was taken away counts at once.
import type { Context, Sql } from '../../core/context';
import { problem } from '../../core/errors';
import { named } from '../../db/statement';
import { sessionUser } from './user';

const IS = named('select is_operator from users where id = $1');
const COUNT = named('select count(*)::int as operators from users where is_operator');
const LOCK = named(`select pg_advisory_xact_lock(hashtext('platform-api operators'))`);
const GRANT = named('update users set is_operator = true where id = $1');
const REVOKE = named(`update users set is_operator = false
  where id = $1 and exists (select 1 from users where is_operator and id <> $1) returning id`);

type Reader = Pick<Sql, 'query'>;

export async function isOperator(sql: Reader, userId: string): Promise<boolean> {
  const [row] = await sql.query<{ is_operator: boolean }>(IS, [userId]);
  return row?.is_operator ?? false;
}

/** @throws role_not_permitted unless an operator calls in a session; a key or a program never is one */
export async function requireOperator(ctx: Context): Promise<void> {
  const isSession = ctx.identity?.kind === 'session';
  if (isSession && (await isOperator(ctx.sql, sessionUser(ctx).id))) return;
  throw problem('role_not_permitted', 'This is for operators of the installation.', { required_role: 'operator' });
}

export async function countOperators(sql: Reader): Promise<number> {
  const [row] = await sql.query<{ operators: number }>(COUNT, []);
  return row?.operators ?? 0;
}

export async function grantOperator(ctx: Context, userId: string): Promise<void> {
  await ctx.sql.query(LOCK, []);
  await ctx.sql.query(GRANT, [userId]);
}

/** In a transaction, so that of the last two operators one stays. @returns false for the only one, who stays */
export async function revokeOperator(ctx: Context, userId: string): Promise<boolean> {
  await ctx.sql.query(LOCK, []);
  return (await ctx.sql.query(REVOKE, [userId])).length > 0;
}
