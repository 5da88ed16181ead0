// Error details for texts that do not match a format: a sentence for each format and each pattern of the SDL, never the
// regular expression itself. test/contract/details.test.ts verifies that none is missing.
import type { FormatName } from './formats';

const HOST = 'must be a host name such as www.example.com';
const HEADER = "must be the name of a header: letters, digits and !#$%&'*+.^_`|~-";
const BRANCH =
  'must be the name of a branch: no spaces, no ~^:?*[\\ and no .., and neither a hyphen, a slash or a dot first nor ' +
  'a slash, a dot or .lock last';
const PREVIEW_BRANCH =
  '^(?![-/.])(?!refs/)(?!.*(?:\\.\\.|//|/\\.|@\\{))(?!.*(?:\\.lock|[/.])$)[^\\s\\x00-\\x20\\x7f~^:?*\\[\\\\]+$';
const CORS_ORIGIN =
  '^(?=[^*]*\\*?[^*]*$)(\\*[A-Za-z0-9.-]*|(https?|\\*|http\\*)://[A-Za-z0-9*]([A-Za-z0-9.*-]*[A-Za-z0-9*])?)' +
  '(:([0-9]{1,5}|\\*))?$';
const LABEL = 'must consist of small letters, digits and hyphens, with a letter or a digit first and last';

const OF_FORMATS: Record<FormatName, string> = {
  slug: 'must consist of small letters, digits and single hyphens, with a letter first and no hyphen last',
  label: 'must be one line without control characters',
  single_line: 'must be one line without control characters',
  hostname: HOST,
  wildcard_hostname: HOST,
  zone_name: HOST,
  cidr: 'must be an address, or a network with no bit of the host set, such as 192.0.2.0/24',
  email: 'must be an email address such as name@example.com',
  timestamp: 'must be a time with its zone, such as 2026-01-31T12:00:00Z',
  date: 'must be a day that exists, such as 2026-01-31',
  env_key: 'must consist of letters, digits and underscores, with no digit first, and have at most 128 characters',
  mount_path: 'must be an absolute path without empty parts, `.` or `..`, and not in /proc, /sys or /dev',
  relative_path: 'must be a path within the repository, such as apps/web, without `..` and no slash first',
  url: 'must be a URL that begins with http:// or https://, without a user name or a password',
  https_url: 'must be a URL that begins with https://, without a user name or a password',
  git_url: 'must be the address of a Git repository, such as https://git.example.com/acme/shop.git',
  oci_reference: 'must be the name of an image, such as registry.example.com/acme/shop:1.4',
  commit_sha: 'must be 7 to 64 hexadecimal digits',
  cron: 'must be a cron expression of five fields such as 30 2 * * *, or @daily',
  time_zone: 'must be a time zone of the IANA database, such as Europe/Berlin or UTC',
};

const OF_PATTERNS: Readonly<Record<string, string>> = {
  '^[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}$':
    'must consist of letters, digits and ._:@-, with a letter or a digit first, and have at most 100 characters',
  '^(?![-/.])(?!.*(?:\\.\\.|//|/\\.|@\\{))(?!.*(?:\\.lock|[/.])$)[^\\s\\x00-\\x20\\x7f~^:?*\\[\\\\]+$': BRANCH,
  [PREVIEW_BRANCH]: `${BRANCH}, without refs/ before it`,
  '^[A-Za-z0-9][A-Za-z0-9_.-]*$': 'must consist of letters, digits and _.-, with a letter or a digit first',
  '^/[^\\s#]*$': 'must begin with a slash, without spaces or #',
  '^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$': `${LABEL}, and have 3 to 63 characters`,
  // Printable characters of an HTTP header.
  '^[!-~]*$': 'must consist of printable ASCII characters without spaces',
  '^[ -~]*$': 'must consist of printable ASCII characters',
  '\\S': 'must not be blank',
  '^[^/]+$': 'must not contain a slash',
  '^[^/]': 'must not begin with a slash',
  [CORS_ORIGIN]: 'must be an origin such as https://www.example.com, without a path and with one * at most, or * alone',
  "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$": HEADER,
  '^[0-9A-Fa-f]{64}$': 'must be a SHA-256 in 64 hexadecimal digits',
  '^([0-9a-f]{64})?$': 'must be a SHA-256 in 64 small hexadecimal digits, or empty',
  '^key$': 'must be key',
  '^/$': 'must be a slash',
  '^\\d{4}-\\d{2}-\\d{2}$': 'must be a day such as 2026-01-31',
  '^[a-z][a-z0-9_]{0,62}$':
    'must consist of small letters, digits and underscores, with a letter first, and have at most 63 characters',
  '^[A-Z][A-Z0-9_]{0,39}$':
    'must consist of capital letters, digits and underscores, with a letter first, and have at most 40 characters',
  '^[a-z][a-z0-9_]{0,30}$':
    'must consist of small letters, digits and underscores, with a letter first, and have at most 31 characters',
  '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$': `${LABEL}, and have at most 63 characters`,
  '^[A-Za-z_][A-Za-z0-9_]*$': 'must consist of letters, digits and underscores, with no digit first',
  '^[a-z_*]+(\\.[a-z_*]+)*$': 'must be an event such as deployment.failed, or several such as deployment.*',
  '^[A-Za-z0-9_-]+$': 'must consist of letters, digits, hyphens and underscores',
  '^[A-Za-z0-9:._-]+$': 'must consist of letters, digits and :._-',
  '^(?:\\*{3}[A-Za-z0-9:._-]{0,4}|[A-Za-z0-9:._-]{1,200})$':
    'must consist of letters, digits and :._- and have at most 200 characters, or be masked as it is shown',
  '^(?:\\*{3}[A-Za-z0-9_-]{0,4}|[A-Za-z0-9_-]{1,64})$':
    'must consist of letters, digits, hyphens and underscores, at most 64, or be masked as it is shown',
  '^(?:-?[0-9]+|@[A-Za-z0-9_]+)$': 'must be the number of a chat, or the name of a channel such as @alerts',
  '^[A-Za-z0-9._+@-]+$': 'must consist of letters, digits and ._+@-',
  '^(?:\\*{3}.{0,4}|.{16,200})$': 'must have 16 to 200 characters',
  '^(?:\\*{3}[A-Za-z0-9_-]{0,4}|[A-Za-z0-9_-]{16,100})$':
    'must consist of 16 to 100 letters, digits, hyphens and underscores',
  '^[a-z][a-z0-9_-]{0,29}$':
    'must consist of small letters, digits, hyphens and underscores, a letter first, and have at most 30 characters',
};

/** Pattern of ids, which is generated from the prefix of a kind. */
const ID = /^\^([a-z]+)_\[0-9a-hjkmnp-tv-z\]\{26\}\$$/;

/** @param format of core/formats/formats.ts */
export function formatDetail(format: string): string | undefined {
  return Object.hasOwn(OF_FORMATS, format) ? OF_FORMATS[format as FormatName] : undefined;
}

/** @param pattern of an @spec. undefined: missing in the table above */
export function patternDetail(pattern: string): string | undefined {
  const [, prefix] = ID.exec(pattern) ?? [];
  if (prefix !== undefined) return `must be an id that begins with ${prefix}_, as the API shows it`;
  return Object.hasOwn(OF_PATTERNS, pattern) ? OF_PATTERNS[pattern] : undefined;
}
