// OAuth at a Git provider: the address that a person opens, and the callback.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Config } from '../../../core/config';
import type { Probes } from '../../../core/context';
import { problem } from '../../../core/errors';
import { GIT_PROVIDER_TITLES, type GitAccess, type GitOauthClient } from '../../../core/protocols/git_provider';
import { isId } from '../../../core/ids';
import type { SecretBox } from '../../../core/secrets';
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import type { Values } from '../../../db/table';
import { sealedColumns } from '../../base/sealed_columns';

/** Where providers send people back to, beside /v2. */
export const OAUTH_CALLBACK_PATH = '/git/oauth/callback';

type Provider = Pick<GitAccess, 'provider' | 'base_url'>;

/** What proves that an answer belongs to the question: sealed in the row until it is used. */
interface Grant {
  state: string;
  verifier: string;
}

const LIFETIME_MS = 24 * 3_600_000;

/** The client that the operator has registered; null where there is none. */
export function oauthClientOf(config: Config, { provider, base_url }: Provider): GitOauthClient | null {
  const found = config.gitOauthClients.find((one) => one.provider === provider && one.base_url === base_url);
  if (!found) return null;
  const { client_id, client_secret } = found;
  return { client_id, client_secret, redirect_uri: config.baseUrl + OAUTH_CALLBACK_PATH };
}

/** @throws engine_unavailable where the operator has registered no client */
export function requireOauthClient(config: Config, place: Provider): GitOauthClient {
  const client = oauthClientOf(config, place);
  if (client) return client;
  const where = place.base_url === null ? GIT_PROVIDER_TITLES[place.provider] : place.base_url;
  throw problem(
    'engine_unavailable',
    `This installation has no OAuth client for ${where}. Use a token, or ask the operator to set GIT_OAUTH_CLIENTS.`,
  );
}

/** Columns of a new authorization. An earlier one stops working. */
export function newGrant(secrets: SecretBox, id: string): Values {
  const grant: Grant = {
    state: `${id}.${randomBytes(32).toString('base64url')}`,
    verifier: randomBytes(48).toString('base64url'),
  };
  return {
    sealed_grant: secrets.seal(JSON.stringify(grant), sealedColumns.gitGrant.contextOf(id)),
    grant_expires_at: new Date(Date.now() + LIFETIME_MS).toISOString(),
  };
}

export const NO_GRANT = { sealed_grant: null, grant_expires_at: null };

interface Granted extends Provider {
  id: string;
  project_id: string;
  sealed_grant: string | null;
  grant_expires_at: string | null;
}

/** The address to open; null where no authorization is under way. */
export function authorizationUrlOf(
  { secrets, config, probes }: { secrets: SecretBox; config: Config; probes: Pick<Probes, 'gitOauth'> },
  row: Granted,
): string | null {
  const client = row.sealed_grant === null ? null : oauthClientOf(config, row);
  if (!client || row.sealed_grant === null) return null;
  const grant = JSON.parse(secrets.open(row.sealed_grant, sealedColumns.gitGrant.contextOf(row.id))) as Grant;
  return probes.gitOauth.authorizationUrl(row, client, grant);
}

const FIND = named(`select g.id, g.project_id, g.provider, g.base_url, g.name, g.sealed_grant, g.grant_expires_at,
    p.name as project_name
  from git_integrations g join projects p on p.id = g.project_id and p.deleted_at is null
  where g.id = $1 and g.deleted_at is null and g.sealed_grant is not null and g.grant_expires_at > now()`);
const CONSUME_GRANT = named(`update git_integrations set sealed_grant = null, grant_expires_at = null
  where id = $1 and sealed_grant = $2 returning id`);

export interface PendingGrant extends Granted {
  name: string;
  project_name: string;
  sealed_grant: string;
  verifier: string;
}

/** The authorization that a state belongs to; null where it is unknown, over, or used already. */
export async function findGrant(sql: Session, secrets: SecretBox, state: string): Promise<PendingGrant | null> {
  const [id = ''] = state.split('.');
  if (!isId('gin', id)) return null;
  const [row] = await sql.query<Omit<PendingGrant, 'verifier'>>(FIND, [id]);
  if (!row) return null;
  const grant = JSON.parse(secrets.open(row.sealed_grant, sealedColumns.gitGrant.contextOf(id))) as Grant;
  return isEqual(grant.state, state) ? { ...row, verifier: grant.verifier } : null;
}

/** Uses it up: a second answer with the same state finds nothing. */
export async function takeGrant(sql: Session, { id, sealed_grant }: PendingGrant): Promise<boolean> {
  return (await sql.query(CONSUME_GRANT, [id, sealed_grant])).length > 0;
}

function isEqual(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
