import type { Context, Identity } from '../../core/context';
import { problem, validationFailed, type FieldError } from '../../core/errors';
import { defineStates } from '../../core/states';
import { named } from '../../db/statement';
import type { CdnPurgeStatus, CdnPurgeType, CreateCdnPurgeInput } from '../../schema/types';
import { actorOf, type Activity } from '../projects/activity';
import { Resource } from '../base/resource';
import type { CdnZone } from './cdn_zone';

const PURGES_PER_HOUR = 100;
const RECENT = named(
  `select count(*)::int as used from cdn_purges where cdn_zone_id = $1 and created_at > now() - interval '1 hour'`,
);

/** A removal of objects from the cache of a CDN zone. */
export class CdnPurge extends Resource {
  static readonly table = 'cdn_purges';
  static readonly kind = 'cdn_purge';
  static readonly idPrefix = 'pur';
  static override readonly filters = { type: 'type = ?', status: 'status = ?' };
  static override readonly states = defineStates<CdnPurgeStatus>({
    initial: ['pending'],
    moves: { pending: ['completed', 'failed'] },
  });

  declare cdn_zone_id: string;
  declare type: CdnPurgeType;
  declare values: string[] | null;
  declare status: CdnPurgeStatus;
  declare status_reason: string | null;
  declare created_by: Activity['actor'];
  declare completed_at: string | null;

  /** @param zone held. @throws validation_failed, invalid_state, rate_limited beyond 100 an hour */
  static async create(ctx: Context, zone: CdnZone, { type, values }: CreateCdnPurgeInput): Promise<CdnPurge> {
    const mistakes = mistakesOf(type, values);
    if (mistakes.length) throw validationFailed(mistakes);
    zone.requireStatus(['active']);
    const [recent] = await ctx.sql.query<{ used: number }>(RECENT, [zone.id]);
    if ((recent?.used ?? 0) >= PURGES_PER_HOUR)
      throw problem('rate_limited', `A zone takes ${PURGES_PER_HOUR} purges an hour.`, {}, { 'Retry-After': '600' });
    return CdnPurge.insert(ctx, {
      cdn_zone_id: zone.id,
      type,
      values: values ?? null,
      created_by: actorOf(ctx.identity as Identity),
    });
  }
}

function mistakesOf(type: CdnPurgeType, values: readonly string[] | null | undefined): FieldError[] {
  if (type === 'all')
    return values == null ? [] : [{ field: 'values', code: 'depends_on', detail: 'is not for the type all' }];
  if (values == null) return [{ field: 'values', code: 'required', detail: `is required for the type ${type}` }];
  const { fits, detail } = type === 'tags' ? TAG : PATH;
  return values.flatMap((value, index) =>
    fits(value) ? [] : [{ field: `values.${index}`, code: 'invalid_format', detail }],
  );
}

/** What no object can have would be purged without any effect. */
const TAG = {
  fits: (tag: string): boolean => /^[!-+\--~]{1,256}$/.test(tag),
  detail: 'must be one word of at most 256 visible characters without a comma',
};
const PATH = {
  fits: (path: string): boolean => /^\/[!"$->@-[\]-~]*(?:\?[!"$-~]*)?$/.test(path),
  detail: 'must begin with a slash, and be written as it is requested: percent-encoded, without a fragment',
};
