// Several variables at once: all of them or none.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { named } from '../../../db/statement';
import { columnsOf, tableOf } from '../../../db/table';
import { requireParentRoom } from '../../base/quota';
import { EnvironmentVariable, isReservedVariable, requireFitting } from '../environment_variable';

export interface VariableSetting {
  key: string;
  value: string;
  available_at?: EnvironmentVariable['available_at'] | null;
  /** `value_hash` as the caller read it; empty where there was no variable. */
  expected_hash?: string | null;
}

interface Owner {
  id: string;
  name: string;
  project_id: string;
}

/**
 * Creates or updates variables with different keys, in the order given. Their activity entry is one of the application
 * and names the keys.
 * @param application locked by the caller
 * @throws env_key_reserved, env_key_managed, precondition_failed with all such `keys` and their `fields`;
 * quota_exceeded
 */
export async function setVariables(
  ctx: Context,
  application: Owner,
  settings: readonly VariableSetting[],
): Promise<EnvironmentVariable[]> {
  const { id, name, project_id } = application;
  const keys = settings.map(({ key }) => key);
  ctx.activity.resource = { type: 'application', id, name, project_id };
  ctx.activity.changed_fields = keys;
  const reserved = keys.filter(isReservedVariable);
  if (reserved.length)
    throw problem('env_key_reserved', `Reserved for the platform: ${reserved.join(', ')}.`, membersOf(keys, reserved));
  const found = await variablesByKey(ctx, id, keys);
  requireUnmanaged(keys, found);
  requireExpected(settings, found);
  await requireParentRoom(ctx, EnvironmentVariable, id, keys.length - found.size);
  return requireFitting(ctx, id, async () => {
    const variables: EnvironmentVariable[] = [];
    for (const setting of settings) {
      const variable = found.get(setting.key);
      variables.push(
        variable
          ? await variable.change(ctx, setting)
          : await EnvironmentVariable.add(ctx, application, setting.key, setting),
      );
    }
    return variables;
  });
}

async function variablesByKey(
  ctx: Context,
  applicationId: string,
  keys: readonly string[],
): Promise<Map<string, EnvironmentVariable>> {
  const { table } = EnvironmentVariable;
  const text = `select ${columnsOf(tableOf(ctx, table))} from ${table} where application_id = $1 and key = any($2)
    order by key for update`;
  const rows = await ctx.sql.query<EnvironmentVariable>(named(text, { makes: EnvironmentVariable }), [
    applicationId,
    keys,
  ]);
  return new Map(rows.map((row) => [row.key, row]));
}

function requireUnmanaged(keys: readonly string[], found: ReadonlyMap<string, EnvironmentVariable>): void {
  const managed = [...found.values()].filter(({ managed_by }) => managed_by !== null);
  if (!managed.length) return;
  const names = managed.map(({ key }) => key);
  throw problem('env_key_managed', `Attachments manage ${names.join(', ')}.`, {
    managed_by: managed[0]?.managed_by,
    ...membersOf(keys, names),
  });
}

/** Two people who edit one variable: the second one learns of the first. */
function requireExpected(settings: readonly VariableSetting[], found: ReadonlyMap<string, EnvironmentVariable>): void {
  const changed = settings
    .filter(({ key, expected_hash }) => expected_hash != null && expected_hash !== (found.get(key)?.value_hash ?? ''))
    .map(({ key }) => key);
  if (!changed.length) return;
  const keys = settings.map(({ key }) => key);
  throw problem('precondition_failed', `Changed since you read them: ${changed.join(', ')}.`, membersOf(keys, changed));
}

/** The refused keys, and where they stand in the input. */
function membersOf(keys: readonly string[], refused: readonly string[]): { keys: string[]; fields: string[] } {
  return { keys: [...refused], fields: refused.map((key) => `variables.${keys.indexOf(key)}.key`) };
}
