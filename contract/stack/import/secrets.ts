// Which variables look like secrets, so that their values do not go into a file.

const PUBLIC = /^(NEXT_PUBLIC|NUXT_PUBLIC|VITE|REACT_APP|PUBLIC|EXPO_PUBLIC|GATSBY)_/;
const NAME =
  /(SECRET|PASSWORD|PASSWD|PASSPHRASE|TOKEN|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY|AUTH_?KEY|ENCRYPTION|SIGNING)/i;
const END = /(^|_)(PASS|PWD|KEY|KEYS|SALT|DSN|HASH|PIN|CERT|JWT)$/i;
const NOT_SECRET =
  /(_URL|_HOST|_PORT|_NAME|_USER|_FILE|_PATH|_ID|_TTL|_EXPIRY|_EXPIRES|_EXPIRATION|_LIFETIME|_LENGTH)$/i;
const PLAIN_VALUE = /^(true|false|yes|no|on|off|null|none|\d{1,6}[smhd]?|)$/i;
const VALUE = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  /^[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:[^\s/@]+@/i,
  /^(sk|pk|rk|whsec)_(live|test)_/,
  /^(ghp|gho|ghs|github_pat|glpat|xox[abp]|sk-ant|sk-proj|SG\.|AKIA|ya29\.)[\w.-]{8,}/,
  /^eyJ[\w-]{10,}\.eyJ[\w-]{10,}\./,
  /[?&](password|token|secret|api_?key)=/i,
];

/** Whether a value belongs outside of a file. */
export function looksSecret(key: string, value: string): boolean {
  if (VALUE.some((pattern) => pattern.test(value))) return true;
  if (PUBLIC.test(key) || PLAIN_VALUE.test(value)) return false;
  return (NAME.test(key) && !NOT_SECRET.test(key)) || END.test(key);
}
