// Relay zones: SMTP submission accounts with separate credentials, limits and suppression lists.
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { defineStates } from '../../core/states';
import { mintSecret, sha256 } from '../../core/accounts/tokens';
import { named } from '../../db/statement';
import type { Values } from '../../db/table';
import type { CreateEmailRelayZoneInput, UpdateEmailRelayZoneInput } from '../../schema/types';
import type { Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { requestedChanges } from '../base/requested_changes';
import { EmailDomain, requireMailEngine } from './email_domain';

/** What sends mail for one or more domains of a project. Only the hash of its password is stored. */
export class EmailRelayZone extends Resource {
  static readonly table = 'email_relay_zones';
  static readonly kind = 'email_relay_zone';
  static readonly idPrefix = 'erz';
  static override readonly projectChild = 'email_relay_zones';
  static override readonly filters = { name: 'name = ?', status: 'status = ?' };
  static override readonly sorts = ['name'];
  static override readonly quotas = [{ resource: 'email_relay_zones' }];
  static override readonly bin: Bin<EmailRelayZone> = {
    nameFormat: 'slug',
    async restore(ctx, { email_domain_ids }) {
      for (const [index, id] of email_domain_ids.entries())
        await EmailDomain.referenced(ctx, id, `email_domain_ids.${index}`);
      return [];
    },
  };
  static override readonly states = defineStates({
    initial: ['active', 'disabled'],
    moves: { active: ['disabled', 'suspended'], disabled: ['active'], suspended: ['active', 'disabled'] },
  });

  declare name: string;
  declare email_domain_ids: string[];
  declare allowed_sources: string[];
  declare daily_limit: number | null;
  declare enabled: boolean;
  declare deletion_protection: boolean;
  declare password_hash: string;
  declare status: 'active' | 'disabled' | 'suspended';
  declare status_reason: string | null;
  declare suspended_at: string | null;
  /** The password in plain, where this answer shows it. */
  declare shown?: string;

  /** @throws reference_not_found, domain_not_verified, name_taken, quota_exceeded, engine_unavailable */
  static async create(ctx: Context, input: CreateEmailRelayZoneInput): Promise<EmailRelayZone> {
    requireMailEngine(ctx);
    await requireVerified(ctx, input.email_domain_ids);
    const password = mintSecret('');
    const enabled = input.enabled ?? true;
    const zone = await EmailRelayZone.insert(ctx, {
      name: input.name,
      email_domain_ids: input.email_domain_ids,
      enabled,
      allowed_sources: input.allowed_sources ?? [],
      daily_limit: input.daily_limit ?? null,
      deletion_protection: input.deletion_protection ?? false,
      password_hash: sha256(password),
      status: enabled ? 'active' : 'disabled',
    });
    zone.shown = password;
    return zone;
  }

  /** @throws reference_not_found, domain_not_verified, name_taken */
  async change(ctx: Context, input: UpdateEmailRelayZoneInput): Promise<this> {
    const changes: Values = requestedChanges(input, this);
    if (changes.email_domain_ids) await requireVerified(ctx, changes.email_domain_ids as string[]);
    const enabled = input.enabled ?? this.enabled;
    // What the platform has suspended stays so, whatever its owner wants.
    if (!this.suspended_at) changes.status = enabled ? 'active' : 'disabled';
    return this.update(ctx, changes);
  }

  /** Its password and its suppressions stay with it in the bin. @throws deletion_protected */
  async destroy(ctx: Context): Promise<void> {
    await requireUnprotected(ctx, this);
    await removeToBin(ctx, this);
  }

  /** The old password is refused from now on. */
  async rotate(ctx: Context): Promise<this> {
    const password = mintSecret('');
    await this.update(ctx, { password_hash: sha256(password) });
    this.shown = password;
    return this;
  }
}

const DOMAINS = named(
  `select id, status from email_domains where project_id = $1 and id = any($2) and deleted_at is null
    order by id for share`,
);

/** Keeps the domains until the end of the transaction. @throws reference_not_found, domain_not_verified */
async function requireVerified(ctx: Context, ids: readonly string[]): Promise<void> {
  const found = await ctx.sql.query<Pick<EmailDomain, 'id' | 'status'>>(DOMAINS, [ctx.project?.id, [...ids]]);
  const statuses = new Map(found.map(({ id, status }) => [id, status]));
  ids.forEach((id, index) => {
    const field = `email_domain_ids.${index}`;
    if (!statuses.has(id))
      throw problem('reference_not_found', `${field}: this project has no usable resource with this id.`, { field });
  });
  ids.forEach((id, index) => {
    if (statuses.get(id) !== 'verified')
      throw problem('domain_not_verified', `The sending domain ${id} is ${statuses.get(id)}. Verify it first.`, {
        field: `email_domain_ids.${index}`,
      });
  });
}
