// Asking the provider of an integration: with a token that works, refreshed where it has expired, and with what the
// provider refuses written down.
import type { Probes, SourceResult, Sql } from '../../../core/context';
import { problem, type Problem } from '../../../core/errors';
import type { Config } from '../../../core/config';
import {
  GitProviderError,
  type GitAccess,
  type GitProviderReads,
  type GitRepositoryAddress,
  type GitTokens,
} from '../../../core/protocols/git_provider';
import type { SecretBox } from '../../../core/secrets';
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import { oauthClientOf } from './oauth';
import { sealedColumns } from '../../base/sealed_columns';

/** Dependencies of requests to a provider, available in API requests and in steps of the loop. */
export interface GitContext {
  sql: Sql;
  secrets: SecretBox;
  config: Config;
  probes: Pick<Probes, 'git' | 'gitOauth'>;
}

/** Columns of an integration that a request to its provider needs. */
interface IntegrationAccess {
  id: string;
  provider: GitAccess['provider'];
  base_url: string | null;
  auth_type: GitAccess['auth_type'];
  status: 'pending' | 'active' | 'error';
  status_reason: string | null;
  sealed_tokens: string | null;
  token_expires_at: string | null;
}

const COLUMNS = 'id, provider, base_url, auth_type, status, status_reason, sealed_tokens, token_expires_at';
const GET = named(`select ${COLUMNS} from git_integrations where id = $1`);
const LOCK = named(`select ${COLUMNS} from git_integrations where id = $1 for no key update`);
const SAVE = named(`update git_integrations set sealed_tokens = $2, token_expires_at = $3 where id = $1`);
const REFUSED = named(`update git_integrations set status = 'error', status_reason = $2, last_verified_at = now(),
  observed_generation = observed_generation + 1
  where id = $1 and status <> 'pending' and sealed_tokens is not distinct from $3`);

/** A token that expires sooner is refreshed first. */
const REFRESH_AHEAD_MS = 60_000;

/**
 * Runs questions with the integration's token. A token that the provider refuses before its time is refreshed once,
 * where it can be; else the integration turns to `error`.
 * @throws GitProviderError, invalid_state where the integration is not active, not_found where it has gone
 */
export function withProvider<T>(
  ctx: GitContext,
  id: string,
  work: (client: GitProviderReads) => Promise<T>,
): Promise<T> {
  return withProviderClient(ctx, id, ctx.probes.git, work);
}

/** The same with a client of the caller's own, for jobs. */
export async function withProviderClient<T, Client>(
  ctx: GitContext,
  id: string,
  open: (access: GitAccess) => Client,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const { row, access } = await accessOf(ctx, id);
  try {
    return await work(open(access));
  } catch (error) {
    if (!isUnauthorized(error)) throw error;
    const renewed = await noteRefusals(ctx, row, () => renewTokens(ctx, row));
    if (renewed.sealed_tokens !== row.sealed_tokens)
      return noteRefusals(ctx, renewed, () => work(open(accessWith(ctx, renewed))));
    await noteRefusal(ctx, row, error);
    throw error;
  }
}

/**
 * The address and current credentials of the integration. @throws as withProvider
 * @param status `any`: also where its token was refused
 */
export async function accessOf(
  ctx: GitContext,
  id: string,
  status: 'active' | 'any' = 'active',
): Promise<{ row: IntegrationAccess; access: GitAccess }> {
  const [found] = await ctx.sql.query<IntegrationAccess>(GET, [id]);
  if (!found) throw problem('not_found', 'The Git integration was deleted.');
  if (status === 'active') requireActive(found);
  const row = isExpiring(found) ? await noteRefusals(ctx, found, () => renewTokens(ctx, found)) : found;
  return { row, access: accessWith(ctx, row) };
}

function accessWith({ secrets }: GitContext, row: IntegrationAccess): GitAccess {
  const { provider, base_url, auth_type } = row;
  return { provider, base_url, auth_type, token: tokensOf(secrets, row).access_token };
}

export function requireActive({ status, status_reason }: Pick<IntegrationAccess, 'status' | 'status_reason'>): void {
  if (status === 'active') return;
  const why =
    status === 'pending'
      ? 'Access was not granted yet: open its `authorization_url`.'
      : `The provider refuses its token. ${status_reason ?? ''} Replace the token, or verify the integration.`;
  throw problem('invalid_state', `The Git integration is not active. ${why}`.trim(), {
    resource_status: status,
    allowed_statuses: ['active'],
  });
}

export function sealTokens(secrets: SecretBox, id: string, tokens: GitTokens): string {
  return secrets.seal(JSON.stringify(tokens), sealedColumns.gitTokens.contextOf(id));
}

/** The sentence of a provider as the problem of a request. */
export function providerProblem(error: unknown): unknown {
  if (!(error instanceof GitProviderError)) return error;
  if (error.failure === 'not_found') return problem('not_found', error.message);
  return providerFailure(error);
}

/** Another try with the same request is worth it where the provider was away, slow or busy. */
export function providerFailure({ failure, message }: GitProviderError): Problem {
  const found = problem('provider_error', message);
  found.retryable = !['unauthorized', 'forbidden', 'not_found'].includes(failure);
  return found;
}

/** Only what did not answer is worth another try with the same request. */
export function sourceProblem({ failure, message }: Extract<SourceResult, { found: false }>): Problem {
  const found = problem('provider_error', message);
  found.retryable = failure === 'unreachable';
  return found;
}

/** A repository with its present name, which some providers want in the address. */
export async function addressOf(client: GitProviderReads, id: string): Promise<GitRepositoryAddress> {
  const { full_name } = await client.repository(id);
  return { id, full_name };
}

function tokensOf(secrets: SecretBox, { id, sealed_tokens }: IntegrationAccess): GitTokens {
  if (sealed_tokens === null) throw new Error('an active integration has a token');
  return JSON.parse(secrets.open(sealed_tokens, sealedColumns.gitTokens.contextOf(id))) as GitTokens;
}

function isExpiring({ token_expires_at }: IntegrationAccess): boolean {
  return token_expires_at !== null && Date.parse(token_expires_at) - Date.now() < REFRESH_AHEAD_MS;
}

// A refresh token works once, so only one process may use it: the row is locked meanwhile, for as long as a question
// to the provider may take. Who comes second finds the tokens of the first.
function renewTokens(ctx: GitContext, known: IntegrationAccess): Promise<IntegrationAccess> {
  return (ctx.sql as Session).transaction(async (session) => {
    const [row] = await session.query<IntegrationAccess>(LOCK, [known.id]);
    if (!row) throw problem('not_found', 'The Git integration was deleted.');
    if (row.sealed_tokens === null) throw problem('invalid_state', 'The Git integration was changed meanwhile.');
    const { refresh_token } = tokensOf(ctx.secrets, row);
    if (row.sealed_tokens !== known.sealed_tokens || refresh_token === null) return row;
    const client = oauthClientOf(ctx.config, row);
    if (!client) throw new GitProviderError('failed', 'The platform has no OAuth client for this provider any more.');
    const fresh = await ctx.probes.gitOauth.refresh(row, client, refresh_token);
    const tokens = { ...fresh, refresh_token: fresh.refresh_token ?? refresh_token };
    const sealed_tokens = sealTokens(ctx.secrets, row.id, tokens);
    await session.query(SAVE, [row.id, sealed_tokens, tokens.expires_at]);
    return { ...row, sealed_tokens, token_expires_at: tokens.expires_at };
  });
}

/** Writes down that the provider refused the tokens of the row. */
async function noteRefusals<T>(ctx: GitContext, row: IntegrationAccess, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isUnauthorized(error)) await noteRefusal(ctx, row, error);
    throw error;
  }
}

async function noteRefusal(ctx: GitContext, row: IntegrationAccess, error: GitProviderError): Promise<void> {
  await ctx.sql.query(REFUSED, [row.id, error.message, row.sealed_tokens]);
}

function isUnauthorized(error: unknown): error is GitProviderError {
  return error instanceof GitProviderError && error.failure === 'unauthorized';
}
