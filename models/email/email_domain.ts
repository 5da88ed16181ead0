// Domains from which projects send mail: ownership is proven by DNS records, which are checked periodically.
import type { Context } from '../../core/context';
import type { DkimKey, DkimRecord } from '../../core/protocols/dkim';
import { problem, validationFailed } from '../../core/errors';
import { mintId, timeOfId } from '../../core/ids';
import { defineStates } from '../../core/states';
import { named } from '../../db/statement';
import type { Values } from '../../db/table';
import type { CreateEmailDomainInput, DnsInstruction, DnsMode, UpdateEmailDomainInput } from '../../schema/types';
import { getPublicSuffix } from 'tldts';
import type { Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import {
  evaluateEmailDomain,
  lookUpEmailRecords,
  nextEmailCheckMs,
  rotatedRecords,
  type CheckedDomain,
} from './email_domain/check';
import { emailInstructions, mailHostOf, servedFindings, type EmailFindings } from './email_domain/instructions';
import { dkimColumns, keysOfRecords, openDkimKeys } from './email_domain/keys';
import { ensureEmailRecords, withEmailZone } from './email_domain/records';

/** A domain of a customer that mail is sent from. */
export class EmailDomain extends Resource implements CheckedDomain {
  static readonly table = 'email_domains';
  static readonly kind = 'email_domain';
  static readonly idPrefix = 'emd';
  static override readonly projectChild = 'email_domains';
  static override readonly filters = { name: 'name = lower(?)', status: 'status = ?' };
  static override readonly sorts = ['name'];
  static override readonly quotas = [{ resource: 'email_domains' }];
  static override readonly bin: Bin<EmailDomain> = {
    nameFormat: null,
    async restore(ctx, domain, memo) {
      await requireUnverifiedElsewhere(ctx, domain.name);
      // With the keys that it had; its records are looked for at once.
      const { status } = memo as Pick<EmailDomain, 'status'>;
      await domain.update(ctx, status === 'pending' ? unverified() : { status, missing_since: null });
      return [];
    },
  };
  static override readonly states = defineStates({
    initial: ['pending'],
    moves: { pending: ['verified', 'failed'], verified: ['failed', 'pending'], failed: ['verified', 'pending'] },
  });

  declare name: string;
  declare return_path_subdomain: string;
  declare dns: DnsMode;
  declare open_tracking: boolean;
  declare click_tracking: boolean;
  declare deletion_protection: boolean;
  declare dkim_selector: string;
  declare dkim_records: readonly DkimRecord[];
  /** Sealed. */
  declare dkim_keys: string;
  declare status: 'pending' | 'verified' | 'failed';
  declare status_reason: string | null;
  declare findings: EmailFindings | null;
  declare last_checked_at: string | null;
  declare verified_at: string | null;
  declare pending_since: string;
  declare missing_since: string | null;

  /**
   * @param keys made before the transaction, which holds locks
   * @throws validation_failed for a public suffix, domain_taken, quota_exceeded, engine_unavailable
   */
  static async create(ctx: Context, input: CreateEmailDomainInput, keys: DkimKey[]): Promise<EmailDomain> {
    requireMailEngine(ctx);
    requireForeign(ctx, input.name);
    await requireUnverifiedElsewhere(ctx, input.name);
    const id = mintId(EmailDomain.idPrefix);
    const created_at = timeOfId(id).toISOString();
    const domain = await EmailDomain.insert(ctx, {
      id,
      pending_since: created_at,
      name: input.name,
      status: 'pending',
      return_path_subdomain: input.return_path_subdomain ?? 'bounce',
      dns: input.dns ?? 'automatic',
      open_tracking: input.open_tracking ?? false,
      click_tracking: input.click_tracking ?? false,
      deletion_protection: input.deletion_protection ?? false,
      ...dkimColumns(ctx.secrets, id, keys),
    });
    return domain.settle(ctx);
  }

  async change(ctx: Context, input: UpdateEmailDomainInput): Promise<this> {
    const { return_path_subdomain } = input;
    const moves = return_path_subdomain != null && return_path_subdomain !== this.return_path_subdomain;
    await this.update(ctx, { ...given(input), ...(moves && unverified()) });
    return moves ? this.settle(ctx) : this;
  }

  /** In the bin it has proven nothing. @throws deletion_protected, resource_in_use while a relay zone sends for it */
  async destroy(ctx: Context): Promise<void> {
    await requireUnprotected(ctx, this);
    const zones = await ctx.sql.query<{ id: string }>(ZONES, [this.project_id, this.id]);
    if (zones.length)
      throw problem('resource_in_use', 'A relay zone sends for the domain.', {
        dependents: zones.map(({ id }) => ({ type: 'email_relay_zone', id })),
      });
    const { status } = this;
    await this.update(ctx, { status: 'pending' });
    await removeToBin(ctx, this, { memo: { status } });
  }

  /**
   * @param next keys made before the transaction
   * @throws resource_busy while a rotation is open
   */
  async rotateDkim(ctx: Context, next: DkimKey[]): Promise<this> {
    if (this.dkim_records.some(({ role }) => role === 'next'))
      throw problem('resource_busy', 'The record of the next DKIM key has not been found yet.', {
        resource_status: this.status,
      });
    const keys = [...openDkimKeys(ctx.secrets, this), ...next];
    await this.update(ctx, dkimColumns(ctx.secrets, this.id, keys));
    return this.settle(ctx);
  }

  /** What the DNS says of a domain now, for `verify`. Null where it gave no answer, or there is no such domain. */
  static async probe(ctx: Context, id: string): Promise<EmailFindings | null> {
    const domain = await EmailDomain.get(ctx, id).catch(() => null);
    return domain && lookUpEmailRecords(ctx.probes.dns, domain);
  }

  /** Takes over what a probe has found. @throws provider_error where it found out nothing, domain_taken */
  async verify(ctx: Context, findings: EmailFindings | null): Promise<this> {
    const mail = mailHostOf(ctx.config);
    const zone = await ensureEmailRecords(ctx.sql, this, mail);
    const all = withEmailZone(findings, zone, this, mail);
    if (!all) throw problem('provider_error', 'The DNS gave no answer about the domain. Try again in a moment.');
    return this.record(ctx, all);
  }

  /** Makes the records where the project holds the zone; where it is delegated, nothing is left to be waited for. */
  private async settle(ctx: Context): Promise<this> {
    const mail = mailHostOf(ctx.config);
    const zone = await ensureEmailRecords(ctx.sql, this, mail);
    return zone?.isServed ? this.record(ctx, servedFindings(this, mail, zone)) : this;
  }

  private async record(ctx: Context, findings: EmailFindings): Promise<this> {
    const now = new Date();
    const verdict = evaluateEmailDomain(this, findings, mailHostOf(ctx.config), now);
    const moves = verdict.status !== this.status;
    if (moves && verdict.status === 'verified') await requireUnverifiedElsewhere(ctx, this.name);
    ctx.activity.resource ??= { type: EmailDomain.kind, id: this.id, name: this.name, project_id: this.project_id };
    if (moves && !ctx.activity.changed_fields.length) ctx.activity.changed_fields = ['status'];
    const keys = rotatedColumns(ctx, this, findings);
    const next = nextEmailCheckMs({ ...this, ...verdict }, now);
    const [row] = await ctx.sql.query<object>(RECORD, [
      ...[this.id, verdict.status, verdict.status_reason, JSON.stringify(findings), verdict.last_checked_at],
      ...[verdict.verified_at, verdict.missing_since, new Date(now.getTime() + next).toISOString()],
      ...[keys.dkim_selector, JSON.stringify(keys.dkim_records), keys.dkim_keys],
    ]);
    return Object.assign(this, row);
  }

  /** The records that its owner has to create, as the last check found them. */
  instructions(ctx: Context): DnsInstruction[] {
    return emailInstructions(this, mailHostOf(ctx.config), this.findings);
  }
}

const ZONES = named(
  `select id from email_relay_zones where project_id = $1 and email_domain_ids @> array[$2]::text[]
    and deleted_at is null`,
);
const VERIFIED_ELSEWHERE = named(
  `select 1 from email_domains where name = $1 and status = 'verified' and deleted_at is null and project_id <> $2`,
);
// Observed, not desired: the version stays. A step of the loop with an earlier DNS lookup loses its lease.
const RECORD = named(`update email_domains set status = $2, status_reason = $3, findings = $4, last_checked_at = $5,
    verified_at = $6, missing_since = $7, next_at = $8,
    dkim_selector = $9, dkim_records = $10, dkim_keys = $11,
    updated_at = case when status = $2 then updated_at else greatest(now(), updated_at) end,
    observed_generation = observed_generation + 1, fence = fence + 1, lease_owner = null, lease_until = null,
    attempts = 0, deadline_at = null, last_error = null
  where id = $1 returning *`);

/** Columns of the keys after a check, which may have ended a rotation. */
export function rotatedColumns(
  { secrets }: Pick<Context, 'secrets'>,
  domain: Pick<EmailDomain, 'id' | 'dkim_keys' | 'dkim_records' | 'dkim_selector'>,
  findings: EmailFindings | null,
): Values {
  const records = rotatedRecords(domain.dkim_records, findings);
  if (records) return dkimColumns(secrets, domain.id, keysOfRecords(openDkimKeys(secrets, domain), records));
  const { dkim_selector, dkim_records, dkim_keys } = domain;
  return { dkim_selector, dkim_records, dkim_keys };
}

/** @throws engine_unavailable where the operator has switched mail off */
export function requireMailEngine({ config }: Context): void {
  if (config.smtpPorts.length) return;
  throw problem('engine_unavailable', 'This installation takes no mail: the operator has set `SMTP_PORTS` to `0`.');
}

function given(input: UpdateEmailDomainInput): Values {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value != null));
}

function unverified(): Values {
  const pending_since = new Date().toISOString();
  return { status: 'pending', status_reason: null, pending_since, missing_since: null };
}

async function requireUnverifiedElsewhere(ctx: Context, name: string): Promise<void> {
  const taken = await ctx.sql.query(VERIFIED_ELSEWHERE, [name, ctx.project?.id]);
  if (taken.length) throw problem('domain_taken', `${name} is verified in another project.`, { field: 'name' });
}

function requireForeign({ config }: Context, name: string): void {
  const isSuffix = getPublicSuffix(name, { extractHostname: false, validateHostname: false }) === name;
  const own = [config.appsDomain, config.dnsDomain, config.smtpHost];
  const detail = isSuffix
    ? 'is a public suffix'
    : own.some((domain) => name === domain || name.endsWith(`.${domain}`))
      ? 'belongs to the platform'
      : null;
  if (detail) throw validationFailed([{ field: 'name', code: 'invalid_format', detail }]);
}
