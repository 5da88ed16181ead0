// Access control of registries, evaluated for every request: revocation, deletion and expiry take effect at once, also
// for tokens that were issued before.
import type { Identity, Sql } from '../../../core/context';
import { isId } from '../../../core/ids';
import type { RegistryAction } from '../../../core/protocols/registry_content';
import { sha256 } from '../../../core/accounts/tokens';
import { quick, named } from '../../../db/statement';
import { keyIdentityById, projectAccess } from '../../identity/identity';
import { RobotAccount } from '../robot_account';

/** A registry as rights need it. */
interface RegistryOwner {
  id: string;
  project_id: string;
}

const ROBOT_BY_NAME = named('select id, secret_hash from robot_accounts where username = $1');
const ROBOT_WORKS = 'id = $1 and deleted_at is null and (expires_at is null or expires_at > now())';
const ROBOT_RIGHTS = quick(
  `select permissions from robot_accounts where ${ROBOT_WORKS} and project_id = $2
    and (registry_ids is null or $3 = any(registry_ids))`,
);
const ROBOT_PRESENT = quick(`select 1 from robot_accounts where ${ROBOT_WORKS}`);
const MARK_USED = named('update robot_accounts set last_used_at = now() where id = any($1)');

/** The id of the robot account with this user name and secret; null for any other. */
export async function robotOf(sql: Sql, username: string, secret: string): Promise<string | null> {
  const [row] = await sql.query<{ id: string; secret_hash: string }>(ROBOT_BY_NAME, [username]);
  if (!row || row.secret_hash !== sha256(secret)) return null;
  return (await isPresent(sql, row.id)) ? row.id : null;
}

/** @param subject id of a robot account or an API key */
export async function isPresent(sql: Sql, subject: string): Promise<boolean> {
  if (!isId(RobotAccount.idPrefix, subject)) return (await keyIdentityById(sql, subject)) !== null;
  return (await sql.query(ROBOT_PRESENT, [subject])).length > 0;
}

/** What the subject may do in the registry. */
export async function rightsOf(
  sql: Sql,
  subject: string,
  { id, project_id }: RegistryOwner,
): Promise<readonly RegistryAction[]> {
  if (isId(RobotAccount.idPrefix, subject)) {
    const [row] = await sql.query<{ permissions: RegistryAction[] }>(ROBOT_RIGHTS, [subject, project_id, id]);
    return row?.permissions ?? [];
  }
  const identity = await keyIdentityById(sql, subject);
  return identity ? rightsOfKey(sql, identity, project_id) : [];
}

/** The scope `read` pulls, `write` pushes, and deletes where the key may; a viewer only pulls, a paused key nothing. */
async function rightsOfKey(sql: Sql, identity: Identity, projectId: string): Promise<readonly RegistryAction[]> {
  const { scopes, project_ids, account_status, paused_at, may_destroy } = identity;
  if (paused_at || account_status === 'suspended' || (project_ids && !project_ids.includes(projectId))) return [];
  const access = await projectAccess(sql, identity, projectId);
  if (!access) return [];
  const mayRead = scopes === null || scopes.includes('read');
  const mayWrite = (scopes === null || scopes.includes('write')) && access.role !== 'viewer';
  return [
    ...(mayRead ? (['pull'] as const) : []),
    ...(mayWrite ? (['push'] as const) : []),
    ...(mayWrite && may_destroy ? (['delete'] as const) : []),
  ];
}

/** Notes that robot accounts were used; called every few seconds with what came together. */
export async function markRobotsUsed(sql: Sql, ids: readonly string[]): Promise<void> {
  await sql.query(MARK_USED, [ids]);
}
