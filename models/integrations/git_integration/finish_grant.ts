// The end of an authorization: the code becomes tokens, and the integration is active.
import { GIT_PROVIDER_TITLES, GitProviderError, type GitAccount } from '../../../core/protocols/git_provider';
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import { recordEvent } from '../../projects/activity';
import { sealTokens, type GitContext } from './client';
import { requireOauthClient, takeGrant, type PendingGrant } from './oauth';

const ACTIVATE = named(`update git_integrations set status = 'active', status_reason = null, sealed_tokens = $2,
  token_expires_at = $3, account = $4, account_id = $5, last_verified_at = now(), version = version + 1,
  name = case when account is null and name = $6 then $7 else name end,
  observed_generation = observed_generation + 1, updated_at = greatest(now(), updated_at) where id = $1`);

/**
 * Uses the grant up, whatever becomes of it. @throws GitProviderError, already_exists for an account that is connected
 */
export async function finishGrant(
  ctx: GitContext & { sql: Session },
  grant: PendingGrant,
  code: string,
): Promise<GitAccount> {
  if (!(await takeGrant(ctx.sql, grant))) throw new GitProviderError('unauthorized', 'The link was used already.');
  const { provider, base_url } = grant;
  const client = requireOauthClient(ctx.config, grant);
  const tokens = await ctx.probes.gitOauth.exchangeCode(grant, client, { code, verifier: grant.verifier });
  const access = { provider, base_url, auth_type: 'oauth' as const, token: tokens.access_token };
  const { missing_scopes, ...account } = await ctx.probes.git(access).account();
  if (missing_scopes.length)
    throw new GitProviderError('forbidden', `The scope ${missing_scopes.join(', ')} was not granted.`);
  const sealed = sealTokens(ctx.secrets, grant.id, tokens);
  await ctx.sql.transaction(async (session) => {
    const values = [grant.id, sealed, tokens.expires_at, JSON.stringify(account), account.id];
    await session.query(ACTIVATE, [...values, GIT_PROVIDER_TITLES[provider], account.login]);
    await recordEvent(session, 'git_integrations', grant, 'granted');
  });
  return account;
}
