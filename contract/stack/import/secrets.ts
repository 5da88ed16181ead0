// Which variables look like secrets, so that their values do not go into a file.

const PUBLIC = /^(NEXT_PUBLIC|NUXT_PUBLIC|VITE|REACT_APP|PUBLIC|EXPO_PUBLIC|GATSBY)_/;
const NAME =
  /(SECRET|PASSWORD|PASSWD|PASSPHRASE|TOKEN|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY|AUTH_?KEY|ENCRYPTION|SIGNING)/i;
const END = /(^|_)(PWD|PW|KEY|KEYS|SALT|DSN|HASH|PIN|CERT|JWT|AUTH|SEED|MNEMONIC)$|(?<!BY|COM)PASS$/i;
const PASSWORD = /(PASSWORD|PASSWD|(?<!BY|COM)PASS|_PWD|_PW|_PIN)$/i;
const NOT_SECRET =
  /(_URL|_HOST|_PORT|_NAME|_USER|_FILE|_PATH|_ID|_TTL|_EXPIRY|_EXPIRES|_EXPIRATION|_LIFETIME|_LENGTH)$/i;
const PLAIN_VALUE = /^(true|false|yes|no|on|off|null|none|\d{1,6}[smhd]?|)$/i;
const VALUE = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  /^[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:[^\s/@]+@/i,
  /^(sk|pk|rk|whsec)_(live|test)_/,
  /^(ghp|gho|ghs|github_pat|glpat|xox[abp]|sk-ant|sk-proj|SG\.|AKIA|ya29\.)[\w.-]{8,}/,
  /^eyJ[\w-]{10,}\.eyJ[\w-]{10,}\./,
  /(^|[?&;,\s"'])(password|passwd|pwd|token|secret|api_?key|access_?key|sig)"?\s{0,9}[=:]\s{0,9}[^\s;&,]/i,
  /\b(Bearer|Basic) [\w+/=.-]{16,}/i,
  /\/\/(hooks\.slack\.com\/services|discord(app)?\.com\/api\/webhooks)\//i,
];

/** Whether a value belongs outside of a file. */
export function isLikelySecret(key: string, value: string): boolean {
  if (VALUE.some((pattern) => pattern.test(value))) return true;
  if (PUBLIC.test(key)) return false;
  if (PASSWORD.test(key) && /^\d+$/.test(value)) return true;
  if (PLAIN_VALUE.test(value)) return false;
  return (NAME.test(key) && !NOT_SECRET.test(key)) || END.test(key);
}

const ARGUMENT = /(^|[\s'"])-{1,2}(?!no-)[\w-]*(password|passwd|pass|secret|token|api-?key)(\s{1,9}|=)["']?[^\s"'$=-]/i;
const ASSIGNMENT = /(?:^|[\s;'"])([A-Za-z_]\w{0,127})=(?!["']?\$)([^\s'"]+)/g;
const WORD = /[^\s'"]{12,}/g;

/** Whether a command has a value that belongs outside of a file: an argument, an assignment or an address. */
export function hasSecret(command: string): boolean {
  if (ARGUMENT.test(command) || (command.match(WORD) ?? []).some((word) => isLikelySecret('', word))) return true;
  return [...command.matchAll(ASSIGNMENT)].some(([, key = '', value = '']) => isLikelySecret(key, value));
}
