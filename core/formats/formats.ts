// Formats of text fields. Each returns the value in its normal form, or null for an invalid text.
// Lengths of individual fields are in the SDL; lengths here belong to the format itself.
import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { hostNameOf, internationalMistake, zoneNameOf } from '../protocols/domain_names';
import { cronMistake, isTimeZone, normalCron } from '../protocols/cron';
import { formatDetail } from './format_details';
import { parseMailbox } from '../protocols/mailbox';
import { gitUrl, hasGitCredential, httpUrl, httpsUrl, ociReference } from './reference_formats';

type Format = (text: string) => { value: string } | null;

/** Control characters, line separators, and lone surrogates (which UTF-8 cannot encode). */
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]|\p{Surrogate}/u;

const LABEL_MAX = 100;
const HOSTNAME_MAX = 253;
const EMAIL_MAX = 254;
const PATH_MAX = 255;

export const formats = {
  slug: safe((text) => matching(text, /^(?=.{3,40}$)(?!.*--)[a-z][a-z0-9-]*[a-z0-9]$/)),
  label: safe((text) => matching(text.trim(), new RegExp(`^.{1,${LABEL_MAX}}$`, 'u'))),
  single_line: safe((text) => text),
  hostname: safe(hostNameOf),
  wildcard_hostname: safe((text) =>
    text.startsWith('*.') ? prefixed('*.', hostNameOf(text.slice(2))) : hostNameOf(text),
  ),
  zone_name: safe(zoneNameOf),
  cidr: safe(cidr),
  email: safe(email),
  timestamp: safe(timestamp),
  date: safe(date),
  env_key: safe((text) => matching(text, /^[A-Za-z_][A-Za-z0-9_]{0,127}$/)),
  mount_path: safe(mountPath),
  relative_path: safe(relativePath),
  url: safe(httpUrl),
  https_url: safe(httpsUrl),
  git_url: safe(gitUrl),
  oci_reference: safe(ociReference),
  commit_sha: safe((text) => matching(text.toLowerCase(), /^[0-9a-f]{7,64}$/)),
  cron: safe(normalCron),
  time_zone: safe((text) => (isTimeZone(text) ? text : null)),
} satisfies Record<string, Format>;

const HOST_FORMATS = new Set(['hostname', 'wildcard_hostname', 'zone_name']);

export type FormatName = keyof typeof formats;

export function isFormat(name: string): name is FormatName {
  return Object.hasOwn(formats, name);
}

/** Error message for a text that does not match the format. Never contains the text itself: it may be a password. */
export function formatMistake(format: string, text: string): string {
  if (format === 'git_url' && hasGitCredential(text))
    return (
      'contains a credential. Remove the user name and the password or token before the host: everybody who may ' +
      'read the application would see them'
    );
  if (format === 'cron') return cronMistake(text) ?? (formatDetail(format) as string);
  const international = HOST_FORMATS.has(format) ? internationalMistake(text.replace(/^\*\./, '')) : null;
  if (international) return international;
  if (format === 'wildcard_hostname' && text.startsWith('*'))
    return 'must be a host name after the *. at its beginning, such as *.example.com';
  return formatDetail(format) ?? 'does not have the format of this field';
}

function safe(normal: (text: string) => string | null): Format {
  return (text) => {
    const value = FORBIDDEN.test(text) ? null : normal(text);
    return value === null ? null : { value };
  };
}

function matching(text: string, pattern: RegExp): string | null {
  return pattern.test(text) ? text : null;
}

function prefixed(prefix: string, name: string | null): string | null {
  return name !== null && name.length <= HOSTNAME_MAX - prefix.length ? prefix + name : null;
}

/** Canonical (RFC 5952 for IPv6), host bits zero; a bare address is a network of one address. */
function cidr(text: string): string | null {
  const [address = '', length, ...rest] = text.split('/');
  if (rest.length || address.includes('%') || !(isIPv4(address) || isIPv6(address))) return null;
  const parsed = ipaddr.parse(address);
  const bytes = parsed.toByteArray();
  if (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length)) return null;
  const bits = length === undefined ? bytes.length * 8 : Number(length);
  if (bits > bytes.length * 8 || bytes.some((byte, i) => byte & hostMask(bits - i * 8))) return null;
  return `${parsed.toString()}/${bits}`;
}

/** Host bits of a byte, when `bits` of it and of the following bytes are the network. */
function hostMask(bits: number): number {
  return bits >= 8 ? 0 : 0xff >> Math.max(bits, 0);
}

/** RFC 5321 section 4.1.2 at a host name. The local part is ASCII: a dot-string, or quoted where required. */
function email(text: string): string | null {
  const mailbox = parseMailbox(text);
  const domain = mailbox && hostNameOf(mailbox.domain);
  if (!domain || !/^[ -~]{1,64}$/.test(mailbox.local)) return null;
  return mailbox.local.length + 1 + domain.length <= EMAIL_MAX ? `${mailbox.local}@${domain}` : null;
}

/** An existing day, YYYY-MM-DD, years 1 to 9999. */
function date(text: string): string | null {
  const day = /^\d{4}-\d\d-\d\d$/.test(text) && !text.startsWith('0000') ? new Date(`${text}T00:00:00Z`) : null;
  return day && !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text) ? text : null;
}

/** RFC 3339, converted to UTC with milliseconds, years 1 to 9999; finer fractions are truncated. No leap seconds. */
function timestamp(text: string): string | null {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i.exec(text);
  if (!match) return null;
  const [, date, time, fraction = '', sign, hours = '0', minutes = '0'] = match;
  const local = `${date}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`;
  const ms = Date.parse(local);
  // Date.parse turns 30 February into 2 March.
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== local) return null;
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return matching(new Date(ms - (sign === '-' ? -offset : offset)).toISOString(), /^(?!0000)\d{4}-/);
}

function mountPath(text: string): string | null {
  if (text.length > PATH_MAX || !text.startsWith('/') || /^\/(proc|sys|dev)(\/|$)/.test(text)) return null;
  return segmentsFit(text.slice(1)) ? text : null;
}

/** Removes redundant parts: `./apps//web/` becomes `apps/web`. `.` is the folder itself. */
function relativePath(text: string): string | null {
  const segments = text.split('/').filter((segment) => segment !== '' && segment !== '.');
  if (text === '' || text.length > PATH_MAX || text.startsWith('/') || segments.includes('..')) return null;
  return segments.join('/') || '.';
}

function segmentsFit(path: string): boolean {
  return path.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..');
}
