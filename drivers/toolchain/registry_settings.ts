// npm settings for builds: access to the registry. Credentials are withheld, since a build could print them.
import type { RegistrySettings } from '../toolchain';

/** Certificate authorities of the operator; units see those of the system. */
const AUTHORITIES = [
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'CURL_CA_BUNDLE',
];
const VISIBLE = /^\/(etc\/(ssl|pki|ca-certificates|crypto-policies)|usr)\//;

/** @param text output of `npm config list --json` */
export function readRegistrySettings(text: string): RegistrySettings {
  const config = JSON.parse(text) as Record<string, unknown>;
  const registry = address(config.registry);
  const authority = typeof config.cafile === 'string' && VISIBLE.test(config.cafile) ? config.cafile : null;
  const scopes = Object.entries(config).filter(([key, value]) => /^@[\w.-]+:registry$/.test(key) && address(value));
  const npmrc = [
    ...scopes.map(([key, value]) => `${key}=${String(value)}`),
    ...(registry === null ? [] : [`registry=${registry}`]),
    ...(authority === null ? [] : [`cafile=${authority}`]),
    ...(config['strict-ssl'] === false ? ['strict-ssl=false'] : []),
  ];
  const yarnrc = registry === null ? [] : [`registry "${registry}"`];
  const yarnrcYml = [
    ...(registry === null ? [] : [`npmRegistryServer: "${registry}"`]),
    ...(registry?.startsWith('http:') ? [`unsafeHttpWhitelist: ["${new URL(registry).hostname}"]`] : []),
    ...(authority === null ? [] : [`httpsCaFilePath: "${authority}"`]),
  ];
  const files = { '.npmrc': npmrc, '.yarnrc': yarnrc, '.yarnrc.yml': yarnrcYml };
  return { files, env: { ...proxies(config), ...authorities() } };
}

function proxies(config: Record<string, unknown>): Record<string, string> {
  const env: Record<string, string> = {};
  const noProxy = Array.isArray(config.noproxy) ? config.noproxy.join(',') : config.noproxy;
  for (const [name, value] of [
    ['HTTP_PROXY', address(config.proxy)],
    ['HTTPS_PROXY', address(config['https-proxy'])],
    ['NO_PROXY', typeof noProxy === 'string' && noProxy !== '' ? noProxy : null],
  ] as const) {
    if (value !== null) Object.assign(env, { [name]: value, [name.toLowerCase()]: value });
  }
  return env;
}

function authorities(): Record<string, string> {
  const found = AUTHORITIES.map((name) => [name, process.env[name] ?? ''] as const);
  return Object.fromEntries(found.filter(([, file]) => VISIBLE.test(`${file}/`)));
}

/** null for an invalid address, and for one with credentials. */
function address(value: unknown): string | null {
  if (typeof value !== 'string' || !/^https?:/.test(value) || !URL.canParse(value) || /["\s]/.test(value)) return null;
  return new URL(value).username === '' ? value : null;
}
