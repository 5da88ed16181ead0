import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import type { AddCdnDomainInput } from '../../schema/types';
import type { CdnZone } from './cdn_zone';
import { Domain, isTaken, verificationToken } from '../domains/domain';
import { takenReason } from '../domains/domain/check';
import type { Findings } from '../domains/domain/instructions';
import { requireForeign, typeOf } from '../domains/domain/hostname';

const DOMAINS_PER_ZONE = 20;

/** A host name of a customer at which a CDN zone answers: a row of `domains`, checked and certified like the others. */
export class CdnDomain extends Domain {
  static override readonly table = 'cdn_domains';
  static override readonly storedIn = 'domains';
  static override readonly kind = 'cdn_domain';
  static override readonly idPrefix = 'cdd';
  static override readonly parentLimit = {
    column: 'cdn_zone_id',
    max: DOMAINS_PER_ZONE,
    resource: 'cdn_domains',
    parent: 'A CDN zone',
    rows: 'custom domains',
  };

  declare cdn_zone_id: string;

  /** @param zone held. @throws validation_failed, quota_exceeded, domain_taken */
  static async addTo(ctx: Context, zone: CdnZone, { hostname, dns }: AddCdnDomainInput): Promise<CdnDomain> {
    requireForeign(ctx.config, hostname);
    if (await isTaken(ctx.sql, { hostname, id: '' })) throw problem('domain_taken', takenReason({ hostname }));
    const domain = await CdnDomain.insert(ctx, {
      cdn_zone_id: zone.id,
      hostname,
      type: typeOf(hostname),
      dns: dns ?? 'automatic',
      status: 'pending',
      target_host: zone.hostname,
      certificate: { status: 'none', issuer: null, expires_at: null, error: null },
      verification_token: verificationToken(ctx, hostname),
    });
    // The loop works on the table behind the view.
    ctx.sql.due(Domain.table);
    return domain.createRecords(ctx);
  }

  /** What the DNS says of a domain now, for `verify`; null where it gave no answer, or there is no such domain. */
  static async probeOf(ctx: Context, zoneId: string, id: string): Promise<Findings | null> {
    const domain = await CdnDomain.get(ctx, id, { cdn_zone_id: zoneId }).catch(() => null);
    return domain && domain.probeRecords(ctx);
  }
}
