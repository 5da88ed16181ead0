import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import {
  GIT_PROVIDER_TITLES,
  GitProviderError,
  type GitAccess,
  type GitAccount,
} from '../../core/protocols/git_provider';
import { mintId } from '../../core/ids';
import { defineStates } from '../../core/states';
import type { CreateGitIntegrationInput, UpdateGitIntegrationInput } from '../../schema/types';
import type { Values } from '../../db/table';
import type { Bin } from '../base/bin';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { isOnlyField } from '../base/requested_changes';
import { normalBaseUrl } from './git_integration/base_url';
import { accessOf, providerFailure, providerProblem, sealTokens } from './git_integration/client';
import { dependentsOf } from './git_integration/dependents';
import { newGrant, NO_GRANT, requireOauthClient } from './git_integration/oauth';

/** What the provider said of a token. */
export type TokenAnswer = { account: GitAccount } | { refused: string };

/** A connection of a project to an account of a Git provider. The token is sealed; nothing shows it. */
export class GitIntegration extends Resource {
  static readonly table = 'git_integrations';
  static readonly kind = 'git_integration';
  static readonly idPrefix = 'gin';
  static override readonly projectChild = 'git_integrations';
  static override readonly filters = { provider: 'provider = ?', status: 'status = ?' };
  static override readonly sorts = ['name'];
  static override readonly quotas = [{ resource: 'git_integrations' }];
  static override readonly bin: Bin<GitIntegration> = { nameFormat: 'label' };
  static override readonly states = defineStates({
    initial: ['pending', 'active'],
    moves: { pending: ['active'], active: ['error', 'pending'], error: ['active', 'pending'] },
  });

  declare name: string;
  declare provider: GitAccess['provider'];
  declare base_url: string | null;
  declare auth_type: GitAccess['auth_type'];
  declare account: GitAccount | null;
  declare account_id: string | null;
  declare sealed_tokens: string | null;
  declare token_expires_at: string | null;
  declare sealed_grant: string | null;
  declare grant_expires_at: string | null;
  declare status: 'pending' | 'active' | 'error';
  declare status_reason: string | null;
  declare last_verified_at: string | null;

  /**
   * Looks up the owner of the token at the provider, before the transaction. @throws validation_failed, provider_error
   */
  static async probeNew(ctx: Context, input: CreateGitIntegrationInput): Promise<GitAccount | null> {
    const { base_url, auth_type } = requireWhole(ctx, input);
    if (auth_type === 'oauth' || input.access_token == null) return null;
    return requireAccepted(
      await askAccount(ctx, { provider: input.provider, base_url, auth_type, token: input.access_token }),
    );
  }

  /** @throws validation_failed, engine_unavailable, already_exists, quota_exceeded */
  static async create(
    ctx: Context,
    input: CreateGitIntegrationInput,
    account: GitAccount | null,
  ): Promise<GitIntegration> {
    const { provider, name } = input;
    const { base_url, auth_type } = requireWhole(ctx, input);
    const id = mintId(GitIntegration.idPrefix);
    const plain = { id, provider, base_url, auth_type };
    if (auth_type === 'oauth') {
      requireOauthClient(ctx.config, { provider, base_url });
      const pending = { name: name ?? GIT_PROVIDER_TITLES[provider], status: 'pending', ...newGrant(ctx.secrets, id) };
      return GitIntegration.insert(ctx, { ...plain, ...pending });
    }
    if (!account || input.access_token == null)
      throw problem('provider_error', 'The Git provider was not queried. Try again.');
    return GitIntegration.insert(ctx, {
      ...plain,
      name: name ?? account.login,
      ...tokenColumns(ctx, id, input.access_token),
      ...accountColumns(account),
    });
  }

  /** The same question for a token that is to replace the present one. @throws provider_error, provider_auth_failed */
  static async probeChange(ctx: Context, id: string, input: UpdateGitIntegrationInput): Promise<GitAccount | null> {
    if (input.access_token == null || input.auth_type === 'oauth') return null;
    const found = await GitIntegration.get(ctx, id).catch(() => null);
    if (!found || (found.auth_type === 'oauth' && input.auth_type == null)) return null;
    const { provider, base_url } = found;
    return requireAccepted(
      await askAccount(ctx, { provider, base_url, auth_type: 'token', token: input.access_token }),
    );
  }

  /** @throws validation_failed, engine_unavailable, already_exists */
  async change(ctx: Context, input: UpdateGitIntegrationInput, account: GitAccount | null): Promise<this> {
    const auth_type = input.auth_type ?? this.auth_type;
    requireFittingToken(auth_type, input.access_token ?? null, auth_type !== this.auth_type);
    const name = input.name != null && { name: input.name };
    if (this.requestsAccess(input)) {
      requireOauthClient(ctx.config, this);
      const pending = { status: 'pending', status_reason: null, sealed_tokens: null, token_expires_at: null };
      return this.update(ctx, { ...name, auth_type, ...pending, ...newGrant(ctx.secrets, this.id) });
    }
    if (input.access_token == null) return this.update(ctx, { ...name });
    if (!account) throw problem('provider_error', 'The Git provider was not queried. Try again.');
    const token = tokenColumns(ctx, this.id, input.access_token);
    return this.update(ctx, { ...name, auth_type, ...token, ...accountColumns(account), ...NO_GRANT });
  }

  // A client that sends back the `auth_type` that it has read does not lose the access that was granted.
  private requestsAccess(input: UpdateGitIntegrationInput): boolean {
    if (input.auth_type !== 'oauth' || this.auth_type !== 'oauth') return input.auth_type === 'oauth';
    return this.status === 'error' && isOnlyField(input, 'auth_type');
  }

  /** What the provider says of the present token, for `verify`; null where there is none. @throws provider_error */
  static async probe(ctx: Context, id: string): Promise<TokenAnswer | null> {
    const found = await GitIntegration.get(ctx, id).catch(() => null);
    if (!found || found.sealed_tokens === null) return null;
    try {
      // An integration whose token was refused is checked again too.
      const { access } = await accessOf(ctx, id, 'any');
      return await askAccount(ctx, access);
    } catch (error) {
      if (error instanceof GitProviderError && error.failure === 'unauthorized') return { refused: error.message };
      throw providerProblem(error);
    }
  }

  /** @throws already_exists where the token belongs to an account that the project has connected already */
  async verify(ctx: Context, answer: TokenAnswer | null): Promise<this> {
    if (!answer) return this.auth_type === 'oauth' ? this.update(ctx, newGrant(ctx.secrets, this.id)) : this;
    if ('account' in answer) return this.update(ctx, accountColumns(answer.account));
    const last_verified_at = new Date().toISOString();
    return this.update(ctx, { status: 'error', status_reason: answer.refused, last_verified_at });
  }

  /** @throws resource_in_use */
  async destroy(ctx: Context): Promise<void> {
    const dependents = await dependentsOf(ctx, this.id);
    if (dependents.length)
      throw problem('resource_in_use', 'Applications or shared repositories use the integration.', { dependents });
    await removeToBin(ctx, this);
  }
}

interface Whole {
  base_url: string | null;
  auth_type: GitAccess['auth_type'];
}

/** @throws validation_failed */
function requireWhole(ctx: Context, input: CreateGitIntegrationInput): Whole {
  const auth_type = input.auth_type ?? 'token';
  const base_url = normalBaseUrl(ctx.config, input.provider, input.base_url ?? null);
  requireFittingToken(auth_type, input.access_token ?? null, true);
  return { base_url, auth_type };
}

function requireFittingToken(auth_type: GitAccess['auth_type'], token: string | null, isNew: boolean): void {
  if (auth_type === 'oauth' && token !== null)
    throw validationFailed([{ field: 'access_token', code: 'depends_on', detail: 'is for the auth_type token' }]);
  if (auth_type === 'token' && token === null && isNew)
    throw validationFailed([
      { field: 'access_token', code: 'required', detail: 'is required for the auth_type token' },
    ]);
}

/** @throws provider_error where the provider gave no answer */
async function askAccount(ctx: Context, access: GitAccess): Promise<TokenAnswer> {
  try {
    const { missing_scopes, ...account } = await ctx.probes.git(access).account();
    if (!missing_scopes.length && account.id !== '') return { account };
    const names = missing_scopes.map((scope) => `\`${scope}\``).join(', ');
    const why = missing_scopes.length ? `lacks the scope ${names}` : 'belongs to no account';
    return { refused: `The token ${why}. Create one at ${GIT_PROVIDER_TITLES[access.provider]} that has it.` };
  } catch (error) {
    if (error instanceof GitProviderError && (error.failure === 'unauthorized' || error.failure === 'forbidden'))
      return { refused: error.message };
    if (error instanceof GitProviderError) throw providerFailure(error);
    throw error;
  }
}

/** @throws provider_auth_failed */
function requireAccepted(answer: TokenAnswer): GitAccount {
  if ('refused' in answer) throw problem('provider_auth_failed', answer.refused);
  return answer.account;
}

function tokenColumns({ secrets }: Context, id: string, access_token: string): Values {
  const tokens = { access_token, refresh_token: null, expires_at: null };
  return { sealed_tokens: sealTokens(secrets, id, tokens), token_expires_at: null };
}

/** Columns of an integration whose token the provider has just accepted. */
function accountColumns(account: GitAccount): Values {
  const { id, login, type, url } = account;
  return {
    account: { id, login, type, url },
    account_id: id,
    status: 'active',
    status_reason: null,
    last_verified_at: new Date().toISOString(),
  };
}
