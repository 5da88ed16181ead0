// The request context, passed through all layers. Types only: server/platform/context.ts creates the values.
import type { CheckOutcome, UptimeCheck } from './protocols/checks';
import type { Config } from './config';
import type { AiModelRow } from './catalog/ai_models';
import type { HostFacts, PresetDefinition } from './catalog/catalogs';
import type { CursorCodec } from './cursor';
import type { InstallationControl } from './catalog/installation_control';
import type { GitAccess, GitOauth, GitProviderReads } from './protocols/git_provider';
import type { GitRemote } from './protocols/git_remote';
import type { LoginProviderClient } from './accounts/login_provider';
import type { ListedObject, ObjectsQuestion } from './protocols/objects';
import type { Scope } from './accounts/scopes';
import type { SecretBox } from './secrets';
import type { Credentials } from './protocols/sigv4';
import type { RevertObstacle, RowChange, Undo } from './undo';
import type { AccountStatus } from '../schema/types';

export type Role = 'owner' | 'developer' | 'viewer';

/** The authenticated caller: a personal key, a project key, an authorised program, or a dashboard session. */
export interface Identity {
  kind: 'personal' | 'project' | 'oauth' | 'session';
  /** key_… for a key, ses_… for a session. */
  id: string;
  name: string;
  /** First 12 characters of the token; empty for a session. */
  prefix: string;
  account_id: string;
  account_status: AccountStatus;
  user: { id: string; name: string; email: string } | null;
  /** The project of a project key. */
  project_id: string | null;
  /** null = every scope (project keys, sessions). */
  scopes: Scope[] | null;
  /** Projects a personal key is restricted to; null = not restricted. */
  project_ids: string[] | null;
  /** Whether it may do what `@destroys` marks. */
  may_destroy: boolean;
  /** Since when the key is paused, for it has destroyed too much; null for a key that works, and for a session. */
  paused_at: string | null;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  /** SHA-256 of the access token; an `oauth` key has several over time. */
  token_hash?: string;
}

/** The project a request acts on, with the caller's role in it. */
export interface ProjectAccess {
  id: string;
  name: string;
  account_id: string;
  default_region: string;
  role: Role;
}

export interface RateAnswer {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Seconds until the window ends, at least 1. */
  reset_seconds: number;
}

export type Budget = 'read' | 'write' | 'deploy';

export interface Limiter {
  take(account: string, budget: Budget, points: number): Promise<RateAnswer>;
  /** Returns points (a 304 costs nothing). */
  give(account: string, budget: Budget, points: number): void;
}

/** A statement with a stable name: PostgreSQL plans it once per connection. */
export interface Statement {
  name: string;
  text: string;
  /** Reads a few rows by an index: such reads may share a connection (db/batches.ts). */
  quick?: boolean;
  /** Class of its rows; default: plain objects. */
  makes?: new () => object;
}

/** The pool, or the transaction of the request; the full interface is in db/control_database.ts. */
export interface Sql {
  readonly inTransaction: boolean;
  /** Wakes the loops for due rows of this table, after the commit. */
  due(table: string): void;
  query<Row>(statement: Statement, values: readonly unknown[]): Promise<Row[]>;
}

/** Read-only queries to external systems, limited in time (docs/decisions/rules.md §2). */
export interface Probes {
  dns: {
    txt(name: string): Promise<string[]>;
    cname(name: string): Promise<string[]>;
    a(name: string): Promise<string[]>;
    aaaa(name: string): Promise<string[]>;
    /** Mail exchanges in order of preference, `10 mx.example.com`. */
    mx(name: string): Promise<string[]>;
  };
  zone: {
    /**
     * Delegation of a zone in its parent; null where none of its servers responds. `own_parent`: the parent zone is
     * delegated to this platform, which is not queried. `glue`: addresses of these name servers in the parent.
     */
    delegation(name: string): Promise<{
      name_servers: string[];
      ds_records: string[];
      glue: string[];
      own_parent: { zone: string; name_servers: string[] } | null;
    } | null>;
    /** Records on the name servers listed by the parent, except those in `own`; null where none responds. */
    records(
      name: string,
      own: readonly string[],
      questions: readonly { name: string; type: string }[],
    ): Promise<FoundRecord[] | null>;
  };
  source: {
    /** The commit of a ref in a repository. Never throws for a failure of the repository. */
    resolveCommit(remote: GitRemote, wanted: SourceRef): Promise<SourceResult>;
    /** All branches by name. Never throws for a failure of the repository. */
    listBranches(remote: GitRemote): Promise<BranchesResult>;
  };
  /** Identifies the directory of source uploads of this process; null where no host has used it. */
  sourceUploadsMark(): Promise<string | null>;
  /** Queries a Git provider with a token. */
  git(access: GitAccess): GitProviderReads;
  gitOauth: GitOauth;
  /** An external login provider by name; null where it is not configured. */
  login(name: string): LoginProviderClient | null;
  /**
   * Objects of a bucket at an external engine; null where it does not respond. The probe is null where objects are rows
   * in the database.
   */
  bucketObjects:
    | ((bucket: { name: string; owner: Credentials }, question: ObjectsQuestion) => Promise<ListedObject[] | null>)
    | null;
  /** One check of a target from this host. Never throws for failures of the target. */
  check(check: UptimeCheck): Promise<CheckOutcome>;
}

/** A published DNS record. `name` is the full name. */
export interface FoundRecord {
  name: string;
  type: string;
  value: string;
  ttl: number | null;
  priority: number | null;
  weight: number | null;
  port: number | null;
  flags: number | null;
  tag: string | null;
}

/** A branch, a commit of it, or any ref (refs/pull/7/head); empty: the head of the default branch. */
export interface SourceRef {
  branch?: string | null;
  /** 7 to 40 hexadecimal digits. */
  commit?: string | null;
  ref?: string | null;
}

/** The commit, or the failure: `message` is for users. `unreachable` is worth a retry. */
export type SourceResult = { found: true; branch: string | null; sha: string; host_key?: string | null } | SourceMiss;

export type BranchesResult = { found: true; branches: { name: string; sha: string }[] } | SourceMiss;

export interface SourceMiss {
  found: false;
  failure: SourceFailure;
  message: string;
}

export type SourceFailure =
  | 'unreachable'
  | 'refused'
  | 'no_repository'
  | 'unknown_branch'
  | 'unknown_commit'
  | 'empty'
  | 'too_large'
  | 'forbidden_address';

/** Changes of a mutation for the activity entry: field names, never values. */
interface ActivityDraft {
  resource: { type: string; id: string; name: string | null; project_id: string | null } | null;
  changed_fields: string[];
  /** Rows that the mutation has changed, where they are kept for a revert. */
  changes?: RowChange[];
  /** What takes the mutation back, or why nothing does. */
  undo?: Undo | RevertObstacle;
  /** Of a revert: the id of its own entry, the entry that it takes back, and ids that rows get again. */
  id?: string;
  reverts?: string;
  revive?: string[];
  /** The person, where a link from a mail authenticates the request instead of a session. */
  person?: { id: string; name: string; account_id: string };
}

/** Properties of the REST response set by the resolver or its wrapper. */
export interface Reply {
  status: number | null;
  etag: string | null;
  headers: Record<string, string | string[]>;
}

export interface Context {
  request_id: string;
  /** Address of the caller after TRUST_PROXY. */
  address: string;
  user_agent: string;
  config: Config;
  secrets: SecretBox;
  identity: Identity | null;
  /** Value of X-Svc-Project, unmodified. */
  project_header: string | undefined;
  /** Set by the guard; null for operations without a project. */
  project: ProjectAccess | null;
  /** Value of Dry-Run, unmodified. */
  dry_run_header: string | undefined;
  /** Value of Cookie, unmodified. */
  cookie_header: string | undefined;
  /** The write is rolled back; set by contract/admission.ts. */
  dry_run: boolean;
  /** The approval that the call spends, in its transaction; null where it needs none. */
  approved: string | null;
  /** If-Match as sent; checked by Resource.forUpdate. */
  if_match: string | undefined;
  /** Shared by all requests of one Idempotency-Key: a `prepare` hook performs its external work once for them. */
  idempotency_scope: string | undefined;
  reply: Reply;
  activity: ActivityDraft;
  sql: Sql;
  limiter: Limiter;
  probes: Probes;
  /** Result of the operation's `prepare` hook, which ran before the transaction. */
  probed: unknown;
  catalogs: CatalogSource;
  /** The installation itself, for its operators; null in processes that serve no API. */
  installation: InstallationControl | null;
  notifications: Notifications;
  /** Aborted when the process stops; for waiting and streaming requests also when the client disconnects. */
  signal: AbortSignal;
  cursors: CursorCodec;
  /** Loaded relations of this request, by kind or by name. */
  loaders: Map<unknown, unknown>;
  /**
   * For long-running requests, such as streams: checks again that the caller is authorised (contract/admission.ts).
   * Null for others. @throws the problem that would reject the request now
   */
  readmit: (() => Promise<void>) | null;
  /**
   * The caller as currently in the database (cached for at most two seconds). @throws token_invalid, token_expired,
   * session_required where the key or the session has ended
   */
  currentIdentity(this: Context): Promise<Identity | null>;
  /** The caller's access to a project, null where it has none (cached for at most two seconds). */
  access(this: Context, project_id: string): Promise<ProjectAccess | null>;
  /** The project of a resource; null for an unknown id. Does not check permissions. */
  projectOf(this: Context, resource_id: string): Promise<string | null>;
  /** Runs in a transaction; joins an open one. */
  transact<T>(this: Context, run: (ctx: Context) => Promise<T>): Promise<T>;
  /** At commit: invalidates cached identities and accesses, on this replica at once and then on the others. */
  forget(what: { key_id?: string; user_id?: string; project_id?: string }): Promise<void>;
  /**
   * Counts an attempt (login, second factor). @param times size of the bucket, in multiples of RATE_LIMIT_FAILED_AUTH
   * @throws rate_limited after too many in a minute
   */
  attempt(bucket: string, times?: number): Promise<void>;
}

/** Catalog rows of this installation, see core/catalog/catalogs.ts. */
interface CatalogSource {
  facts(): Promise<HostFacts>;
  aiModels(): readonly AiModelRow[];
  presets(): readonly PresetDefinition[];
}

/** Subject of a notification. */
export interface Topic {
  channel: string;
  key: string;
}

/** Waits for notifications. */
export interface Notifications {
  /**
   * Resolves when one of the topics was notified since sequence number `seen`, after at most `ms`, or when aborted;
   * returns the new number.
   */
  wait(topics: readonly Topic[], seen: number, ms: number, signal: AbortSignal): Promise<number>;
}
