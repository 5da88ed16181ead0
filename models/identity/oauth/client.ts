// Clients of the authorisation server beyond the one that every installation has. The operator registers them, or they
// register themselves where OAUTH_REGISTRATION is on.
import { randomBytes } from 'node:crypto';
import { addressBlock } from '../../../core/protocols/addresses';
import type { Registration } from '../../../core/accounts/client_registration';
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { limits } from '../../../core/limits';
import { COMMAND_LINE_CLIENT, publicClient } from '../../../core/accounts/oauth';
import { sha256 } from '../../../core/accounts/tokens';
import { named } from '../../../db/statement';
import { endConnection } from './connection';
import { destroyRecord, findRecord, listRecords, saveRecord } from './records';

export interface OauthClient {
  client_id: string;
  client_name: string;
  redirect_uris: string[];
}

const KIND = 'Client';
const CONNECTIONS = named(`select id from api_keys where client_id = $1 and kind = 'oauth' and revoked_at is null`);
// Requests at the same time count each other.
const LOCK = named(`select pg_advisory_xact_lock(hashtext('oauth client registration'))`);
const COUNT = named(`select count(*)::int as all, count(*) filter (where registered_from = $1
    and created_at > now() - interval '1 hour')::int as from_address
  from oauth_records where kind = 'Client' and registered_from is not null`);
const MARK = named(`update oauth_records set registered_from = $2 where kind = 'Client' and hash = $1`);
const IS_MARKED = named(`select 1 from oauth_records
  where kind = 'Client' and hash = $1 and registered_from is not null`);

/** @param redirect_uris checked by isRedirectUri */
export async function createOauthClient(ctx: Context, values: Omit<OauthClient, 'client_id'>): Promise<OauthClient> {
  const client = { client_id: randomBytes(16).toString('hex'), ...values };
  await saveRecord(ctx, KIND, client.client_id, publicClient(client), null);
  return client;
}

/**
 * Dynamic client registration. The registration expires after a day unless a user authorizes the client.
 * @throws rate_limited where too many registrations came from the address, or exist
 */
export async function registerOauthClient(ctx: Context, values: Registration): Promise<OauthClient> {
  const { grant_types, ...described } = values;
  const client = { client_id: randomBytes(16).toString('hex'), ...described };
  const address = addressBlock(ctx.address);
  return ctx.transact(async (inner) => {
    await inner.sql.query(LOCK, []);
    const [count] = await inner.sql.query<{ all: number; from_address: number }>(COUNT, [address]);
    if ((count?.from_address ?? 0) >= limits.registrationsPerAddressAndHour)
      throw tooMany('Too many programs were registered from this address within an hour.');
    if ((count?.all ?? 0) >= limits.registeredClientsMax)
      throw tooMany(
        'Too many programs are registered. Unused registrations are deleted within a day, so try again later.',
      );
    const seconds = limits.unusedRegistrationHours * 3600;
    await saveRecord(inner, KIND, client.client_id, publicClient(client, grant_types), seconds);
    await inner.sql.query(MARK, [sha256(client.client_id), address]);
    return client;
  });
}

/** Whether a client has registered itself, so that its name and other details are unverified. */
export async function isSelfRegistered(ctx: Context, id: string): Promise<boolean> {
  return (await ctx.sql.query(IS_MARKED, [sha256(id)])).length > 0;
}

/** All clients, the built-in one first. */
export async function listOauthClients(ctx: Context): Promise<OauthClient[]> {
  const found = (await listRecords(ctx, KIND)) as unknown as OauthClient[];
  const { redirect_uris, ...builtIn } = COMMAND_LINE_CLIENT;
  const all = [{ ...builtIn, redirect_uris: [...redirect_uris] }, ...found];
  return all.map(({ client_id, client_name, redirect_uris: uris }) => ({
    client_id,
    client_name,
    redirect_uris: uris,
  }));
}

/** Ends all that people had allowed it. @returns false where there is no such client */
export async function deleteOauthClient(ctx: Context, id: string): Promise<boolean> {
  if (!(await findRecord(ctx, KIND, id, 'read'))) return false;
  for (const key of await ctx.sql.query<{ id: string }>(CONNECTIONS, [id])) await endConnection(ctx, key.id);
  await destroyRecord(ctx.sql, KIND, id);
  return true;
}

function tooMany(detail: string): Error {
  return problem('rate_limited', detail, {}, { 'Retry-After': '3600' });
}
