// Clients of the authorisation server beyond the one that every installation has. The operator registers them.
import { randomBytes } from 'node:crypto';
import type { Context } from '../../core/context';
import { COMMAND_LINE_CLIENT, publicClient } from '../../core/oauth';
import { named } from '../../db/statement';
import { endConnection } from './connection';
import { destroyRecord, findRecord, listRecords, saveRecord } from './records';

export interface OauthClient {
  client_id: string;
  client_name: string;
  redirect_uris: string[];
}

const KIND = 'Client';
const CONNECTIONS = named(`select id from api_keys where client_id = $1 and kind = 'oauth' and revoked_at is null`);

/** @param redirect_uris checked by isRedirectUri */
export async function createOauthClient(ctx: Context, values: Omit<OauthClient, 'client_id'>): Promise<OauthClient> {
  const client = { client_id: randomBytes(16).toString('hex'), ...values };
  await saveRecord(ctx, KIND, client.client_id, publicClient(client), null);
  return client;
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
