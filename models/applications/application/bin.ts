// Applications in the bin: variables, process types, releases, runs and schedules stay as they are, reached through
// their application alone. What others may want meanwhile is given up, and taken again by a restore where it is free.
import type { Context } from '../../../core/context';
import { changeRows, NEW_VERSION, tearDownRows, wakeRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import { isKept, type Bin, type Kept } from '../../base/bin';
import { wantDefaultCertificate } from '../../base/default_certificate';
import { bringBackObservers, removeObserversOf } from '../../observers/observer/bin';
import type { Application } from '../application';
import { removeApplicationDependents } from './dependents';
import { attachWhenRestored } from './deleted_volume';
import { followRepository, type FollowedRepository } from './repository';

/** What an application had, as the deletion found it. */
interface Memo {
  volumes: { id: string; name: string; mount_path: string }[];
  domains: { id: string; hostname: string }[];
  /** Entries of release 1.0.0 have no `database_id`. */
  attachments: { id: string; database_id?: string; database_name: string }[];
  previews: number;
  repository: FollowedRepository | null;
}

interface AttachedNow {
  id: string;
  database_id: string;
  database_name: string;
}

const VOLUMES = named(`select id, name, mount_path from volumes where application_id = $1 and deleted_at is null
  order by id`);
const DOMAINS = named(`select id, hostname, type, dns, verification_token, created_at from domains
  where application_id = $1 and deleted_at is null order by id`);
const PREVIEWS = named('select count(*)::int as count from previews where application_id = $1 and deleted_at is null');
const REPOSITORY = named(`select r.git_integration_id, r.repository_id, r.full_name, r.clone_url, r.default_branch
  from git_repositories r where r.git_integration_id = $1 and r.repository_id = $2 and r.deleted_at is null`);
const ATTACHMENTS = named(`update database_attachments a set deleted_at = now() from databases d
  where a.application_id = $1 and d.id = a.database_id and a.deleted_at is null
  returning a.id, a.database_id, d.name as database_name`);
const DETACHED = `application_id = null, mount_path = null,
  status = case when status = 'in_use' then 'available' else status end`;

const ATTACH_AGAIN = named(`update database_attachments a set deleted_at = null from databases d
  where a.id = any($1) and d.id = a.database_id and a.deleted_at is not null
  returning a.id, a.database_id, d.name as database_name, d.deleted_at is not null as is_deleted`);
const DATABASES = named(`select d.id from databases d where d.id = any($1) and d.project_id = $2
  and (d.deleted_at is null or ${isKept('d')})`);
const DOMAINS_AGAIN =
  named(`insert into domains (id, project_id, application_id, created_at, updated_at, hostname, type, dns, status,
    certificate, verification_token)
  select d.id, $2, $3, d.created_at, now(), d.hostname, d.type, d.dns, 'pending',
    '{"status": "none", "issuer": null, "expires_at": null, "error": null}', d.verification_token
  from jsonb_to_recordset($1) as d (id text, hostname text, type text, dns text, verification_token text,
    created_at timestamptz)
  where not exists (select 1 from domains o where o.hostname = d.hostname and o.status = 'active')
  on conflict do nothing returning id`);

export const applicationBin: Bin<Application> = {
  nameFormat: 'slug',
  isOnDisk: () => true,
  purge: ({ sql }, { id }) => removeApplicationDependents(sql, id),
  async restore(ctx, application, memo, along) {
    const { id, status, current_deployment_id } = application;
    const isAtRest = status === 'stopping' || status === 'stopped';
    const next = isAtRest ? 'stopped' : current_deployment_id ? 'starting' : 'new';
    await application.update(ctx, { status: next, status_reason: null });
    await wantDefaultCertificate(ctx, application.default_hostname, { application_id: id });
    await wakeRows(ctx.sql, { table: 'cron_schedules', where: 'application_id = $1', values: [id] });
    await bringBackObservers(ctx, application, along);
    const had = memo as unknown as Memo;
    return [
      ...(await attachVolumes(ctx, application, had)),
      ...(await attachDatabases(ctx, application, had)),
      ...(await claimDomains(ctx, application, had)),
      ...(had.previews ? ['Its previews were removed. Create them again.'] : []),
      ...(await followRepository(ctx, application, had.repository)),
    ];
  },
};

/** Takes from an application that is being deleted what others may want, and notes it. */
export async function giveUpDependents(ctx: Context, application: Application): Promise<Required<Omit<Kept, 'since'>>> {
  const own = { where: 'application_id = $1 and deleted_at is null', values: [application.id] };
  const attachments = await ctx.sql.query<AttachedNow>(ATTACHMENTS, own.values);
  await wakeDatabases(ctx, attachments);
  const memo = {
    volumes: await ctx.sql.query(VOLUMES, own.values),
    domains: await ctx.sql.query(DOMAINS, own.values),
    attachments,
    previews: (await ctx.sql.query<{ count: number }>(PREVIEWS, own.values))[0]?.count ?? 0,
    repository: await repositoryOf(ctx, application),
  };
  // An attached volume can't be deleted, so none in tear-down is missed; the condition lets the index serve.
  await changeRows(ctx.sql, { ...own, table: 'volumes', set: `${DETACHED}, ${NEW_VERSION}` });
  // The loop tears domains down, and until then their host names stay taken; previews with their deployments.
  await tearDownRows(ctx.sql, { ...own, table: 'domains' });
  await tearDownRows(ctx.sql, { ...own, table: 'previews' });
  const observers = await removeObserversOf(ctx, application);
  return { along: [...attachments.map(({ id }) => id), ...observers], memo };
}

async function repositoryOf(ctx: Context, { source }: Application): Promise<FollowedRepository | null> {
  if (!source?.git_integration_id) return null;
  const values = [source.git_integration_id, source.repository_id];
  return (await ctx.sql.query<FollowedRepository>(REPOSITORY, values))[0] ?? null;
}

async function attachVolumes(ctx: Context, { id: applicationId }: Application, { volumes }: Memo): Promise<string[]> {
  const notes: string[] = [];
  for (const { id, name, mount_path } of volumes) {
    // First of all: it waits for a restore of the volume that is under way.
    if (await attachWhenRestored(ctx, id, { application_id: applicationId, mount_path })) {
      notes.push(`The volume \`${name}\` is deleted. Restore it too, then it is attached again.`);
      continue;
    }
    const attached = await changeRows(ctx.sql, {
      table: 'volumes',
      set: `application_id = $2, mount_path = $3,
        status = case when status = 'available' then 'in_use' else status end, ${NEW_VERSION}`,
      where: 'id = $1 and application_id is null and deleted_at is null',
      values: [id, applicationId, mount_path],
    });
    if (!attached.length)
      notes.push(`The volume \`${name}\` is not attached: it was purged, or is attached to another application.`);
  }
  return notes;
}

async function attachDatabases(ctx: Context, { project_id }: Application, { attachments }: Memo): Promise<string[]> {
  const found = await ctx.sql.query<AttachedNow & { is_deleted: boolean }>(ATTACH_AGAIN, [
    attachments.map(({ id }) => id),
  ]);
  await wakeDatabases(ctx, found);
  const back = new Set(found.map(({ id }) => id));
  const lost = attachments.filter(({ id }) => !back.has(id));
  const values = [lost.map(({ database_id }) => database_id ?? ''), project_id];
  const present = new Set((await ctx.sql.query<{ id: string }>(DATABASES, values)).map(({ id }) => id));
  return [
    ...lost.map(({ database_id, database_name: name }) =>
      present.has(database_id ?? '')
        ? `The database \`${name}\` is not attached to it any more: the user or the endpoint that it used was ` +
          'deleted. Attach it again.'
        : `The database \`${name}\`, which was attached to it, is gone.`,
    ),
    ...found
      .filter(({ is_deleted }) => is_deleted)
      .map(
        ({ database_name: name }) => `The database \`${name}\`, which is attached to it, is deleted. Restore it too.`,
      ),
  ];
}

/** Servers accept connections of pods while applications are attached to them. */
async function wakeDatabases({ sql, config }: Context, attachments: readonly AttachedNow[]): Promise<void> {
  if (config.workloads !== 'kubernetes') return;
  const values = [attachments.map(({ database_id }) => database_id)];
  await wakeRows(sql, { table: 'databases', where: 'id = any($1) and deleted_at is null', values });
}

/** With their ids and verification records, so that what stands in the DNS elsewhere proves them again. */
async function claimDomains(ctx: Context, { id, project_id }: Application, { domains }: Memo): Promise<string[]> {
  if (!domains.length) return [];
  const inTearDown = await changeRows(ctx.sql, {
    table: 'domains',
    set: `deleted_at = null, ${NEW_VERSION}`,
    where: 'id = any($1) and application_id = $2 and deleted_at is not null',
    values: [domains.map((domain) => domain.id), id],
  });
  const values = [JSON.stringify(domains), project_id, id];
  const inserted = await ctx.sql.query<{ id: string }>(DOMAINS_AGAIN, values);
  ctx.sql.due('domains');
  const back = new Set([...inTearDown, ...inserted.map((row) => row.id)]);
  return domains.map(({ id: domainId, hostname }) =>
    back.has(domainId)
      ? `The domain \`${hostname}\` is checked again, and gets a certificate when its DNS records are there.`
      : `The domain \`${hostname}\` was not restored: it is used elsewhere by now.`,
  );
}
