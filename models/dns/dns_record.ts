import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { named } from '../../db/statement';
import type { DnsCaaTag, DnsType } from '../../schema/types';
import { Resource } from '../base/resource';
import { fqdnOf, type RecordFields } from './dns_record/rules';

/** A record of a DNS zone. It is served by the name server that the job of the zone keeps up to date. */
export class DnsRecord extends Resource implements RecordFields {
  static readonly table = 'dns_records';
  static readonly kind = 'dns_record';
  static readonly idPrefix = 'rec';
  static override readonly filters = { type: 'type = ?', name: 'name = lower(?)' };
  static override readonly sorts = ['name', 'type'];

  declare dns_zone_id: string;
  declare type: DnsType;
  declare name: string;
  declare value: string;
  declare ttl: number | null;
  declare priority: number | null;
  declare weight: number | null;
  declare port: number | null;
  declare flags: number | null;
  declare tag: DnsCaaTag | null;
  declare comment: string | null;
  declare is_protected: boolean;
  declare managed_by: { type: string; id: string } | null;
  /** Of its zone, where it is known already. */
  declare zone_name?: string;

  /** The full name. */
  async fqdn(ctx: Context): Promise<string> {
    this.zone_name ??= await zoneName(ctx, this.dns_zone_id);
    return fqdnOf(this.name, this.zone_name);
  }

  /** @throws resource_protected for records of the platform, and for those that another resource keeps */
  requireChangeable(): void {
    if (this.is_protected)
      throw problem('resource_protected', 'The platform manages this record, so it cannot be changed.');
    if (this.managed_by) {
      const { type, id } = this.managed_by;
      throw problem(
        'resource_protected',
        `The ${type.replaceAll('_', ' ')} ${id} manages this record. Change that resource instead.`,
      );
    }
  }

  /** For the activity entry of the request: the record, not the zone that changes with it. */
  remember(ctx: Context): this {
    ctx.activity.resource = { type: DnsRecord.kind, id: this.id, name: this.name, project_id: this.project_id };
    return this;
  }
}

const ZONE_NAME = named('select name from dns_zones where id = $1');

/** Loaded once for all records of an answer, which are of one zone. */
async function zoneName(ctx: Context, id: string): Promise<string> {
  const known = ctx.loaders.get(`zone name ${id}`) as Promise<string> | undefined;
  if (known) return known;
  const loading = ctx.sql.query<{ name: string }>(ZONE_NAME, [id]).then(([row]) => row?.name ?? '');
  ctx.loaders.set(`zone name ${id}`, loading);
  return loading;
}
