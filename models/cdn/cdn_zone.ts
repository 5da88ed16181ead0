import { isPrivateHost } from '../../core/protocols/addresses';
import type { Context } from '../../core/context';
import { validationFailed, type FieldError } from '../../core/errors';
import { defineStates } from '../../core/states';
import type {
  CdnCache,
  CdnCacheInput,
  CdnOrigin,
  CdnOriginInput,
  CdnZoneStatus,
  CreateCdnZoneInput,
  UpdateCdnZoneInput,
} from '../../schema/types';
import { Application } from '../applications/application';
import { wantDefaultCertificate } from '../base/default_certificate';
import { requireUnprotected } from '../base/deletion_protection';
import { Bucket } from '../object_storage/bucket';
import type { Bin } from '../base/bin';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { requestedChanges } from '../base/requested_changes';
import { cdnZoneBin, giveUpDomains } from './cdn_zone/bin';
import { randomWord } from '../../core/ids';

const SUFFIX_LETTERS = 'abcdefghjkmnpqrstvwxyz23456789';
const SUFFIX_LENGTH = 6;
const CACHE_DEFAULTS: CdnCache = {
  default_ttl_seconds: 86_400,
  browser_ttl_seconds: null,
  respect_origin_headers: true,
  query_string: 'include',
  serve_stale: false,
};

/** A cache between visitors and an origin. */
export class CdnZone extends Resource {
  static readonly table = 'cdn_zones';
  static readonly kind = 'cdn_zone';
  static readonly idPrefix = 'cdn';
  static override readonly projectChild = 'cdn_zones';
  static override readonly filters = { name: 'name = ?', status: 'status = ?' };
  static override readonly sorts = ['name'];
  static override readonly quotas = [{ resource: 'cdn_zones' as const }];
  static override readonly bin: Bin<CdnZone> = cdnZoneBin;
  static override readonly states = defineStates<CdnZoneStatus>({
    initial: ['provisioning'],
    transitional: ['provisioning', 'updating'],
    moves: {
      provisioning: ['active', 'disabled', 'failed'],
      active: ['updating', 'disabled', 'failed'],
      updating: ['active', 'disabled', 'failed'],
      disabled: ['updating', 'active'],
      failed: ['updating', 'active', 'disabled'],
    },
  });

  declare name: string;
  declare origin: CdnOrigin;
  declare hostname: string;
  declare enabled: boolean;
  declare cache: CdnCache;
  declare compression: boolean;
  declare force_https: boolean;
  declare deletion_protection: boolean;
  declare status: CdnZoneStatus;
  declare status_reason: string | null;

  /** @throws validation_failed, reference_not_found, name_taken, quota_exceeded */
  static async create(ctx: Context, input: CreateCdnZoneInput): Promise<CdnZone> {
    const zone = await CdnZone.insert(ctx, {
      name: input.name,
      origin: await checkedOrigin(ctx, input.origin),
      hostname: `${input.name}-${randomWord(SUFFIX_LETTERS, SUFFIX_LENGTH)}.${ctx.config.cdnDomain}`,
      enabled: input.enabled ?? true,
      cache: { ...CACHE_DEFAULTS, ...given(input.cache) },
      compression: input.compression ?? true,
      force_https: input.force_https ?? true,
      deletion_protection: input.deletion_protection ?? false,
    });
    await wantDefaultCertificate(ctx, zone.hostname, { cdn_zone_id: zone.id });
    return zone;
  }

  /** @throws resource_busy, validation_failed, reference_not_found, name_taken */
  async change(ctx: Context, input: UpdateCdnZoneInput): Promise<this> {
    const { origin, cache, deletion_protection, ...plain } = requestedChanges(input, this);
    const protection = deletion_protection == null ? {} : { deletion_protection };
    if (!origin && !cache && !Object.keys(plain).length) return this.update(ctx, protection);
    if (this.status !== 'provisioning') this.requireStatus(['active', 'disabled', 'failed']);
    return this.update(ctx, {
      ...plain,
      ...protection,
      ...(origin && { origin: await checkedOrigin(ctx, origin) }),
      ...(cache && { cache: { ...this.cache, ...given(cache) } }),
      ...(this.status !== 'provisioning' && { status: 'updating' }),
      status_reason: null,
    });
  }

  /**
   * Its purges stay with it in the bin; its domains are torn down like any other, so others can have the names.
   * @throws deletion_protected
   */
  async destroy(ctx: Context): Promise<void> {
    await requireUnprotected(ctx, this);
    const domains = await giveUpDomains(ctx, this);
    await removeToBin(ctx, this, { memo: { domains } });
  }
}

/** What of the cache was sent; `null` counts only where the field may be null. */
function given(cache: CdnCacheInput | null | undefined): Partial<CdnCache> {
  return Object.fromEntries(Object.entries(cache ?? {}).filter(([, value]) => value !== undefined));
}

const FIELD_OF_TYPE = { url: 'url', bucket: 'bucket_id', application: 'application_id' } as const;

/**
 * @throws validation_failed for a field of another type, a URL with a path or an address that is not public,
 * reference_not_found
 */
async function checkedOrigin(ctx: Context, input: CdnOriginInput): Promise<CdnOrigin> {
  const { type, url = null, bucket_id = null, application_id = null, host_header = null } = input;
  const mistakes = [...originMistakes(input), ...addressMistakes(ctx, input)];
  if (mistakes.length) throw validationFailed(mistakes);
  if (application_id !== null) await Application.referenced(ctx, application_id, 'origin.application_id');
  if (bucket_id !== null) await Bucket.referenced(ctx, bucket_id, 'origin.bucket_id');
  return { type, url: url?.replace(/\/$/, '') ?? null, bucket_id, application_id, host_header };
}

function originMistakes(input: CdnOriginInput): FieldError[] {
  const needed = FIELD_OF_TYPE[input.type];
  const mistakes: FieldError[] = Object.values(FIELD_OF_TYPE)
    .filter((field) => field !== needed && input[field] != null)
    .map((field) => ({
      field: `origin.${field}`,
      code: 'depends_on',
      detail: `is not for the type ${input.type}`,
    }));
  if (input.type === 'bucket' && input.host_header != null)
    mistakes.push({ field: 'origin.host_header', code: 'depends_on', detail: 'is not for the type bucket' });
  if (input[needed] == null)
    mistakes.push({ field: `origin.${needed}`, code: 'required', detail: `is required for the type ${input.type}` });
  if (input.url != null && !/^https?:\/\/[^/?#@]+\/?$/i.test(input.url))
    mistakes.push({ field: 'origin.url', code: 'invalid_format', detail: 'must have no path, query or credentials' });
  return mistakes;
}

/** What a name leads to is judged when the cache connects to it. */
function addressMistakes({ config }: Context, { url }: CdnOriginInput): FieldError[] {
  if (url == null || config.allowPrivateAddresses || !isPrivateHost(new URL(url).hostname)) return [];
  return [{ field: 'origin.url', code: 'invalid_format', detail: 'must have a public address' }];
}
