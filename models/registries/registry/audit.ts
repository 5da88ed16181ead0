// Audit of a registry: pushes and deletions with their actors, as entries of the project's activity.
import type { Sql } from '../../../core/context';
import { isId } from '../../../core/ids';
import { named } from '../../../db/statement';
import { actorOf, PLATFORM, recordProjectEvent, type Activity } from '../../projects/activity';
import { keyIdentityById } from '../../identity/identity';
import { RobotAccount } from '../robot_account';
import { Registry } from '../registry';

const ROBOT = named('select name from robot_accounts where id = $1');

interface ImageChange {
  registry: { id: string; name: string; project_id: string };
  action: 'image_pushed' | 'image_deleted';
  /** `shop/web:1.4`, or `shop/web@sha256:…` of an image without a tag. */
  image: string;
  /** Id of a robot account or an API key; any other: the platform. */
  subject: string | null;
}

export async function recordImageChange(sql: Sql, { registry, action, image, subject }: ImageChange): Promise<void> {
  const resource = { type: Registry.kind, id: registry.id, name: `${registry.name}/${image}` };
  const by = await accountOf(sql, subject);
  await recordProjectEvent(sql, {
    project_id: registry.project_id,
    action: `${Registry.kind}.${action}`,
    resource,
    ...by,
  });
}

async function accountOf(sql: Sql, subject: string | null): Promise<Pick<Activity, 'actor' | 'key_id'>> {
  if (subject === null) return { actor: PLATFORM, key_id: null };
  if (isId(RobotAccount.idPrefix, subject)) {
    const [robot] = await sql.query<{ name: string }>(ROBOT, [subject]);
    return { actor: { type: 'robot_account', id: subject, name: robot?.name ?? subject }, key_id: null };
  }
  const identity = await keyIdentityById(sql, subject);
  return identity ? { actor: actorOf(identity), key_id: identity.id } : { actor: PLATFORM, key_id: null };
}
