import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { defineStates } from '../../core/states';
import { mintSecret, sha256 } from '../../core/accounts/tokens';
import type { CreateRobotAccountInput, RobotAccountStatus, RobotPermission } from '../../schema/types';
import type { Bin } from '../base/bin';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { Registry } from './registry';
import { randomWord } from '../../core/ids';

const SUFFIX_LETTERS = 'abcdefghjkmnpqrstvwxyz23456789';
const SUFFIX_LENGTH = 6;

/** A user of the project's registries that is a program. Only a hash of its secret is stored. */
export class RobotAccount extends Resource {
  static readonly table = 'robot_accounts';
  static readonly kind = 'robot_account';
  static readonly idPrefix = 'rob';
  static override readonly projectChild = 'robot_accounts';
  static override readonly bin: Bin<RobotAccount> = { nameFormat: null };
  static override readonly filters = {
    name: 'name = ?',
    status: `case when expires_at <= now() then 'expired' else 'active' end = ?`,
    registry_id: `exists (select from registries r where r.id = ? and r.project_id = robot_accounts.project_id
      and (registry_ids is null or r.id = any (registry_ids)))`,
  };
  static override readonly sorts = ['name', 'last_used_at'];
  static override readonly states = defineStates({ initial: ['active'], moves: { active: ['expired'] } });
  static override readonly quotas = [{ resource: 'robot_accounts' as const }];

  declare name: string;
  declare permissions: RobotPermission[];
  /** null = every registry of the project. */
  declare registry_ids: string[] | null;
  declare expires_at: string | null;
  declare username: string;
  declare secret_hash: string;
  declare last_used_at: string | null;
  /** Only of an account that was created just now. */
  declare secret?: string;

  /**
   * @throws validation_failed for an end in the past, destroy_not_allowed, reference_not_found, name_taken,
   * quota_exceeded
   */
  static async create(ctx: Context, input: CreateRobotAccountInput): Promise<RobotAccount> {
    const { name, permissions, registry_ids = null, expires_at = null } = input;
    // A key that may not delete would delete by the account that it makes.
    if (permissions.includes('delete') && !ctx.identity?.may_destroy)
      throw problem('destroy_not_allowed', 'An account that deletes images needs a key that may delete.');
    if (expires_at !== null && Date.parse(expires_at) <= Date.now())
      throw validationFailed([{ field: 'expires_at', code: 'too_small', detail: 'must be in the future' }]);
    for (const [index, id] of (registry_ids ?? []).entries())
      await Registry.referenced(ctx, id, `registry_ids.${index}`);
    const secret = mintSecret('');
    const robot = await RobotAccount.insert(ctx, {
      name,
      permissions,
      registry_ids,
      expires_at,
      username: `robot-${name}-${newSuffix()}`,
      secret_hash: sha256(secret),
    });
    return Object.assign(robot, { secret });
  }

  /** It opens nothing any more. In the bin it keeps its secret and its rights. */
  async destroy(ctx: Context): Promise<void> {
    await removeToBin(ctx, this);
  }

  get accountStatus(): RobotAccountStatus {
    return this.expires_at !== null && Date.parse(this.expires_at) <= Date.now() ? 'expired' : 'active';
  }
}

function newSuffix(): string {
  return randomWord(SUFFIX_LETTERS, SUFFIX_LENGTH);
}
