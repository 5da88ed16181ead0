// Custom domains of applications: ownership is proven by DNS records, which are checked periodically.
import { createHmac } from 'node:crypto';
import type { Context, Sql } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { limits } from '../../core/limits';
import { defineStates } from '../../core/states';
import type {
  AddDomainInput,
  Certificate,
  DnsInstruction,
  DnsMode,
  DomainStatus,
  DomainType,
  MoveDomainInput,
} from '../../schema/types';
import { Application } from '../applications/application';
import { requireParentRoom, type ParentLimit } from '../base/quota';
import { Resource } from '../base/resource';
import { probeDns, evaluateDomain, nextCheckMs, takenReason, type Verdict } from './domain/check';
import { requireForeign, typeOf } from './domain/hostname';
import { ingressOf, instructionsFor, type Findings } from './domain/instructions';
import { ensureDomainRecords, ownerTypeOf, removeDomainRecords, withZone } from './domain/records';
import { named } from '../../db/statement';

/** A host name of a customer that leads to an application. */
export class Domain extends Resource {
  static readonly table: string = 'domains';
  static readonly kind: string = 'domain';
  static readonly idPrefix: string = 'dom';
  static override readonly parentLimit: ParentLimit = {
    column: 'application_id',
    max: limits.domainsPerApplication,
    resource: 'domains',
    parent: 'An application',
    rows: 'custom domains',
  };
  static override readonly filters = { hostname: 'hostname = lower(?)', status: 'status = ?' };
  static override readonly sorts = ['hostname'];
  static override readonly states = defineStates<DomainStatus>({
    initial: ['pending'],
    moves: { pending: ['active', 'failed'], failed: ['active'], active: ['failed'] },
  });

  declare application_id: string;
  /** Where the name has to lead, if it is not the ingress: the host name of a CDN zone. */
  declare target_host: string | null;
  declare hostname: string;
  declare type: DomainType;
  declare dns: DnsMode;
  declare status: DomainStatus;
  declare status_reason: string | null;
  declare findings: Findings | null;
  declare certificate: Certificate;
  declare verification_token: string;
  declare last_checked_at: string | null;
  declare verified_at: string | null;
  declare missing_since: string | null;

  /** @throws not_found (application), validation_failed, quota_exceeded, domain_taken */
  static async add(ctx: Context, applicationId: string, { hostname, dns }: AddDomainInput): Promise<Domain> {
    requireForeign(ctx.config, hostname);
    await Application.ofChild(ctx, applicationId);
    if (await isTaken(ctx.sql, { hostname, id: '' })) throw problem('domain_taken', takenReason({ hostname }));
    const domain = await Domain.insert(ctx, {
      application_id: applicationId,
      hostname,
      type: typeOf(hostname),
      dns: dns ?? 'automatic',
      status: 'pending',
      certificate: { status: 'none', issuer: null, expires_at: null, error: null },
      verification_token: verificationToken(ctx, hostname),
    });
    return domain.createRecords(ctx);
  }

  /** In the zone of the project, if it has one of the name. */
  protected async createRecords(ctx: Context): Promise<this> {
    const ingress = ingressOf(ctx.config, this);
    const zone = await ensureDomainRecords(ctx.sql, this, ingress);
    if (!zone?.isServed && !zone?.conflicts.length) return this;
    return this.record(ctx, evaluateDomain(this, withZone(null, zone), ingress, new Date(), false));
  }

  /**
   * What the DNS says of a domain now, for `verify`. Null where it gave no answer, or where there is no such domain.
   */
  static async probe(ctx: Context, applicationId: string, id: string): Promise<Findings | null> {
    const domain = await Domain.get(ctx, id, { application_id: applicationId }).catch(() => null);
    return domain && domain.probeRecords(ctx);
  }

  /** What the DNS says now; null where it gives no answer. */
  probeRecords(ctx: Context): Promise<Findings | null> {
    return probeDns(ctx.probes.dns, this, ingressOf(ctx.config, this));
  }

  /**
   * Takes over what a probe has found. @throws provider_error where it found out nothing, domain_taken where another
   * project proves the name at the same time
   */
  async verify(ctx: Context, findings: Findings | null): Promise<this> {
    const ingress = ingressOf(ctx.config, this);
    const zone = await ensureDomainRecords(ctx.sql, this, ingress);
    const all = zone ? withZone(findings, zone) : findings;
    if (!findings && !zone?.isServed)
      throw problem('provider_error', 'The DNS gave no answer about the domain. Try again in a moment.');
    const verdict = evaluateDomain(this, all, ingress, new Date(), await isTaken(ctx.sql, this));
    ctx.activity.resource = { type: ownerTypeOf(this), id: this.id, name: this.hostname, project_id: this.project_id };
    ctx.activity.changed_fields = verdict.status === this.status ? [] : ['status'];
    return this.record(ctx, verdict);
  }

  /** @throws validation_failed for the present application, reference_not_found, quota_exceeded */
  async moveTo(ctx: Context, { application_id }: MoveDomainInput): Promise<this> {
    if (application_id === this.application_id) {
      throw validationFailed([
        { field: 'application_id', code: 'depends_on', detail: 'needs another application than the present one' },
      ]);
    }
    await lockTarget(ctx, application_id);
    await requireParentRoom(ctx, Domain, application_id);
    return this.update(ctx, { application_id });
  }

  /** Its records go at once; the name stays taken until the loop has torn it down. */
  override async remove(ctx: Context): Promise<void> {
    await removeDomainRecords(ctx.sql, this);
    await super.remove(ctx);
  }

  /** The records that its owner has to create, as the last check found them. */
  instructions(ctx: Context): DnsInstruction[] {
    return instructionsFor(this, ingressOf(ctx.config, this), this.findings);
  }

  // Observed, not desired: the version stays. A step of the loop with an earlier DNS lookup loses its lease.
  private async record(ctx: Context, verdict: Verdict): Promise<this> {
    const now = new Date();
    const next_at = new Date(now.getTime() + nextCheckMs({ ...verdict, created_at: this.created_at }, now));
    const { status, status_reason, findings, last_checked_at, verified_at, missing_since } = verdict;
    const values = [
      this.id,
      status,
      status_reason,
      JSON.stringify(findings),
      last_checked_at,
      verified_at,
      missing_since,
      next_at.toISOString(),
    ];
    const [row] = await ctx.sql.query<object>(RECORD, values);
    return Object.assign(this, row);
  }
}

const RECORD =
  named(`update domains set status = $2, status_reason = $3, findings = $4, last_checked_at = $5, verified_at = $6,
    missing_since = $7, next_at = $8,
  updated_at = case when status = $2 then updated_at else greatest(now(), updated_at) end,
  observed_generation = observed_generation + 1, fence = fence + 1, lease_owner = null, lease_until = null,
    attempts = 0, deadline_at = null, last_error = null
  where id = $1 returning *`);

const PROVEN = named(`select 1 from domains where hostname = $1 and status = 'active' and id <> $2`);

/** Whether another project has proven ownership of the name: an unproven claim blocks no other project. */
export async function isTaken(sql: Sql, { hostname, id }: Pick<Domain, 'hostname' | 'id'>): Promise<boolean> {
  return (await sql.query(PROVEN, [hostname, id])).length > 0;
}

const LOCK_TARGET = named(
  'select id from applications where id = $1 and project_id = $2 and deleted_at is null for no key update',
);

/**
 * Keeps the application from vanishing, and from filling up, until the end of the transaction. @throws
 * reference_not_found
 */
async function lockTarget(ctx: Context, application_id: string): Promise<void> {
  const [target] = await ctx.sql.query(LOCK_TARGET, [application_id, ctx.project?.id]);
  if (!target)
    throw problem('reference_not_found', 'application_id: this project has no usable application with this id.', {
      field: 'application_id',
    });
}

/** The same each time that a project adds the name: a domain that was removed by mistake is still proven. */
export function verificationToken(
  { secrets, project }: Pick<Context, 'secrets' | 'project'>,
  hostname: string,
): string {
  const text = JSON.stringify([project?.id, hostname.toLowerCase()]);
  return createHmac('sha256', secrets.subKey('domains')).update(text).digest('hex').slice(0, 32);
}
