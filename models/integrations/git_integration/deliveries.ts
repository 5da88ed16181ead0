// What a webhook triggers: rows become due, and their jobs read the state from the provider.
import type { GitProviderName } from '../../../core/protocols/git_provider';
import { mintId } from '../../../core/ids';
import type { SecretBox } from '../../../core/secrets';
import type { Session } from '../../../db/control_database';
import { newGenerationOf, wakeRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import { hookTokenHash, openHook } from './hook';

/** The repository that a webhook delivery belongs to. */
export interface HookTarget {
  id: string;
  /** null: a shared repository, whose address alone is the secret. */
  provider: GitProviderName | null;
  git_integration_id: string | null;
  repository_id: string | null;
  /** null: the webhook was not created through the API, so the provider has no secret to sign with. */
  secret: string | null;
}

interface Found extends HookTarget {
  sealed_hook: string;
  is_ours: boolean;
}

const FIND = named(`select r.id, g.provider, r.git_integration_id, r.repository_id, r.sealed_hook,
    r.provider_hook_id is not null as is_ours
  from git_repositories r join git_integrations g on g.id = r.git_integration_id
    and g.deleted_at is null
  where r.hook_hash = $1 and r.deleted_at is null
  union all
  select id, null, null, null, sealed_hook, false from shared_repositories where hook_hash = $1`);

/** null where the address does not exist, or no longer does. */
export async function findHook(sql: Session, secrets: SecretBox, token: string): Promise<HookTarget | null> {
  const [row] = await sql.query<Found>(FIND, [hookTokenHash(token)]);
  if (!row) return null;
  const { is_ours, sealed_hook, ...target } = row;
  return { ...target, secret: is_ours ? openHook(secrets, { id: row.id, sealed_hook }).secret : null };
}

const OF_TARGET = `a.deleted_at is null and (($1::text is not null and a.source ->> 'git_integration_id' = $1
    and a.source ->> 'repository_id' = $2) or ($1::text is null and a.source ->> 'shared_repository_id' = $3))`;
const valuesOf = ({ git_integration_id, repository_id, id }: HookTarget): (string | null)[] => [
  git_integration_id,
  repository_id,
  id,
];

/** The branches that are watched are looked at now. @param branch null: not known */
export async function applyPush(sql: Session, target: HookTarget, branch: string | null): Promise<void> {
  const values = [...valuesOf(target), branch];
  await wakeRows(sql, {
    table: 'auto_deploys',
    where: `enabled and id in (select a.id from applications a where ${OF_TARGET}
      and ($4::text is null or coalesce(auto_deploys.branch, a.source ->> 'branch', $4) = $4))`,
    values,
  });
  // The look that is due at the next poll comes now.
  await sql.query(POLL_NOW, values);
  await wakeRows(sql, { table: 'previews', where: `id in (${PREVIEWS})`, values });
}

const PREVIEWS = `select p.id from previews p join applications a on a.id = p.application_id where ${OF_TARGET}
  and p.deleted_at is null and p.pull_request_number is null and ($4::text is null or p.branch = $4)`;
const POLL_NOW = named(`update previews set looked_at = null where id in (${PREVIEWS})`);

/** Makes deployments that wait for checks due now. */
export async function applyChecks(sql: Session, target: HookTarget): Promise<void> {
  await wakeRows(sql, {
    table: 'auto_deploys',
    where: `awaited_sha is not null and id in (select a.id from applications a where ${OF_TARGET})`,
    values: valuesOf(target),
  });
}

const CONCERNED = named(`select a.id, a.project_id from applications a where ${OF_TARGET}
  and (coalesce((a.settings -> 'previews' ->> 'auto_create')::boolean, false)
    or exists (select 1 from previews p where p.application_id = a.id and p.pull_request_number = $4
      and p.deleted_at is null)
    or exists (select 1 from pull_requests r where r.application_id = a.id and r.number = $4))`);
const NOTE = named(`insert into pull_requests (id, project_id, application_id, git_repository_id, number)
  values ($1, $2, $3, $4, $5)
  on conflict (application_id, number) do update set events = pull_requests.events + 1,
    git_repository_id = excluded.git_repository_id, failures = 0, ${newGenerationOf('pull_requests')}`);

/** The pull request is read from the provider now. Of shared repositories the provider is not known. */
export async function applyPullRequest(sql: Session, target: HookTarget, number: number): Promise<void> {
  if (target.git_integration_id === null) return;
  const rows = await sql.query<{ id: string; project_id: string }>(CONCERNED, [...valuesOf(target), number]);
  for (const { id, project_id } of rows) await sql.query(NOTE, [mintId('pul'), project_id, id, target.id, number]);
  if (rows.length) sql.due('pull_requests');
}
