// The provider-independent interface to Git providers. drivers/git_provider/ implements it for four providers.

export type GitProviderName = 'github' | 'gitlab' | 'bitbucket' | 'gitea';

/** Provider and token of a request. The token is never part of a URL or of a message. */
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
  /** Id at the provider, safe in URLs, and unaffected by renames. */
  id: string;
  full_name: string;
  name: string;
  private: boolean;
  /** null while the repository is empty. */
  default_branch: string | null;
  url: string;
  pushed_at: string | null;
  /** Built from the base URL of the provider and `full_name`, so that a response cannot redirect the token. */
  clone_url: string;
}

export interface GitBranch {
  name: string;
  commit_sha: string;
  /** null where the remote does not report it. */
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
  /** Its branch is in another repository, whose author may have no access to this one. */
  from_fork: boolean;
}

/** The ref of a pull request's head at the provider; Bitbucket has only the branch. */
export function pullRequestRef(provider: string, pull: Pick<GitPullRequest, 'number' | 'source_branch'>): string {
  if (provider === 'bitbucket') return pull.source_branch;
  return provider === 'gitlab' ? `refs/merge-requests/${pull.number}/head` : `refs/pull/${pull.number}/head`;
}

/** The checks of a commit, except those of the platform. */
export interface GitChecks {
  state: 'none' | 'pending' | 'success' | 'failure';
  /** Names of failed checks. */
  failed: string[];
  pending: string[];
}

/** A page of a provider's list. `next` is the cursor of the next page; null on the last one. */
export interface GitPortion<Row> {
  rows: Row[];
  next: string | null;
}

/** Identifies a repository in the provider's API. */
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

/** The operator's OAuth client at a provider. */
export interface GitOauthClient {
  client_id: string;
  client_secret: string;
  redirect_uri: string;
}

/** Queries to a provider with one token, limited in time. @throws GitProviderError */
export interface GitProviderReads {
  /** The owner of the token. `missing_scopes` names required scopes that it lacks. */
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
  /** Truncated to 140 characters. */
  description: string;
  url: string | null;
  /** Identifies the status among those of the commit. */
  context: string;
}

/** Operations of jobs at a provider. @throws GitProviderError */
export interface GitProviderWrites {
  setStatus(of: GitRepositoryAddress, sha: string, status: GitStatus): Promise<void>;
  /** Creates a comment on a pull request, or updates the one with this id. Returns its id. */
  writeComment(of: GitRepositoryAddress, number: number, id: string | null, text: string): Promise<string>;
  /** Finds the webhook with this URL, or creates it. Returns its id. */
  ensureWebhook(of: GitRepositoryAddress, url: string, secret: string): Promise<string>;
  /** Absent is success. */
  removeWebhook(of: GitRepositoryAddress, id: string): Promise<void>;
}

export type GitProviderClient = GitProviderReads & GitProviderWrites;

/** OAuth requests to the provider (RFC 6749 §4.1 with RFC 7636). @throws GitProviderError */
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

/** A failure of a provider: a message for users, including the provider's own message, without the token. */
export class GitProviderError extends Error {
  override readonly name = 'GitProviderError';

  /** @param retry_at end of a rate limit, RFC 3339 */
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

/** The user name for git over https with a token. */
export function gitUsernameOf({ provider, token }: Pick<GitAccess, 'provider' | 'token'>): string {
  if (provider === 'github') return 'x-access-token';
  if (provider === 'bitbucket') return token.includes(':') ? 'x-bitbucket-api-token-auth' : 'x-token-auth';
  return 'oauth2';
}

/** The password for git: for `address:token` of Bitbucket the second part. */
export function gitPasswordOf({ provider, token }: Pick<GitAccess, 'provider' | 'token'>): string {
  return provider === 'bitbucket' ? token.slice(token.indexOf(':') + 1) : token;
}

/** Prefix of the contexts of the platform's statuses, which it excludes from the checks it waits for. */
export const STATUS_PREFIX = 'platform/';
