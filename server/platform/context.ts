// Makes the context of a request: see core/context.ts for what travels in it.
import { withImages } from '../../core/catalog/cluster_engines';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context, Sql } from '../../core/context';
import type { Session } from '../../db/control_database';
import { mayBeRepeated } from '../../db/errors';
import { named } from '../../db/statement';
import { visitorOf } from '../../core/process/ingress_connections';
import { projectOfResource } from '../../models/base/project_of';
import type { Platform } from './platform';

const NOTIFY = named(`select pg_notify('forget', $1)`);
const RETRY_PAUSE_MS = 50;

/** The context of one HTTP request, before authentication. */
export function requestContext(platform: Platform, request: IncomingMessage, requestId: string): Context {
  const header = request.headers['x-svc-project'];
  return makeContext(platform, {
    request_id: requestId,
    address: clientAddress(request, platform.config.trustProxy),
    user_agent: String(request.headers['user-agent'] ?? '').slice(0, 200),
    project_header: typeof header === 'string' ? header : undefined,
    dry_run_header: request.headers['dry-run'] as string | undefined,
    cookie_header: request.headers.cookie,
  });
}

type Origin = Pick<Context, 'request_id' | 'address' | 'user_agent' | 'project_header'> &
  Partial<Pick<Context, 'dry_run_header' | 'cookie_header'>>;
type Verbs = Pick<Context, 'currentIdentity' | 'access' | 'projectOf' | 'transact' | 'forget' | 'attempt' | 'catalogs'>;

/**
 * A context over the pool; `transact` derives the contexts of transactions. Created for every request, so one object
 * literal without spreads, for speed.
 */
export function makeContext(platform: Platform, origin: Origin): Context {
  const { currentIdentity, access, projectOf, transact, forget, attempt, catalogs } = verbsOf(platform);
  return {
    request_id: origin.request_id,
    address: origin.address,
    user_agent: origin.user_agent,
    project_header: origin.project_header,
    dry_run_header: origin.dry_run_header,
    cookie_header: origin.cookie_header,
    dry_run: false,
    approved: null,
    config: platform.config,
    secrets: platform.secrets,
    limiter: platform.limiter,
    probes: platform.probes,
    cursors: platform.cursors,
    catalogs,
    installation: platform.installation,
    notifications: platform.notifications,
    signal: platform.closing.signal,
    identity: null,
    project: null,
    probed: undefined,
    if_match: undefined,
    idempotency_scope: undefined,
    reply: { status: null, etag: null, headers: {} },
    activity: { resource: null, changed_fields: [] },
    sql: platform.database,
    loaders: new Map(),
    readmit: null,
    currentIdentity,
    access,
    projectOf,
    transact,
    forget,
    attempt,
  };
}

const verbs = new WeakMap<Platform, Verbs>();

/**
 * Functions shared by all contexts of a process. They use `this`, since GraphQL derives a context per root field, with
 * a separate project.
 */
function verbsOf(platform: Platform): Verbs {
  const known = verbs.get(platform);
  if (known) return known;
  const { identities, attempts } = platform;
  const made: Verbs = {
    catalogs: {
      facts: async () => withImages(await platform.facts(), platform.config.databaseImages),
      aiModels: () => platform.aiModels,
      presets: () => platform.presets,
    },
    currentIdentity(this: Context) {
      return this.identity ? identities.current(this.identity) : Promise.resolve(null);
    },
    access(this: Context, id) {
      return this.identity ? identities.access(this.identity, id) : Promise.resolve(null);
    },
    projectOf(this: Context, id) {
      return projectOfResource(this, id);
    },
    transact(this: Context, run) {
      return transact(platform, this, run);
    },
    forget: (what) => forgetNow(platform, platform.database, what),
    attempt: async (bucket, times) => {
      const refusal = attempts.refusal(bucket, undefined, times);
      if (refusal) throw refusal;
      attempts.count(bucket);
    },
  };
  verbs.set(platform, made);
  return made;
}

/** Runs in a new transaction, retried once after a deadlock; invalidates caches after the commit. */
async function transact<T>(platform: Platform, ctx: Context, run: (inner: Context) => Promise<T>): Promise<T> {
  try {
    return await attempt(platform, ctx, run);
  } catch (error) {
    if (!mayBeRepeated(error)) throw error;
    Object.assign(ctx.reply, { status: null, etag: null });
    // Without a pause, this transaction could lock the row again before the other one, which waits for it, wakes up.
    await sleep(RETRY_PAUSE_MS);
    return attempt(platform, ctx, run);
  }
}

async function attempt<T>(platform: Platform, ctx: Context, run: (inner: Context) => Promise<T>): Promise<T> {
  const forgotten: Parameters<Context['forget']>[0][] = [];
  const result = await (ctx.sql as Session).transaction((session) => {
    const inner: Context = {
      ...ctx,
      sql: session,
      loaders: new Map(),
      transact: (nested) => nested(inner),
      forget: async (what) => {
        forgotten.push(what);
        await session.query(NOTIFY, [JSON.stringify(what)]);
      },
    };
    return run(inner);
  });
  for (const what of forgotten) platform.identities.forget(what);
  publishActivity(platform, ctx);
  return result;
}

/** Wakes those in this process who follow the activity of the project; others look every two seconds. */
function publishActivity({ notifications }: Platform, { activity, project }: Context): void {
  const id = activity.resource && (activity.resource.project_id ?? project?.id);
  if (id) notifications.publish('activity', id);
}

async function forgetNow(platform: Platform, sql: Sql, what: Parameters<Context['forget']>[0]): Promise<void> {
  platform.identities.forget(what);
  await sql.query(NOTIFY, [JSON.stringify(what)]);
}

/** The caller's address: as many entries from the right of X-Forwarded-For are believed as there are proxies. */
export function clientAddress(request: IncomingMessage, proxies: number): string {
  const visitor = visitorOf(request);
  if (visitor) return visitor.address;
  const direct = request.socket.remoteAddress ?? '';
  if (!proxies) return direct;
  const chain = [
    ...String(request.headers['x-forwarded-for'] ?? '')
      .split(',')
      .map((entry) => withoutPort(entry.trim()))
      .filter(Boolean),
    direct,
  ];
  return chain[Math.max(0, chain.length - 1 - proxies)] ?? direct;
}

/** Some proxies add the port, with which each connection would count as a client of its own. */
function withoutPort(entry: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1] ?? entry.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1');
}
