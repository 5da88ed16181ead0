// DNSSEC of a zone: its keys, encrypted in its row, and what the parent zone has of them.
import { generateKeyPairSync } from 'node:crypto';
import type { Context } from '../../../core/context';
import { delegationSigner, type DelegationSigner, type SigningKey } from '../../../core/protocols/dnssec';
import { problem } from '../../../core/errors';
import type { SecretBox } from '../../../core/secrets';
import type { Dnssec } from '../../../schema/types';
import type { DnsZone } from '../dns_zone';
import { sealedColumns } from '../../base/sealed_columns';

const ALGORITHM = 'ECDSAP256SHA256';

export function dnssecOf(ctx: Context, zone: DnsZone): Dnssec {
  const keys = openKeys(ctx.secrets, zone);
  return {
    status: zone.dnssec_status,
    algorithm: keys.length ? ALGORITHM : null,
    ds_records: keys.filter(({ role }) => role === 'ksk').map((key) => delegationSigner(zone.name, key)),
    enabled_at: zone.dnssec_enabled_at,
    last_checked_at: zone.dnssec_checked_at,
  };
}

/**
 * With the keys from before, if it was signed: their digests at the parent zone are right again.
 * @throws invalid_state unless the zone is active and not signed
 */
export async function enableDnssec(ctx: Context, zone: DnsZone): Promise<Dnssec> {
  zone.requireStatus(['active']);
  requireDnssec(zone, ['disabled']);
  const changed = await zone.update(ctx, {
    signing_keys: zone.retired_signing_keys ?? sealKeys(ctx.secrets, zone.id, [newKey('ksk'), newKey('zsk')]),
    retired_signing_keys: null,
    dnssec_status: 'pending',
    dnssec_enabled_at: new Date().toISOString(),
    dnssec_checked_at: null,
    serial: zone.nextSerial(),
  });
  return dnssecOf(ctx, changed);
}

/** From any state; does nothing where the zone is not signed. The keys are put aside. */
export async function disableDnssec(ctx: Context, zone: DnsZone): Promise<void> {
  if (zone.dnssec_status === 'disabled') return;
  const keys = { signing_keys: null, retired_signing_keys: zone.signing_keys };
  const cleared = { ...keys, dnssec_enabled_at: null, dnssec_checked_at: null };
  await zone.update(ctx, { ...cleared, dnssec_status: 'disabled', serial: zone.nextSerial() });
}

/** A second key-signing key beside the first, until the parent zone has its digest. @throws invalid_state */
export async function rotateKey(ctx: Context, zone: DnsZone): Promise<Dnssec> {
  requireDnssec(zone, ['active']);
  const keys = [...openKeys(ctx.secrets, zone), newKey('ksk')];
  const signing_keys = sealKeys(ctx.secrets, zone.id, keys);
  const changed = await zone.update(ctx, { signing_keys, dnssec_status: 'pending', serial: zone.nextSerial() });
  return dnssecOf(ctx, changed);
}

function requireDnssec(zone: DnsZone, allowed: string[]): void {
  if (allowed.includes(zone.dnssec_status)) return;
  throw problem('invalid_state', `DNSSEC of the zone is ${zone.dnssec_status}.`, {
    resource_status: zone.dnssec_status,
    allowed_statuses: allowed,
  });
}

function newKey(role: SigningKey['role']): SigningKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { role, private_key: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') };
}

/** The keys in plain, for those who have the row. */
export function openKeys(secrets: SecretBox, { id, signing_keys }: Pick<DnsZone, 'id' | 'signing_keys'>): SigningKey[] {
  return signing_keys === null
    ? []
    : (JSON.parse(secrets.open(signing_keys, sealedColumns.zoneSigningKeys.contextOf(id))) as SigningKey[]);
}

export function sealKeys(secrets: SecretBox, id: string, keys: SigningKey[]): string {
  return secrets.seal(JSON.stringify(keys), sealedColumns.zoneSigningKeys.contextOf(id));
}

interface DnssecVerdict {
  dnssec_status: DnsZone['dnssec_status'];
  dnssec_checked_at: string;
  /** The keys that stay; null where none goes. */
  keys: SigningKey[] | null;
}

/**
 * What becomes of a signed zone after a check of its parent: with the digest of the newest key-signing key there, older
 * ones go and the zone is active.
 * @param observed DS records at the parent, `key_tag algorithm digest_type DIGEST`
 */
export function dnssecVerdictOf(zone: string, keys: SigningKey[], observed: string[], now: Date): DnssecVerdict {
  const at = now.toISOString();
  const signing = keys.filter(({ role }) => role === 'ksk');
  const newest = signing.at(-1);
  const isThere = newest !== undefined && observed.includes(textOf(delegationSigner(zone, newest)));
  if (!isThere) return { dnssec_status: 'pending', dnssec_checked_at: at, keys: null };
  const kept = keys.filter((key) => key.role === 'zsk' || key === newest);
  return { dnssec_status: 'active', dnssec_checked_at: at, keys: kept.length < keys.length ? kept : null };
}

function textOf({ key_tag, algorithm, digest_type, digest }: DelegationSigner): string {
  return `${key_tag} ${algorithm} ${digest_type} ${digest}`;
}
