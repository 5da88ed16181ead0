// What the dashboard shows of the installation itself: its version and, for its operator, a newer one.
import semver from 'semver';
import { missingDomain } from '../../core/catalog/missing_domain';
import type { Context, Sql } from '../../core/context';
import type { Release } from '../../core/releases/release_index';
import { version } from '../../package.json';
import { named } from '../../db/statement';
import { isOperator } from './operator';
import { sessionUser } from './user';

/** A release as it is noted. */
type NotedRelease = Pick<Release, 'version' | 'released_at' | 'security' | 'changes'>;

// One of the processes asks, once a day and not all installations at the same moment.
const CLAIM = named(`update release_notices set next_at = now() + make_interval(secs => 72000 + random() * 28800)
  where next_at <= now() returning id`);
const RETRY = named(`update release_notices set next_at = now() + make_interval(secs => 3600 + random() * 3600)`);
const NOTE = named('update release_notices set release = $1');
const NOTED = named('select release from release_notices');

export interface Installation {
  version: string;
  newer_release: (NotedRelease & { command: string }) | null;
  missing_domain: string | null;
}

/** What is to be done is told to operators: nobody else can do something about it. */
export async function loadInstallation(ctx: Context): Promise<Installation> {
  if (!(await isOperator(ctx.sql, sessionUser(ctx).id))) return { version, newer_release: null, missing_domain: null };
  const release = await notedRelease(ctx.sql);
  const isNewer = release !== null && semver.gt(release.version, version);
  const command = isNewer ? `platform upgrade ${release.version}` : '';
  const newer_release = isNewer ? { ...release, command } : null;
  return { version, newer_release, missing_domain: missingDomain(ctx.config) };
}

/** The newest release of which the index has told, which may be the one that runs. */
export async function notedRelease(sql: Pick<Sql, 'query'>): Promise<NotedRelease | null> {
  return (await sql.query<{ release: NotedRelease | null }>(NOTED, []))[0]?.release ?? null;
}

/** Whether it is time to ask for newer releases, and this process is to do it. */
export async function claimReleaseCheck(sql: Pick<Sql, 'query'>): Promise<boolean> {
  return (await sql.query(CLAIM, [])).length > 0;
}

/** Asks again in an hour or two. */
export async function retryReleaseCheck(sql: Pick<Sql, 'query'>): Promise<void> {
  await sql.query(RETRY, []);
}

/** @param release null: there is none */
export async function noteRelease(sql: Pick<Sql, 'query'>, release: Release | null): Promise<void> {
  const noted = release && {
    version: release.version,
    released_at: release.released_at,
    security: release.security,
    changes: release.changes,
  };
  await sql.query(NOTE, [noted && JSON.stringify(noted)]);
}
