// Keys of a zone in PowerDNS. They are ours, so that what the API lists for the registrar holds for either engine.
import { openSigningKey, type SigningKey } from '../../core/protocols/dnssec';
import type { DriverContext } from '../../core/driver';
import type { ApiKey, PowerdnsApi } from './api';

/** What is published of a signed zone for the parent to read (RFC 7344): a SHA-256 digest, and the key. */
const PUBLISHED = { 'PUBLISH-CDS': '2', 'PUBLISH-CDNSKEY': '1' };

interface Metadata {
  kind: string;
  metadata: string[];
}

export interface KeyState {
  missing: SigningKey[];
  /** Ids of keys that are there and should not be. */
  surplus: number[];
  /** Metadata to be written. */
  unpublished: string[];
}

/** Compares; changes nothing. */
export async function readKeyState(
  api: PowerdnsApi,
  zone: string,
  desired: SigningKey[],
  ctx: DriverContext,
): Promise<KeyState> {
  const present = (await api.call<ApiKey[]>('GET', `${zone}/cryptokeys`, ctx)) ?? [];
  const texts = desired.map(dnskeyText);
  const known = new Set(present.filter(({ active }) => active).map(({ dnskey }) => dnskey));
  return {
    missing: desired.filter((_, index) => !known.has(texts[index] as string)),
    surplus: present.filter(({ active, dnskey }) => !active || !texts.includes(dnskey)).map(({ id }) => id),
    unpublished: desired.length ? await unpublished(api, zone, ctx) : [],
  };
}

async function unpublished(api: PowerdnsApi, zone: string, ctx: DriverContext): Promise<string[]> {
  const found = (await api.call<Metadata[]>('GET', `${zone}/metadata`, ctx)) ?? [];
  return Object.entries(PUBLISHED).flatMap(([kind, value]) =>
    found.some((one) => one.kind === kind && one.metadata.join() === value) ? [] : [kind],
  );
}

export function isAsDesired({ missing, surplus, unpublished: open }: KeyState): boolean {
  return missing.length + surplus.length + open.length === 0;
}

/** New keys first, so that a zone that is signed stays so. */
export async function writeKeys(api: PowerdnsApi, zone: string, state: KeyState, ctx: DriverContext): Promise<void> {
  for (const key of state.missing) {
    const body = { keytype: key.role, active: true, published: true, content: privateText(key) };
    await api.call('POST', `${zone}/cryptokeys`, ctx, body);
  }
  for (const kind of state.unpublished) {
    const metadata = [PUBLISHED[kind as keyof typeof PUBLISHED]];
    await api.call('PUT', `${zone}/metadata/${kind}`, ctx, { kind, metadata });
  }
  for (const id of state.surplus) await api.call('DELETE', `${zone}/cryptokeys/${id}`, ctx);
  if (state.missing.length || state.surplus.length) await api.call('PUT', `${zone}/rectify`, ctx, {});
}

function dnskeyText(key: SigningKey): string {
  const { rdata } = openSigningKey(key);
  return `${rdata.readUInt16BE(0)} ${rdata[2]} ${rdata[3]} ${rdata.subarray(4).toString('base64')}`;
}

/** In the form of BIND's files. */
function privateText(key: SigningKey): string {
  const { d } = openSigningKey(key).private.export({ format: 'jwk' });
  const scalar = Buffer.from(d as string, 'base64url').toString('base64');
  return `Private-key-format: v1.2\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: ${scalar}\n`;
}
