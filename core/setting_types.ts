// Types of settings. Each parses the text of an environment variable, or describes the expected format.
import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { formats } from './formats/formats';
import { serversOf } from './postgres_url';
import { parseKeyRing } from './secrets';
import { parseProbeToken } from './accounts/tokens';

/** A row of the settings table. `Value` is the parsed type. */
export interface Setting<Value> {
  /** Expected format, shown in the help. */
  readonly type: string;
  /** In the syntax of the environment variable; null = unset. */
  readonly default: string | null;
  /** Default when running as root. */
  readonly defaultAsRoot?: string;
  /** Description of a default derived from other settings. */
  readonly derived?: string;
  readonly description: string;
  /** The value never appears in messages. */
  readonly secret?: boolean;
  /** null = malformed. */
  readonly parse: (text: string) => Value | null;
}

export type Row = Omit<Setting<unknown>, 'type' | 'parse'>;

/** A row with its type and nullability. */
export type Typed<Value, R extends Row> = R & Setting<Value>;

export function text<const R extends Row>(row: R): Typed<string, R> {
  return { ...row, type: 'text', parse: (given) => (formats.single_line(given) ? given : null) };
}

/** Resolved to an absolute path. */
export function path<const R extends Row>(row: R): Typed<string, R> {
  return { ...row, type: 'path', parse: (given) => (formats.single_line(given) ? resolve(given) : null) };
}

export function integer<const R extends Row & { min: number; max: number }>(row: R): Typed<number, R> {
  const { min, max } = row;
  const parse = (given: string): number | null =>
    /^\d{1,15}$/.test(given) && Number(given) >= min && Number(given) <= max ? Number(given) : null;
  return { ...row, type: `integer from ${min} to ${max}`, parse };
}

/** A number from 1, or `auto`: the cores available to this process. */
export function processCount<const R extends Row & { max: number }>(row: R): Typed<number, R> {
  const { parse } = integer({ ...row, min: 1 });
  return {
    ...row,
    type: `auto or integer from 1 to ${row.max}`,
    parse: (given) => (given === 'auto' ? Math.min(availableParallelism(), row.max) : parse(given)),
  };
}

/** `from-to`, inclusive. */
export function portRange<const R extends Row>(row: R): Typed<readonly [number, number], R> {
  const parse = (given: string): readonly [number, number] | null => {
    const [from = 0, to = 0] = (/^(\d{1,5})-(\d{1,5})$/.exec(given)?.slice(1) ?? []).map(Number);
    return from >= 1024 && from <= to && to <= 65535 ? [from, to] : null;
  };
  return { ...row, type: 'ports from-to, 1024 to 65535', parse };
}

export function flag<const R extends Row>(row: R): Typed<boolean, R> {
  const values: Record<string, boolean> = { 1: true, true: true, 0: false, false: false };
  return { ...row, type: '0 or 1', parse: (given) => values[given.toLowerCase()] ?? null };
}

export function oneOf<const Word extends string, const R extends Row>(
  choices: readonly Word[],
  row: R,
): Typed<Word, R> {
  return { ...row, type: choices.join(' | '), parse: (given) => choices.find((choice) => choice === given) ?? null };
}

/** Without a trailing slash. */
export function httpUrlSetting<const R extends Row>(row: R): Typed<string, R> {
  const parse = (given: string): string | null =>
    formats.url(given) && !/[?#]/.test(given) ? given.replace(/\/+$/, '') : null;
  return { ...row, type: 'http or https URL', parse };
}

export function postgresUrl<const R extends Row>(row: R): Typed<string, R> {
  const parse = (given: string): string | null => (/^\S+$/.test(given) && serversOf(given) ? given : null);
  return { ...row, type: 'postgresql:// URL', parse };
}

/** A host name; a single label such as localhost is allowed. */
export function hostname<const R extends Row>(row: R): Typed<string, R> {
  return { ...row, type: 'host name', parse: hostnameOf };
}

/** A host name or address with an optional port: `registry.example.com`, `localhost:5000`. */
export function authority<const R extends Row>(row: R): Typed<string, R> {
  const parse = (given: string): string | null => {
    const [, host = '', port] = /^([^:]+)(?::(\d{1,5}))?$/.exec(given) ?? [];
    return hostnameOf(host) && Number(port ?? 1) > 0 && Number(port ?? 1) < 65536 ? given.toLowerCase() : null;
  };
  return { ...row, type: 'host name, with :port', parse };
}

/** Listen address of a server. */
export function listenHost<const R extends Row>(row: R): Typed<string, R> {
  return { ...row, type: 'IP address or host name', parse: (given) => (isIP(given) ? given : hostnameOf(given)) };
}

export function ipAddress<const R extends Row>(row: R): Typed<string, R> {
  return { ...row, type: 'IP address', parse: (given) => (isIP(given) ? given : null) };
}

export function email<const R extends Row>(row: R): Typed<string, R> {
  return { ...row, type: 'e-mail address', parse: (given) => formats.email(given)?.value ?? null };
}

export function slug<const R extends Row>(row: R): Typed<string, R> {
  return { ...row, type: 'slug', parse: (given) => formats.slug(given)?.value ?? null };
}

export function addresses<const R extends Row>(row: R): Typed<readonly string[], R> {
  return { ...row, type: 'list of IP addresses', parse: (given) => list(given, (entry) => isIP(entry) > 0) };
}

export function cidrs<const R extends Row>(row: R): Typed<readonly string[], R> {
  return { ...row, type: 'list of IPv4 addresses or CIDRs', parse: (given) => list(given, isIpv4Cidr) };
}

/** Origins in the format of browsers: `https://console.example.com`. */
export function origins<const R extends Row>(row: R): Typed<readonly string[], R> {
  return { ...row, type: 'list of origins', parse: (given) => list(given, isOrigin) };
}

function isOrigin(given: string): boolean {
  return /^https?:\/\//.test(given) && URL.canParse(given) && new URL(given).origin === given;
}

/** A CIDR of at least 16 IPv4 addresses. */
export function ipv4Block<const R extends Row>(row: R): Typed<string, R> {
  const parse = (given: string): string | null =>
    isIpv4Cidr(given) && Number(given.split('/')[1] ?? 32) <= 28 ? given : null;
  return { ...row, type: 'IPv4 CIDR, at most /28', parse };
}

function isIpv4Cidr(given: string): boolean {
  const [address = '', bits = '32', more] = given.split('/');
  return more === undefined && isIP(address) === 4 && /^\d{1,2}$/.test(bits) && Number(bits) <= 32;
}

/** A port of a mail server. `tls`: implicit TLS; else STARTTLS. */
export interface MailPort {
  port: number;
  tls: boolean;
}

/** `587,465,2525`; `/tls` marks a port with implicit TLS, which port 465 always has. `0`: none. */
export function mailPorts<const R extends Row>(row: R): Typed<readonly MailPort[], R> {
  const parse = (given: string): readonly MailPort[] | null => {
    if (given.trim() === '0') return Object.freeze([]);
    const entries = list(given, (entry) => /^\d{1,5}(\/tls)?$/.test(entry));
    const ports = entries?.map((entry) => ({ port: parseInt(entry, 10), tls: /^465$|\/tls$/.test(entry) }));
    return ports?.length && ports.every(({ port }) => port > 0 && port < 65536) ? Object.freeze(ports) : null;
  };
  return { ...row, type: '0 or list of ports', parse };
}

/** In the format of node:dns: `192.0.2.1`, `192.0.2.1:53`, `[2001:db8::1]:53`. */
export function resolvers<const R extends Row>(row: R): Typed<readonly string[], R> {
  return { ...row, type: 'list of ip[:port]', parse: (given) => list(given, isResolver) };
}

/** An OAuth client at a Git provider; `base_url` is null for the public service. */
interface GitOauthSetting {
  provider: string;
  base_url: string | null;
  client_id: string;
  client_secret: string;
}

/** `github=ID:SECRET`, `gitlab@https://git.example.com=ID:SECRET`. */
export function gitOauthClients<const R extends Row>(row: R): Typed<readonly GitOauthSetting[], R> {
  const one = (entry: string): GitOauthSetting | null => {
    const match = /^(github|gitlab|bitbucket|gitea)(?:@(https?:\/\/[^=\s]+))?=([^:\s]+):(\S+)$/.exec(entry);
    if (!match) return null;
    const [, provider = '', base, client_id = '', client_secret = ''] = match;
    return { provider, base_url: base?.replace(/\/+$/, '') ?? null, client_id, client_secret };
  };
  const parse = (given: string): readonly GitOauthSetting[] | null => {
    const entries = given.split(',').map((entry) => entry.trim());
    const found = entries.filter(Boolean).map(one);
    return found.every((entry) => entry !== null) ? Object.freeze(found) : null;
  };
  return { ...row, type: 'list of provider[@url]=id:secret', parse };
}

/** In the format of core/accounts/tokens.ts. */
export function probeKey<const R extends Row>(row: R): Typed<string, R> {
  return { ...row, type: 'key of a probe', parse: (given) => (parseProbeToken(given) ? given : null) };
}

/** `name:secret`, the secret in base64, at least 16 bytes. */
export function transferKey<const R extends Row>(row: R): Typed<string, R> {
  const isKey = (given: string): boolean => /^[a-z0-9_.-]{1,200}:(?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/=]{4}$/i.test(given);
  const hasSecret = (given: string): boolean => Buffer.from(given.split(':')[1] ?? '', 'base64').length >= 16;
  return { ...row, type: 'name:base64', parse: (given) => (isKey(given) && hasSecret(given) ? given : null) };
}

/** A bucket with an optional folder: `prefix` is empty, or ends with a slash. */
export interface S3LocationSetting {
  bucket: string;
  prefix: string;
}

/** `s3://bucket`, `s3://bucket/folder/of/it`. */
export function s3Location<const R extends Row>(row: R): Typed<S3LocationSetting, R> {
  const parse = (given: string): S3LocationSetting | null => {
    const [, bucket, folder = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w.\-/]*))?$/.exec(given) ?? [];
    const parts = folder.split('/').filter(Boolean);
    if (bucket === undefined || parts.includes('.') || parts.includes('..')) return null;
    return { bucket, prefix: parts.map((part) => `${part}/`).join('') };
  };
  return { ...row, type: 's3://bucket/folder', parse };
}

/** A key ring, parsed by core/secrets.ts. */
export function secretKeys<const R extends Row>(row: R): Typed<string, R> {
  return { ...row, type: 'key or list of id:key', parse: (given) => (parseKeyRing(given) ? given : null) };
}

/** A JSON object with keys from `names`, and non-negative integers, or null for unlimited. */
export function amounts<const Name extends string, const R extends Row>(
  names: readonly Name[],
  row: R,
): Typed<Partial<Record<Name, number | null>>, R> {
  return { ...row, type: 'JSON object', parse: (given) => amountsOf(names, given) };
}

function amountsOf<Name extends string>(
  names: readonly string[],
  given: string,
): Partial<Record<Name, number | null>> | null {
  const object = parseJson(given);
  if (typeof object !== 'object' || object === null || Array.isArray(object)) return null;
  const fits = Object.entries(object).every(
    ([name, amount]) => names.includes(name) && (amount === null || (Number.isSafeInteger(amount) && amount >= 0)),
  );
  return fits ? (object as Partial<Record<Name, number | null>>) : null;
}

function parseJson(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    return null;
  }
}

function hostnameOf(given: string): string | null {
  const lower = given.toLowerCase();
  return /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/.test(lower)
    ? lower
    : null;
}

function list(given: string, fits: (entry: string) => boolean): readonly string[] | null {
  const entries = given
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean);
  return entries.every(fits) ? Object.freeze(entries) : null;
}

function isResolver(entry: string): boolean {
  const match = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(entry) ?? /^([\d.]+)(?::(\d{1,5}))?$/.exec(entry);
  if (!match) return isIP(entry) > 0;
  return isIP(match[1] ?? '') > 0 && Number(match[2] ?? 53) > 0 && Number(match[2] ?? 53) < 65536;
}
