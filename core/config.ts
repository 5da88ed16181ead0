// The settings of this process, read once at start and passed on; no other code reads the environment.
import { join } from 'node:path';
import type { LoginProviderSetting } from './accounts/login_provider';
import { readLoginProviders } from './accounts/login_settings';
import { projectQuotas, type QuotaName } from './limits';
import { settings } from './settings';
import { fixedValues, type FixedValues } from './settings/fixed';
import type { Setting } from './setting_types';
import { loginProviderRows } from './settings/login';
import { missedDirectories } from './settings/removed';
import { StartupError } from './startup_error';

export { settings };

type Settings = typeof settings;
type SettingName = keyof Settings;
type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Lowercase<Head>}${Capitalize<Camel<Tail>>}`
  : Lowercase<Name>;
type Key<Name extends string> = Name extends `PLATFORM_${infer Rest}` ? Camel<Rest> : Camel<Name>;
type Value<S> = S extends Setting<infer V> & { readonly default: infer D } ? (D extends null ? V | null : V) : never;
type Values = { readonly [Name in SettingName as Key<Name>]: Value<Settings[Name]> };

/** Key of a setting: its name in camel case, without PLATFORM_: `dataDir`, `databasePoolSize`. */
export type Config = Omit<
  Values,
  | 'baseUrl'
  | 'rateLimitStore'
  | 'ingressHost'
  | 'dnsDomain'
  | 'dnsIps'
  | 'smtpHost'
  | 'mailMode'
  | 'mailSpf'
  | 'cdnDomain'
  | 'registryHost'
  | 's3Domain'
  | 's3WebsiteDomain'
  | 'quotas'
> &
  FixedValues & {
    /** Without a trailing slash. */
    readonly baseUrl: string;
    readonly rateLimitStore: 'memory' | 'postgres';
    readonly ingressHost: string;
    readonly dnsDomain: string;
    readonly dnsIps: readonly string[];
    readonly smtpHost: string;
    /** The operator has set it: it gets a certificate then. */
    readonly isSmtpHostSet: boolean;
    readonly mailMode: 'sink' | 'smarthost' | 'direct';
    /** SPF mechanisms. */
    readonly mailSpf: string;
    readonly volumeDir: string;
    readonly runtimeDir: string;
    readonly databaseDir: string;
    readonly registryDir: string;
    readonly cdnDir: string;
    /** Cached at most. Each takes about 2 KB of memory. */
    readonly cdnObjects: number;
    readonly cdnDomain: string;
    readonly registryHost: string;
    readonly s3Domain: string;
    readonly s3WebsiteDomain: string;
    readonly s3Dir: string;
    /** Of the API server, as a cluster says it to its pods. */
    readonly kubernetesServiceHost: string | null;
    readonly kubernetesServicePort: number;
    /** External login providers, by title. */
    readonly loginProviders: readonly LoginProviderSetting[];
    /** Project limits, defaults and overrides combined; null = unlimited. */
    readonly quotas: Readonly<Record<string, number | null>> & Readonly<Record<QuotaName, number | null>>;
  };

const OURS = 'PLATFORM_';
const CDN_OBJECTS_PER_GB = 25_000;
const CDN_OBJECTS_MAX = 1_000_000;
const table = Object.entries(settings) as [SettingName, Setting<unknown>][];

/**
 * Reads the settings. An empty value counts as unset.
 * @throws StartupError with every malformed setting and every unknown one that starts with PLATFORM_
 */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const mistakes = Object.keys(env)
    .filter((name) => name.startsWith(OURS) && !(name in settings))
    .map((name) => `${name} is not a setting`);
  const values: Record<string, unknown> = {};
  for (const [name, setting] of table) {
    const text = env[name]?.trim() || defaultOf(setting);
    const value = text === null ? null : setting.parse(text);
    if (text !== null && value === null) mistakes.push(malformed(name, setting, text));
    values[keyOf(name)] = value;
  }
  if (values.dataDir) mistakes.push(...missedDirectories(env, values.dataDir as string));
  const loginProviders = readLoginProviders(env, mistakes);
  if (values.loginPassword === 'off' && !loginProviders.length && !mistakes.length)
    mistakes.push('LOGIN_PASSWORD is off and there is no login provider: nobody could log in. Set LOGIN_<NAME>_ISSUER');
  if (values.releaseImages === 'always' && values.registryPort === 0)
    mistakes.push('RELEASE_IMAGES is always, but no registry can store the images: set REGISTRY_PORT');
  if (values.workloads === 'kubernetes' && values.registryPort === 0)
    mistakes.push('WORKLOADS is kubernetes, but no registry can give the images to its nodes: set REGISTRY_PORT');
  if (values.workloads !== 'kubernetes' && (values as Values).databaseImages?.length)
    mistakes.push('DATABASE_IMAGES names images for a cluster, but WORKLOADS is host: set WORKLOADS=kubernetes');
  const { databaseAddressForPods: address, databaseSourcesOfPods: sources } = values as Values;
  if ((address === null) !== (sources.length === 0))
    mistakes.push('DATABASE_ADDRESS_FOR_PODS and DATABASE_SOURCES_OF_PODS are set together or not at all');
  if (mistakes.length) throw new StartupError(mistakes.join('; '));
  return Object.freeze({ ...derive(values as Values, env), ...fixedValues, loginProviders });
}

/** The settings with the bound port, for PORT=0. */
export function withPort(config: Config, port: number): Config {
  const baseUrl = config.baseUrl === addressOf(config) ? addressOf({ host: config.host, port }) : config.baseUrl;
  return Object.freeze({ ...config, port, baseUrl });
}

/** The settings as help text for a terminal. */
export function helpText(): string {
  const lines = table.flatMap(([name, setting]) => [
    `  ${name}  (${setting.type}; default: ${formatDefault(setting)})`,
    `      ${setting.description}`,
  ]);
  const more = Object.entries(loginProviderRows).flatMap(([name, { type, description }]) => [
    `  ${name}  (${type}; default: not set)`,
    `      ${description}`,
  ]);
  return ['Settings (environment variables):', '', ...lines, ...more, ''].join('\n');
}

/** The settings as a Markdown table, for the documentation. */
export function settingsMarkdown(): string {
  const rows = table.map(
    ([name, setting]) =>
      `| \`${name}\` | ${cell(setting.type)} | ${cell(formatDefault(setting))} | ${cell(setting.description)} |`,
  );
  const more = Object.entries(loginProviderRows).map(
    ([name, { type, description }]) => `| \`${name}\` | ${cell(type)} | not set | ${cell(description)} |`,
  );
  return ['| Setting | Type | Default | Meaning |', '|---|---|---|---|', ...rows, ...more, ''].join('\n');
}

function derive(values: Values, env: NodeJS.ProcessEnv): Omit<Config, 'loginProviders' | keyof FixedValues> {
  return {
    ...values,
    baseUrl: values.baseUrl ?? addressOf(values),
    rateLimitStore: values.rateLimitStore ?? (values.webConcurrency > 1 ? 'postgres' : 'memory'),
    ingressHost: values.ingressHost ?? `ingress.${values.appsDomain}`,
    dnsDomain: values.dnsDomain ?? `dns.${values.appsDomain}`,
    dnsIps: values.dnsIps.length ? values.dnsIps : values.ingressIps,
    ...mailOf(values),
    volumeDir: join(values.dataDir, 'volumes'),
    runtimeDir: join(values.dataDir, 'runtime'),
    databaseDir: join(values.dataDir, 'databases'),
    cdnDir: join(values.dataDir, 'cdn'),
    cdnObjects: Math.min(values.cdnSizeGb * CDN_OBJECTS_PER_GB, CDN_OBJECTS_MAX),
    cdnDomain: values.cdnDomain ?? `cdn.${values.appsDomain}`,
    registryDir: join(values.dataDir, 'registry'),
    registryHost: values.registryHost ?? registryHostOf(values),
    ...objectStorageOf(values),
    kubernetesServiceHost: env.KUBERNETES_SERVICE_HOST?.trim() || null,
    kubernetesServicePort: Number(env.KUBERNETES_SERVICE_PORT) || 443,
    quotas: Object.freeze({ ...projectQuotas, ...values.quotas }),
  };
}

function mailOf({
  smtpHost,
  appsDomain,
  mailMode,
  smtpUrl,
  mailSpf,
}: Values): Pick<Config, 'smtpHost' | 'isSmtpHostSet' | 'mailMode' | 'mailSpf'> {
  const host = smtpHost ?? `smtp.${appsDomain}`;
  return {
    smtpHost: host,
    isSmtpHostSet: smtpHost !== null,
    mailMode: mailMode ?? (smtpUrl === null ? 'sink' : 'smarthost'),
    mailSpf: mailSpf ?? `a:${host}`,
  };
}

function registryHostOf({ distributionUrl, registryPort }: Values): string {
  return distributionUrl === null ? `localhost:${registryPort}` : new URL(distributionUrl).host;
}

function objectStorageOf(values: Values): Pick<Config, 's3Domain' | 's3WebsiteDomain' | 's3Dir'> {
  const s3Domain = values.s3Domain ?? `s3.${values.appsDomain}`;
  return {
    s3Domain,
    s3WebsiteDomain: values.s3WebsiteDomain ?? `web.${s3Domain}`,
    s3Dir: join(values.dataDir, 'objects'),
  };
}

function addressOf({ host, port }: { host: string; port: number }): string {
  const everywhere = host === '0.0.0.0' || host === '::';
  const name = everywhere ? 'localhost' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

function defaultOf(setting: Setting<unknown>): string | null {
  const root = process.getuid?.() === 0;
  return root ? (setting.defaultAsRoot ?? setting.default) : setting.default;
}

function malformed(name: string, setting: Setting<unknown>, text: string): string {
  const given = setting.secret ? '' : `: ${JSON.stringify(text)}`;
  return `${name} is malformed${given} (expected ${setting.type})`;
}

function formatDefault(setting: Setting<unknown>): string {
  const usual = setting.derived ?? setting.default ?? 'not set';
  return setting.defaultAsRoot ? `${usual}, as root ${setting.defaultAsRoot}` : usual;
}

function keyOf(name: string): string {
  return name
    .replace(OURS, '')
    .toLowerCase()
    .replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
