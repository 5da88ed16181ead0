// The way into a new installation without a command line: a code that the first start prints, with which the owner sets
// an e-mail address and a password. Only its SHA-256 is stored, as of links by mail.
import type { Context, Sql } from '../../core/context';
import { problem } from '../../core/errors';
import { mintSecret, sha256 } from '../../core/accounts/tokens';
import { named } from '../../db/statement';
import type { SetUpOwnerInput } from '../../schema/types';
import { startSession, type Viewer } from './session';
import { findUserById, hashNewPassword, normalEmail, requirePasswordLogin, setPassword, type UserRow } from './user';
import { addressBlock } from '../../core/protocols/addresses';

const CODE_HOURS = 24;

// Nobody but the owner of a new installation: there is no other user, and no way to log in.
const OWNER = `select u.id from users u where u.password_hash is null
  and (select count(*) from users) = 1 and not exists (select 1 from linked_logins)`;
const INSERT = named(`insert into account_links (hash, purpose, user_id, expires_at)
  select $1, 'first_start', o.id, now() + make_interval(hours => ${CODE_HOURS}) from (${OWNER}) o returning user_id`);
const OPEN = `select l.user_id as id from account_links l join (${OWNER}) o on o.id = l.user_id
  where l.hash = $1 and l.purpose = 'first_start' and l.used_at is null and l.expires_at > now()`;
const FIND = named(OPEN);
const LOCK = named(`${OPEN} for update of l`);
const NAME = named('update users set email = $2, name = $3 where id = $1');

export interface PreparedOwner {
  email: string;
  name: string;
  hash: string;
}

/** A new code, valid once within a day; null where the owner has a way to log in. */
export async function newFirstStartCode(sql: Sql): Promise<string | null> {
  const code = mintSecret('fst_');
  const [made] = await sql.query(INSERT, [sha256(code)]);
  return made ? code : null;
}

/**
 * What setting up needs before its transaction: the hash of the password.
 * @throws not_found, validation_failed on `password`, rate_limited, engine_unavailable
 */
export async function prepareOwner(ctx: Context, input: SetUpOwnerInput): Promise<PreparedOwner> {
  requirePasswordLogin(ctx);
  await ctx.attempt(`first start ${addressBlock(ctx.address)}`);
  const [found] = await ctx.sql.query<{ id: string }>(FIND, [sha256(input.code)]);
  if (!found) throw noCode();
  const person = { email: normalEmail(input.email), name: input.name ?? 'Owner' };
  return { ...person, hash: await hashNewPassword(input.password, 'password', person) };
}

/** Sets e-mail address, name and password of the owner, and begins a session. @throws not_found */
export async function setUpOwner(ctx: Context, code: string, { email, name, hash }: PreparedOwner): Promise<Viewer> {
  const [owner] = await ctx.sql.query<{ id: string }>(LOCK, [sha256(code)]);
  if (!owner) throw noCode();
  await ctx.sql.query(NAME, [owner.id, email, name]);
  // Voids this code and all others that were printed.
  await setPassword(ctx, owner.id, hash, null);
  return startSession(ctx, (await findUserById(ctx, owner.id)) as UserRow);
}

function noCode(): Error {
  return problem(
    'not_found',
    'The code does not exist, was used, or is over. A restart of the service prints another.',
  );
}
