// What the job of a repository reads and writes: a repository of an integration that applications use.
import { mintId } from '../../core/ids';
import type { GitPullRequest, GitRepository } from '../../core/protocols/git_provider';
import type { Session } from '../../db/control_database';
import type { LoopRow } from '../../db/lease';
import { newGenerationOf, tearDownRows } from '../../db/loop_rows';
import { named } from '../../db/statement';

export interface RepositoryRow extends LoopRow {
  project_id: string;
  git_integration_id: string;
  repository_id: string;
  full_name: string;
  clone_url: string;
  sealed_hook: string;
  provider_hook_id: string | null;
  hook_reason: string | null;
  failures: number;
}

const USERS = named(`select id, project_id,
    coalesce((settings -> 'previews' ->> 'auto_create')::boolean, false) as auto_create
  from applications where source ->> 'git_integration_id' = $1 and source ->> 'repository_id' = $2
    and deleted_at is null`);

export interface RepositoryUser {
  id: string;
  project_id: string;
  auto_create: boolean;
}

/** The applications that are built from it. */
export function usersOf(sql: Session, row: RepositoryRow): Promise<RepositoryUser[]> {
  return sql.query<RepositoryUser>(USERS, [row.git_integration_id, row.repository_id]);
}

/** Tears down an unused repository: first its webhook, then its row. */
export async function retireRepository(sql: Session, { id }: RepositoryRow): Promise<void> {
  await tearDownRows(sql, { table: 'git_repositories', where: 'id = $1', values: [id] });
}

/** Columns of what the provider says of it now. */
export function describedBy({ full_name, clone_url, default_branch }: GitRepository): object {
  return { full_name, clone_url, default_branch };
}

const NOTE = named(`insert into pull_requests (id, project_id, application_id, git_repository_id, number)
  values ($1, $2, $3, $4, $5)
  on conflict (application_id, number) do update set events = pull_requests.events + 1, failures = 0,
    ${newGenerationOf('pull_requests')}
    where pull_requests.commit_sha is distinct from $6 or pull_requests.state is distinct from $7
  returning id`);
const OPEN = named(`update pull_requests set events = events + 1, ${newGenerationOf('pull_requests')}
  where application_id = $1 and state = 'open' and number <> all($2) and events = read_events returning id`);

/** Makes the jobs of pull requests look that are new or were changed. @param open all that are open, or the newest */
export async function notePullRequests(
  sql: Session,
  row: RepositoryRow,
  user: RepositoryUser,
  open: readonly GitPullRequest[],
): Promise<void> {
  for (const { number, commit_sha, state } of open)
    await sql.query(NOTE, [mintId('pul'), user.project_id, user.id, row.id, number, commit_sha, state]);
  await sql.query(OPEN, [user.id, open.map(({ number }) => number)]);
  sql.due('pull_requests');
}
