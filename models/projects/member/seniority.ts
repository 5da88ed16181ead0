// What a new owner may not do to those who were owners before. A stolen session invites an owner of its own; the day
// gives its person the time to end both (docs/decisions/0240).
import type { Sql } from '../../../core/context';
import { problem } from '../../../core/errors';
import { limits } from '../../../core/limits';
import { named } from '../../../db/statement';

const DAY = `make_interval(hours => ${limits.lossWaitHours})`;
const OLD = `role = 'owner' and owner_since < now() - ${DAY}`;
const SENIORS = named(`select user_id from members where project_id = $1 and ${OLD}`);
const LEFT = named(`select 1 from activity where project_id = $1 and created_at > now() - ${DAY}
  and action in ('member.removed', 'member.role_changed') limit 1`);

async function seniorsOf(sql: Sql, projectId: string): Promise<string[]> {
  return (await sql.query<{ user_id: string }>(SENIORS, [projectId])).map(({ user_id }) => user_id);
}

/**
 * Of owners of more than a day one stays, and only they end another one. In a project of new owners all may.
 * @param actor who ends the ownership of `target`, maybe their own
 * @throws resource_protected
 */
export async function requireSeniority(sql: Sql, projectId: string, actor: string, target: string): Promise<void> {
  const seniors = await seniorsOf(sql, projectId);
  if (!seniors.includes(target)) return;
  if (!seniors.includes(actor))
    throw problem('resource_protected', 'Who became an owner today cannot end the role of one who was it before.');
  if (seniors.length < 2)
    throw problem(
      'resource_protected',
      'The other owners became it today. Wait a day, so that the project is not lost.',
    );
}

/** Whether the person has been an owner for long enough to approve what others ask. */
export async function mayApproveOthers(sql: Sql, projectId: string, userId: string): Promise<boolean> {
  const seniors = await seniorsOf(sql, projectId);
  return !seniors.length || seniors.includes(userId);
}

/** Whether members have gone or changed within the day: then the only owner may have been made so. */
export async function hasLostMembers(sql: Sql, projectId: string): Promise<boolean> {
  return (await sql.query(LEFT, [projectId])).length > 0;
}
