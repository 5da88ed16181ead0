import { getDomain, getPublicSuffix } from 'tldts';
import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { ownHostnames } from '../../core/platform_names';
import { defineStates } from '../../core/states';
import type {
  CreateDnsZoneInput,
  DnsDelegation,
  DnssecStatus,
  DnsZoneSoa,
  DnsZoneSoaInput,
  DnsZoneStatus,
  UpdateDnsZoneInput,
} from '../../schema/types';
import type { Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { requestedChanges } from '../base/requested_changes';
import { wakeBlockedOwners, wakeRecordOwners } from './dns_record/owners';
import { zoneBin } from './dns_zone/bin';
import { delegationState, type DelegationFindings } from './dns_zone/delegation';
import { insertNameServers } from './dns_zone/name_servers';
import { isActiveElsewhere, requireUnclaimed, resolveFindings, supersedeClaims, wakeClaims } from './dns_zone/claims';
import { randomWord } from '../../core/ids';

const SOA_DEFAULTS = { refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 3600 };
const TTL_DEFAULT_SECONDS = 3600;
const LABEL_LETTERS = 'abcdefghjkmnpqrstvwxyz23456789';
const LABEL_LENGTH = 6;
const SERIAL_MAX = 2 ** 31 - 1;
const SERIALS_SINCE_MS = Date.UTC(2020, 0);

/**
 * A zone without competing claims is served as soon as it exists; it is active once the parent zone delegates to it.
 */
export class DnsZone extends Resource {
  static readonly table = 'dns_zones';
  static readonly kind = 'dns_zone';
  static readonly idPrefix = 'dnz';
  static override readonly projectChild = 'dns_zones';
  static override readonly filters = { name: 'name = lower(?)', status: 'status = ?' };
  static override readonly sorts = ['name'];
  static override readonly quotas = [{ resource: 'dns_zones' as const }];
  static override readonly bin: Bin<DnsZone> = zoneBin;
  static override readonly states = defineStates<DnsZoneStatus>({
    initial: ['pending'],
    moves: { pending: ['active'], active: ['moved'], moved: ['active'] },
  });

  declare name: string;
  declare default_ttl: number;
  declare soa: DnsZoneSoa;
  /** Label of this claim in the names of its name servers. */
  declare label: string;
  declare name_servers: string[];
  declare deletion_protection: boolean;
  /** Raised with every change; the name server's serial where the engine maintains one. */
  declare serial: number;
  declare record_count: number;
  declare status: DnsZoneStatus;
  declare status_reason: string | null;
  declare observed_name_servers: string[] | null;
  declare last_checked_at: string | null;
  /** Since when an active zone is delegated to others only. */
  declare elsewhere_since: string | null;
  declare dnssec_status: DnssecStatus;
  declare dnssec_enabled_at: string | null;
  declare dnssec_checked_at: string | null;
  /** Whether name servers answer it; null before its job has said so. */
  declare is_served: boolean | null;
  /** Sealed list of keys; null while the zone is not signed. */
  declare signing_keys: string | null;
  /** Those with which it was signed last: the parent zone may still have their digests. */
  declare retired_signing_keys: string | null;

  /** @throws validation_failed for a public suffix, domain_taken, quota_exceeded, engine_unavailable */
  static async create(ctx: Context, input: CreateDnsZoneInput): Promise<DnsZone> {
    requireEngine(ctx);
    requireOwnable(ctx, input.name);
    await requireUnclaimed(ctx, input.name);
    const label = newLabel();
    const zone = await DnsZone.insert(ctx, {
      name: input.name,
      default_ttl: input.default_ttl ?? TTL_DEFAULT_SECONDS,
      soa: { ...SOA_DEFAULTS, email: `hostmaster@${input.name}`, ...given(input.soa) },
      label,
      name_servers: [1, 2].map((number) => `ns${number}.${label}.${ctx.config.dnsDomain}`),
      serial: firstSerial(),
      status: 'pending',
      deletion_protection: input.deletion_protection ?? false,
    });
    await insertNameServers(ctx, zone);
    // A name that several claim is answered by none of them.
    await wakeClaims(ctx.sql, zone);
    await wakeRecordOwners(ctx.sql, zone);
    return zone;
  }

  get delegation(): DnsDelegation {
    const observed = this.observed_name_servers;
    return { state: delegationState(this.name_servers, observed), observed_name_servers: observed ?? [] };
  }

  async change(ctx: Context, { default_ttl, soa, deletion_protection }: UpdateDnsZoneInput): Promise<this> {
    const requested = { default_ttl: default_ttl ?? this.default_ttl, soa: { ...this.soa, ...given(soa) } };
    const changes = requestedChanges(requested, this);
    return this.update(ctx, {
      ...changes,
      ...(Object.keys(changes).length > 0 && { serial: this.nextSerial() }),
      ...(deletion_protection != null && { deletion_protection }),
    });
  }

  /** Records were written under the lock of the zone. */
  async recordsChanged(ctx: Context, more: number): Promise<void> {
    await this.update(ctx, { serial: this.nextSerial(), record_count: this.record_count + more });
    await wakeBlockedOwners(ctx.sql, this);
  }

  /**
   * Before the transaction of `verify`: what the parent says; null where it gave no answer, or there is no such zone.
   */
  static async probe(ctx: Context, id: string): Promise<DelegationFindings | null> {
    const zone = await DnsZone.get(ctx, id).catch(() => null);
    return zone && ctx.probes.zone.delegation(zone.name);
  }

  /**
   * Another claim of the name may be served now. In the bin it has proven nothing: others can prove the name.
   * @throws deletion_protected
   */
  async destroy(ctx: Context): Promise<void> {
    await requireUnprotected(ctx, this);
    const { status } = this;
    await this.update(ctx, { status: 'pending' });
    await removeToBin(ctx, this, { memo: { status } });
    await wakeClaims(ctx.sql, this);
    await wakeRecordOwners(ctx.sql, this);
  }

  /** Takes over what a probe has found. @throws provider_error where it found out nothing, domain_taken */
  async verify(ctx: Context, findings: DelegationFindings | null): Promise<this> {
    if (!findings)
      throw problem('provider_error', 'No name server of the parent zone gave an answer. Try again later.');
    const found = await resolveFindings(ctx.sql, this, findings);
    const verdict = delegationVerdictOf(this, found, new Date());
    const moves = verdict.status !== this.status;
    if (moves && verdict.status === 'active') {
      await supersedeClaims(ctx.sql, this, found.name_servers);
      if (await isActiveElsewhere(ctx.sql, this))
        throw problem(
          'domain_taken',
          `The parent zone also delegates ${this.name} to the name servers of another project.`,
        );
    }
    const changed = await this.update(ctx, { ...verdict });
    if (moves) await wakeClaims(ctx.sql, this);
    if (moves) await wakeRecordOwners(ctx.sql, this);
    return changed;
  }

  nextSerial(): number {
    return this.serial >= SERIAL_MAX ? 1 : this.serial + 1;
  }
}

/** What of the SOA was sent; absent and null are the same here. */
function given(soa: DnsZoneSoaInput | null | undefined): Partial<DnsZoneSoa> {
  return Object.fromEntries(Object.entries(soa ?? {}).filter(([, value]) => value != null));
}

function newLabel(): string {
  return randomWord(LABEL_LETTERS, LABEL_LENGTH);
}

/**
 * Seconds since 2020: a secondary that still has an earlier zone of the name takes one with a higher serial only
 * (RFC 1982), and a zone changes less often than each second.
 */
function firstSerial(): number {
  return Math.min(Math.floor((Date.now() - SERIALS_SINCE_MS) / 1000), SERIAL_MAX);
}

/** @throws engine_unavailable where the operator has switched the name server off */
function requireEngine(ctx: Context): void {
  if (ctx.config.dnsPort !== 0 || ctx.config.powerdnsUrl !== null) return;
  throw problem('engine_unavailable', 'This installation serves no DNS: the operator has set `DNS_PORT` to `0`.');
}

function requireOwnable(ctx: Context, name: string): void {
  const asGiven = { extractHostname: false, validateHostname: false };
  const isSuffix = getPublicSuffix(name, asGiven) === name;
  // A whole domain may be a name of the platform too, and its zone is one of the operator.
  const hostnames = ownHostnames(ctx.config).filter((host) => getDomain(host, asGiven) !== host);
  const own = [ctx.config.appsDomain, ctx.config.dnsDomain, ...hostnames];
  const detail = isSuffix
    ? 'is a public suffix'
    : own.some((domain) => name === domain || name.endsWith(`.${domain}`))
      ? 'belongs to the platform'
      : null;
  if (detail) throw validationFailed([{ field: 'name', code: 'invalid_format', detail }]);
}

type DelegationVerdict = Pick<
  DnsZone,
  'status' | 'status_reason' | 'observed_name_servers' | 'last_checked_at' | 'elsewhere_since'
>;

const REMEDY = 'Set the name servers of the zone at your registrar.';
const MOVED_AFTER_MS = 24 * 3_600_000;

/** Instructions for the delegation; null where it is correct, or was never checked. */
export function delegationReason(own: readonly string[], observed: readonly string[] | null): string | null {
  const state = delegationState(own, observed);
  if (state === 'elsewhere') return `The parent zone delegates to ${observed?.slice(0, 4).join(', ')}. ${REMEDY}`;
  return state === 'not_delegated' ? `The parent zone does not delegate the zone. ${REMEDY}` : null;
}

/** What becomes of a zone after a check of its delegation: delegated = active; to others for 24 hours = moved. */
export function delegationVerdictOf(
  zone: Pick<DnsZone, 'status' | 'name_servers' | 'elsewhere_since'>,
  { name_servers: observed }: DelegationFindings,
  now: Date,
): DelegationVerdict {
  const state = delegationState(zone.name_servers, observed);
  const isOurs = state === 'delegated' || state === 'partial';
  const at = now.toISOString();
  const status_reason = delegationReason(zone.name_servers, observed);
  const checked = { observed_name_servers: observed, last_checked_at: at };
  if (isOurs) return { ...checked, status: 'active', elsewhere_since: null, status_reason };
  if (zone.status !== 'active') return { ...checked, status: zone.status, elsewhere_since: null, status_reason };
  const elsewhere_since = zone.elsewhere_since ?? at;
  const isMoved = now.getTime() - Date.parse(elsewhere_since) >= MOVED_AFTER_MS;
  return { ...checked, status: isMoved ? 'moved' : 'active', elsewhere_since, status_reason };
}
