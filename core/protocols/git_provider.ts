// What the platform says to a Git provider and hears from it, whichever provider it is. drivers/git_provider/ speaks
// the four dialects.

export type GitProviderName = 'github' | 'gitlab' | 'bitbucket' | 'gitea';

/** Where a provider is and with which token it is asked. The token is never part of an address or of a message. */
export interface GitAccess {
  provider: GitProviderName;
  /** null: the public service. */
  base_url: string | null;
  auth_type: 'token' | 'oauth';
  token: string;
}

export interface GitAccount {
  id: string;
  login: string;
  type: 'user' | 'organization';
  url: string;
}

export interface GitRepository {
  /** Of the provider, safe in a URL, the same after the repository was renamed. */
  id: string;
  full_name: string;
  name: string;
  private: boolean;
  /** null while the repository is empty. */
  default_branch: string | null;
  url: string;
  pushed_at: string | null;
  /** Made of the address of the provider and `full_name`, so that a response cannot send the token elsewhere. */
  clone_url: string;
}

export interface GitBranch {
  name: string;
  commit_sha: string;
  /** null where the remote does not say. */
  protected: boolean | null;
}

export type GitPullRequestState = 'open' | 'closed' | 'merged';

export interface GitPullRequest {
  number: number;
  title: string;
  state: GitPullRequestState;
  source_branch: string;
  target_branch: string;
  author: string;
  commit_sha: string;
  url: string;
  updated_at: string;
  /** Its branch is in another repository, so that whoever wrote it may have no access to this one. */
  from_fork: boolean;
}

/** The checks of a commit, those of the platform left out. */
export interface GitChecks {
  state: 'none' | 'pending' | 'success' | 'failure';
  /** Names of those that failed or still run. */
  failed: string[];
  pending: string[];
}

/** Part of a list of the provider. `next` is what to ask for the part after it; null on the last. */
export interface GitPortion<Row> {
  rows: Row[];
  next: string | null;
}

/** A repository as the API of the provider addresses it. */
export interface GitRepositoryAddress {
  id: string;
  full_name: string;
}

export interface GitTokens {
  access_token: string;
  refresh_token: string | null;
  /** RFC 3339; null: it does not expire. */
  expires_at: string | null;
}

/** The client that the operator registered at a provider for OAuth. */
export interface GitOauthClient {
  client_id: string;
  client_secret: string;
  redirect_uri: string;
}

/** Questions to a provider with one token, each bounded in time. @throws GitProviderError */
export interface GitProviderReads {
  /** Whose token it is. `missing_scopes` names what it may not do and would have to. */
  account(): Promise<GitAccount & { missing_scopes: string[] }>;
  repositories(at: string | null, search: string | null): Promise<GitPortion<GitRepository>>;
  repository(id: string): Promise<GitRepository>;
  branches(of: GitRepositoryAddress, at: string | null, search: string | null): Promise<GitPortion<GitBranch>>;
  pullRequests(
    of: GitRepositoryAddress,
    state: GitPullRequestState,
    at: string | null,
  ): Promise<GitPortion<GitPullRequest>>;
  pullRequest(of: GitRepositoryAddress, number: number): Promise<GitPullRequest>;
  checks(of: GitRepositoryAddress, sha: string): Promise<GitChecks>;
}

export interface GitStatus {
  state: 'pending' | 'success' | 'failure';
  /** At most 140 characters are shown. */
  description: string;
  url: string | null;
  /** Tells the statuses of one commit apart. */
  context: string;
}

/** What jobs do at a provider. @throws GitProviderError */
export interface GitProviderWrites {
  setStatus(of: GitRepositoryAddress, sha: string, status: GitStatus): Promise<void>;
  /** Writes a comment of a pull request, or changes the one with this id. Answers its id. */
  writeComment(of: GitRepositoryAddress, number: number, id: string | null, text: string): Promise<string>;
  /** Finds the webhook with this address, or creates it. Answers its id. */
  ensureWebhook(of: GitRepositoryAddress, url: string, secret: string): Promise<string>;
  /** Absent is success. */
  removeWebhook(of: GitRepositoryAddress, id: string): Promise<void>;
}

export type GitProviderClient = GitProviderReads & GitProviderWrites;

/** The steps of OAuth (RFC 6749 §4.1 with RFC 7636) that need the provider. @throws GitProviderError */
export interface GitOauth {
  authorizationUrl(
    at: Pick<GitAccess, 'provider' | 'base_url'>,
    client: GitOauthClient,
    proof: { state: string; verifier: string },
  ): string;
  exchangeCode(
    at: Pick<GitAccess, 'provider' | 'base_url'>,
    client: GitOauthClient,
    grant: { code: string; verifier: string },
  ): Promise<GitTokens>;
  refresh(
    at: Pick<GitAccess, 'provider' | 'base_url'>,
    client: GitOauthClient,
    refreshToken: string,
  ): Promise<GitTokens>;
}

type GitProviderFailure = 'unauthorized' | 'forbidden' | 'not_found' | 'rate_limited' | 'unreachable' | 'failed';

/** Why a provider gave nothing: a sentence for users, with what the provider said and without the token. */
export class GitProviderError extends Error {
  override readonly name = 'GitProviderError';

  /** @param retry_at of a rate limit: when the provider answers again, RFC 3339 */
  constructor(
    readonly failure: GitProviderFailure,
    message: string,
    readonly retry_at: string | null = null,
  ) {
    super(message);
  }
}

export const GIT_PROVIDER_TITLES: Readonly<Record<GitProviderName, string>> = {
  github: 'GitHub',
  gitlab: 'GitLab',
  bitbucket: 'Bitbucket',
  gitea: 'Gitea',
};

/** The user name beside a token when git asks over https. */
export function gitUsernameOf({ provider, token }: Pick<GitAccess, 'provider' | 'token'>): string {
  if (provider === 'github') return 'x-access-token';
  if (provider === 'bitbucket') return token.includes(':') ? 'x-bitbucket-api-token-auth' : 'x-token-auth';
  return 'oauth2';
}

/** What git sends as the password: of `address:token` of Bitbucket the second part. */
export function gitPasswordOf({ provider, token }: Pick<GitAccess, 'provider' | 'token'>): string {
  return provider === 'bitbucket' ? token.slice(token.indexOf(':') + 1) : token;
}

/** Begins the context of every status that the platform sets, so that it does not wait for its own. */
export const STATUS_PREFIX = 'platform/';
