import type { Context, Sql } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { environmentBytes } from '../../core/process/variables';
import type { SecretBox } from '../../core/secrets';
import { Resource } from '../base/resource';
import { named } from '../../db/statement';
import type { Values } from '../../db/table';
import type { EnvironmentVariableAvailability } from '../../schema/types';
import { sealedColumns } from '../base/sealed_columns';

/** What a variable says of itself beside its key. */
interface Setting {
  value: string;
  available_at?: EnvironmentVariable['available_at'] | null;
}

interface Parent {
  id: string;
}

/** A variable of an application, addressed by its key. The value is sealed; only `reveal` opens it. */
export class EnvironmentVariable extends Resource {
  static readonly table = 'environment_variables';
  static readonly kind = 'environment_variable';
  static readonly idPrefix = 'env';
  static override readonly parentLimit = {
    column: 'application_id',
    max: limits.envVariablesPerApplication,
    resource: 'environment_variables',
    parent: 'An application',
    rows: 'environment variables',
  };
  static override readonly filters = { key: 'key = ?', available_at: 'available_at = ?' };
  static override readonly sorts = ['key'];

  declare application_id: string;
  declare key: string;
  /** Sealed. */
  declare value: string;
  declare value_hash: string;
  declare available_at: EnvironmentVariableAvailability;
  declare managed_by: string | null;

  /** The variable of that key. @throws not_found */
  static async ofKey(ctx: Context, application: Parent, key: string): Promise<EnvironmentVariable> {
    const found = await EnvironmentVariable.forUpdateBy(ctx, { application_id: application.id, key });
    if (!found) throw problem('not_found');
    return found;
  }

  /**
   * Creates or updates. Answers 201 where it created.
   * @param application locked by the caller, so that two requests don't make the same variable
   * @throws env_key_reserved, env_key_managed, quota_exceeded, precondition_failed
   */
  static async put(ctx: Context, application: Parent, key: string, setting: Setting): Promise<EnvironmentVariable> {
    requireFree(key);
    const found = await EnvironmentVariable.forUpdateBy(ctx, { application_id: application.id, key });
    if (!found && ctx.if_match !== undefined) throw problem('precondition_failed');
    if (!found) ctx.reply.status = 201;
    return requireFitting(ctx, application.id, () =>
      found ? found.change(ctx, setting) : EnvironmentVariable.add(ctx, application, key, setting),
    );
  }

  /** A variable that is not there yet. @throws quota_exceeded */
  static async add(ctx: Context, application: Parent, key: string, setting: Setting): Promise<EnvironmentVariable> {
    const place = { application_id: application.id, key };
    return EnvironmentVariable.insert(ctx, {
      ...place,
      ...sealed(ctx.secrets, place, setting.value),
      available_at: setting.available_at ?? 'both',
    });
  }

  /** @throws env_key_managed */
  async change(ctx: Context, setting: Setting): Promise<this> {
    this.requireUnmanaged();
    return this.update(ctx, {
      ...sealed(ctx.secrets, this, setting.value),
      ...(setting.available_at && { available_at: setting.available_at }),
    });
  }

  /** @throws env_key_managed */
  async destroy(ctx: Context): Promise<void> {
    this.requireUnmanaged();
    await this.remove(ctx);
  }

  /** The value itself. */
  reveal(ctx: Context): string {
    return ctx.secrets.open(this.value, sealedColumns.variable.contextOf(this.application_id, this.key));
  }

  override revertState(ctx: Context): Values {
    const { id, application_id, key, available_at, managed_by } = this;
    return { id, application_id, key, value: this.reveal(ctx), available_at, managed_by };
  }

  private requireUnmanaged(): void {
    if (this.managed_by === null) return;
    throw problem('env_key_managed', `An attachment manages ${this.key}.`, { managed_by: this.managed_by });
  }
}

const AVAILABLE = named(
  `select application_id, key, value from environment_variables
    where application_id = any($1) and available_at in ($2, 'both') order by key`,
);

/** The values of all variables that a build, or a running instance, of the application sees. */
export async function variablesOf(
  sql: Sql,
  secrets: SecretBox,
  application_id: string,
  at: 'build' | 'runtime',
): Promise<Record<string, string>> {
  return (await variablesOfEach(sql, secrets, [application_id], at)).get(application_id) ?? {};
}

/** The same of several applications. */
export async function variablesOfEach(
  sql: Sql,
  secrets: SecretBox,
  application_ids: readonly string[],
  at: 'build' | 'runtime',
): Promise<Map<string, Record<string, string>>> {
  const found = new Map(application_ids.map((id) => [id, {} as Record<string, string>]));
  type Stored = { application_id: string; key: string; value: string };
  for (const { application_id: id, key, value } of await sql.query<Stored>(AVAILABLE, [application_ids, at]))
    (found.get(id) as Record<string, string>)[key] = secrets.open(value, sealedColumns.variable.contextOf(id, key));
  return found;
}

/** What is sealed is longer than the value. */
interface SealedBytes {
  build: number;
  runtime: number;
}

const SEALED_BYTES = named(`select
    coalesce(sum(octet_length(key || value) + 2) filter (where available_at <> 'runtime'), 0)::int as build,
    coalesce(sum(octet_length(key || value) + 2) filter (where available_at <> 'build'), 0)::int as runtime
  from environment_variables where application_id = $1`);

/**
 * Makes a change, and refuses one after which the variables are more than a program starts with, unless it made them
 * fewer: there may have been too many before there was a limit.
 * @throws quota_exceeded with the sum
 */
export async function requireFitting<Made>(
  { sql, secrets }: Context,
  application_id: string,
  change: () => Promise<Made>,
): Promise<Made> {
  const [before] = await sql.query<SealedBytes>(SEALED_BYTES, [application_id]);
  const made = await change();
  const [after] = await sql.query<SealedBytes>(SEALED_BYTES, [application_id]);
  for (const at of ['build', 'runtime'] as const) {
    const bytes = after?.[at] ?? 0;
    if (bytes > limits.environmentBytesMax && bytes > (before?.[at] ?? 0))
      requireFittingValues(await variablesOf(sql, secrets, application_id, at), 'The variables of an application');
  }
  return made;
}

/** @param subject of the sentence @throws quota_exceeded with the sum */
export function requireFittingValues(variables: Readonly<Record<string, string>>, subject: string): void {
  const used = environmentBytes(variables);
  const limit = limits.environmentBytesMax;
  if (used > limit)
    throw problem(
      'quota_exceeded',
      `${subject} may have ${limit} bytes together, names and values: no program starts with more. ` +
        `These have ${used}. Keep large values in a file, a volume or a bucket.`,
      { resource: 'environment_bytes', used, limit },
    );
}

interface Place {
  application_id: string;
  key: string;
}

/**
 * A value in stored form. The hash includes the variable's place, otherwise it would reveal which variables are equal.
 */
export function sealed(secrets: SecretBox, place: Place, value: string): { value: string; value_hash: string } {
  const context = sealedColumns.variable.contextOf(place.application_id, place.key);
  return {
    value: secrets.seal(value, context),
    value_hash: secrets.hmac(`${context}\0${value}`, 'environment_variables'),
  };
}

export function isReservedVariable(key: string): boolean {
  return key === 'PORT' || key.startsWith('SVC_');
}

/** @throws env_key_reserved */
export function requireFree(key: string): void {
  if (!isReservedVariable(key)) return;
  throw problem('env_key_reserved', `${key} belongs to the platform.`);
}
