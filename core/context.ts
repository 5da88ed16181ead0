// What travels with a request through every layer. Types only: server/platform/context.ts makes the values.
import type { CheckOutcome, UptimeCheck } from './protocols/checks';
import type { Config } from './config';
import type { AiModelRow } from './catalog/ai_models';
import type { HostFacts, PresetDefinition } from './catalog/catalogs';
import type { CursorCodec } from './cursor';
import type { GitAccess, GitOauth, GitProviderReads } from './protocols/git_provider';
import type { GitRemote } from './protocols/git_remote';
import type { LoginProviderClient } from './accounts/login_provider';
import type { ListedObject, ObjectsQuestion } from './protocols/objects';
import type { Scope } from './accounts/scopes';
import type { SecretBox } from './secrets';
import type { Credentials } from './protocols/sigv4';
import type { AccountStatus } from '../schema/types';

export type Role = 'owner' | 'developer' | 'viewer';

/** Who a request acts as: a personal key, a project key, a program that a person allowed, or a dashboard session. */
export interface Identity {
  kind: 'personal' | 'project' | 'oauth' | 'session';
  /** key_… of a key, ses_… of a session. */
  id: string;
  name: string;
  /** First 12 characters of the token; empty for a session. */
  prefix: string;
  account_id: string;
  account_status: AccountStatus;
  user: { id: string; name: string; email: string } | null;
  /** The one project of a project key. */
  project_id: string | null;
  /** null = every scope (project keys, sessions). */
  scopes: Scope[] | null;
  /** Projects a personal key is restricted to; null = not restricted. */
  project_ids: string[] | null;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  /** SHA-256 of the access token, of which an `oauth` key has several over time. */
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
  /** Gives points back (a 304 costs nothing). */
  give(account: string, budget: Budget, points: number): void;
}

/** A statement with a stable name: PostgreSQL plans it once per connection. */
export interface Statement {
  name: string;
  text: string;
  /** It reads a few rows by an index: such reads may share a connection (db/batches.ts). */
  quick?: boolean;
  /** What its rows become; plain objects without it. */
  makes?: new () => object;
}

/** The pool, or the transaction that the request is in. db/control_database.ts knows more of it. */
export interface Sql {
  readonly inTransaction: boolean;
  /** Calls the loops to rows of this table that are due, after the commit. */
  due(table: string): void;
  query<Row>(statement: Statement, values: readonly unknown[]): Promise<Row[]>;
}

/** Time-limited, read-only questions to the outside world (docs/decisions/rules.md §2). */
export interface Probes {
  dns: {
    txt(name: string): Promise<string[]>;
    cname(name: string): Promise<string[]>;
    a(name: string): Promise<string[]>;
    aaaa(name: string): Promise<string[]>;
    /** Exchanges in the order of preference, `10 mx.example.com`. */
    mx(name: string): Promise<string[]>;
  };
  zone: {
    /**
     * What the parent zone says about a zone; null where none of its servers answers. `own_parent`: the zone above is
     * delegated to this platform, which is not asked about itself.
     */
    delegation(name: string): Promise<{
      name_servers: string[];
      ds_records: string[];
      own_parent: { zone: string; name_servers: string[] } | null;
    } | null>;
    /** What the name servers that the parent lists publish, those of `own` apart; null where none answers. */
    records(
      name: string,
      own: readonly string[],
      questions: readonly { name: string; type: string }[],
    ): Promise<FoundRecord[] | null>;
  };
  source: {
    /** The commit that a repository has for a ref. Never throws for a failure of the repository. */
    resolveCommit(remote: GitRemote, wanted: SourceRef): Promise<SourceResult>;
    /** All branches by name. Never throws for a failure of the repository. */
    listBranches(remote: GitRemote): Promise<BranchesResult>;
  };
  /** What tells the directory that this process keeps source uploads in from others; null where no host was in it. */
  sourceUploadsMark(): Promise<string | null>;
  /** Questions to a Git provider with a token. */
  git(access: GitAccess): GitProviderReads;
  gitOauth: GitOauth;
  /** Another provider that people log in at, by its name; null where none is configured under it. */
  login(name: string): LoginProviderClient | null;
  /**
   * Objects of a bucket at an engine that keeps them itself; null where it does not answer. The probe is null where
   * objects are rows here.
   */
  bucketObjects:
    | ((bucket: { name: string; owner: Credentials }, question: ObjectsQuestion) => Promise<ListedObject[] | null>)
    | null;
  /** One check of a target from here. Never throws for what the target did. */
  check(check: UptimeCheck): Promise<CheckOutcome>;
}

/** A record that a name server publishes. `name` is the full name. */
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

/** A branch, a commit of it, or any ref (refs/pull/7/head); nothing at all is the head of the default branch. */
export interface SourceRef {
  branch?: string | null;
  /** 7 to 40 hexadecimal digits. */
  commit?: string | null;
  ref?: string | null;
}

/** The commit, or why there is none: `message` is a sentence for users. `unreachable` is worth another try. */
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

/** What a mutation changed, for the activity entry: names, never values. */
interface ActivityDraft {
  resource: { type: string; id: string; name: string | null; project_id: string | null } | null;
  changed_fields: string[];
  /** Who acted, where a link of a mail showed it and not a session. */
  person?: { id: string; name: string; account_id: string };
}

/** What the resolver or the wrapper wants in the REST answer beyond the body. */
export interface Reply {
  status: number | null;
  etag: string | null;
  headers: Record<string, string>;
}

export interface Context {
  request_id: string;
  /** Address of the caller after TRUST_PROXY. */
  address: string;
  user_agent: string;
  config: Config;
  secrets: SecretBox;
  identity: Identity | null;
  /** Value of X-Svc-Project, untouched. */
  project_header: string | undefined;
  /** Set by the guard; null for operations that act on no project. */
  project: ProjectAccess | null;
  /** Value of Dry-Run, untouched. */
  dry_run_header: string | undefined;
  /** The write is to be rolled back; set by contract/admission.ts. */
  dry_run: boolean;
  /** If-Match as sent; checked by Resource.forUpdate. */
  if_match: string | undefined;
  /** The same for all requests of one Idempotency-Key: what a `prepare` hook does for them, it does once. */
  idempotency_scope: string | undefined;
  reply: Reply;
  activity: ActivityDraft;
  sql: Sql;
  limiter: Limiter;
  probes: Probes;
  /** What the operation's `prepare` hook found out before the transaction began. */
  probed: unknown;
  catalogs: CatalogSource;
  notifications: Notifications;
  /** Aborted when the process stops; for those who wait or stream also when the client is gone. */
  signal: AbortSignal;
  cursors: CursorCodec;
  /** What relations of this request have loaded, by kind or by name. */
  loaders: Map<unknown, unknown>;
  /**
   * Of a call that lasts, such as a stream: checks again that its caller may still make it (contract/admission.ts).
   * Null for the others. @throws the problem that would refuse the call by now
   */
  readmit: (() => Promise<void>) | null;
  /**
   * The caller as the database has it by now (cached for at most two seconds). @throws token_invalid, token_expired,
   * session_required where the key or the session has ended
   */
  currentIdentity(this: Context): Promise<Identity | null>;
  /** The caller's access to a project, null where it has none (cached for at most two seconds). */
  access(this: Context, project_id: string): Promise<ProjectAccess | null>;
  /** The project of a resource, null where there is no resource of that id. Says nothing of the caller's rights. */
  projectOf(this: Context, resource_id: string): Promise<string | null>;
  /** Runs in one transaction; joins the one that is open. */
  transact<T>(this: Context, run: (ctx: Context) => Promise<T>): Promise<T>;
  /** At commit: forget cached identities and accesses, here at once and on the other replicas. */
  forget(what: { key_id?: string; user_id?: string; project_id?: string }): Promise<void>;
  /** Counts an attempt (log-in, second factor). @throws rate_limited when the bucket had too many in a minute */
  attempt(bucket: string): Promise<void>;
}

/** Catalog rows of this installation, see core/catalog/catalogs.ts. */
interface CatalogSource {
  facts(): Promise<HostFacts>;
  aiModels(): readonly AiModelRow[];
  presets(): readonly PresetDefinition[];
}

/** What a notification is about. */
export interface Topic {
  channel: string;
  key: string;
}

/** Wakes those who wait for a notification. */
export interface Notifications {
  /**
   * Resolves when one of the topics was notified since sequence number `seen`, after at most `ms`, or when aborted;
   * answers the new number.
   */
  wait(topics: readonly Topic[], seen: number, ms: number, signal: AbortSignal): Promise<number>;
}
