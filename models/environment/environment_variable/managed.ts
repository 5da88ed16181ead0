// Variables that an attachment manages in the environment of an application; other changes to them are rejected.
import type { Context, Sql } from '../../../core/context';
import { problem } from '../../../core/errors';
import type { SecretBox } from '../../../core/secrets';
import { requireParentRoom } from '../../base/quota';
import { EnvironmentVariable, requireFitting, requireFree, sealed } from '../environment_variable';
import { named } from '../../../db/statement';

/** Values by key. */
export type Variables = Record<string, string>;

interface Owner {
  /** Of the attachment. */
  id: string;
  application_id: string;
}

const TAKEN = named('select key from environment_variables where application_id = $1 and key = any($2) order by key');
const REWRITE =
  named(`update environment_variables v set value = n.value, value_hash = n.value_hash, version = version + 1,
    updated_at = greatest(now(), updated_at)
  from unnest($3::text[], $4::text[], $5::text[]) as n (key, value, value_hash)
  where v.application_id = $1 and v.managed_by = $2 and v.key = n.key and v.value_hash <> n.value_hash
    returning v.key`);
const REMOVE = named('delete from environment_variables where application_id = $1 and managed_by = $2');

/** The application must be held. @throws env_key_reserved, env_key_conflict with `keys` */
export async function requireKeysFree(ctx: Context, applicationId: string, keys: readonly string[]): Promise<void> {
  for (const key of keys) requireFree(key);
  const taken = await ctx.sql.query<{ key: string }>(TAKEN, [applicationId, keys]);
  if (!taken.length) return;
  const names = taken.map(({ key }) => key);
  throw problem(
    'env_key_conflict',
    `The application has ${names.join(', ')} already. Choose another prefix, or delete them.`,
    { keys: names },
  );
}

/** Puts variables into the environment; the application must be held and the keys be free. @throws quota_exceeded */
export async function addManaged(ctx: Context, owner: Owner, variables: Variables): Promise<void> {
  await requireParentRoom(ctx, EnvironmentVariable, owner.application_id, Object.keys(variables).length);
  await requireFitting(ctx, owner.application_id, async () => {
    for (const [key, value] of Object.entries(variables)) {
      const place = { application_id: owner.application_id, key };
      await EnvironmentVariable.insert(ctx, {
        ...place,
        ...sealed(ctx.secrets, place, value),
        available_at: 'both',
        managed_by: owner.id,
      });
    }
  });
}

/** Writes new values of variables that are there. Whether one of them has changed. */
export async function rewriteManaged(
  sql: Sql,
  secrets: SecretBox,
  owner: Owner,
  variables: Variables,
): Promise<boolean> {
  const stored = Object.entries(variables).map(([key, value]) => ({
    key,
    ...sealed(secrets, { application_id: owner.application_id, key }, value),
  }));
  const changed = await sql.query(REWRITE, [
    owner.application_id,
    owner.id,
    stored.map(({ key }) => key),
    stored.map(({ value }) => value),
    stored.map(({ value_hash }) => value_hash),
  ]);
  return changed.length > 0;
}

/** Takes all variables of the owner out of the environment. */
export async function removeManaged(ctx: Context, owner: Owner): Promise<void> {
  await ctx.sql.query(REMOVE, [owner.application_id, owner.id]);
}
