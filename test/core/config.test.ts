import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { helpText, loadConfig, settings, settingsMarkdown, withPort } from '../../core/config';
import { removedSettings } from '../../core/settings/removed';
import { projectQuotas } from '../../core/limits';
import { StartupError } from '../../core/startup_error';

const KEY = Buffer.alloc(32, 7).toString('base64');
const names = Object.keys(settings);

test('without settings the defaults hold', () => {
  const config = loadConfig({});
  expect(config).toMatchObject({
    databaseUrl: null,
    databasePoolSize: 10,
    host: '127.0.0.1',
    port: 8080,
    baseUrl: 'http://127.0.0.1:8080',
    adminPort: 9090,
    logLevel: 'info',
    secretKey: null,
    postgresUser: 'nobody',
    trustProxy: 0,
    rateLimitRead: 1200,
    rateLimitWrite: 300,
    rateLimitDeploy: 60,
    rateLimitStore: 'memory',
    dnsResolvers: [],
    appsDomain: 'localhost',
    ingressHost: 'ingress.localhost',
    volumeDriver: 'auto',
    allowLocalGit: false,
    ownerEmail: 'owner@example.com',
    worker: 'in_process',
  });
  expect(config.quotas).toEqual(projectQuotas);
  expect(config.dataDir).toMatch(/^\//);
  expect(config.volumeDir).toBe(`${config.dataDir}/volumes`);
});

test('as root the data stand in the state directory of the system', () => {
  const uid = jest.spyOn(process, 'getuid');
  uid.mockReturnValue(0);
  expect(loadConfig({}).dataDir).toBe('/var/lib/platform-api');
  uid.mockReturnValue(1000);
  expect(loadConfig({}).dataDir).toBe(`${process.cwd()}/data`);
  uid.mockRestore();
});

test('every setting has a meaning, and a default that its own form accepts', () => {
  for (const [name, setting] of Object.entries(settings)) {
    expect(setting.description).toMatch(/^[A-Z].*\.$/);
    if (setting.default !== null) expect([name, setting.parse(setting.default)]).not.toContain(null);
  }
});

test.each([
  ['PORT', '0', 'port', 0],
  ['PORT', ' 9000 ', 'port', 9000],
  ['PORT', '', 'port', 8080],
  ['HOST', '::1', 'baseUrl', 'http://[::1]:8080'],
  ['HOST', '0.0.0.0', 'baseUrl', 'http://localhost:8080'],
  ['BASE_URL', 'https://api.example.com/', 'baseUrl', 'https://api.example.com'],
  ['ALLOW_LOCAL_GIT', '1', 'allowLocalGit', true],
  ['ALLOW_LOCAL_GIT', 'FALSE', 'allowLocalGit', false],
  [
    'DNS_RESOLVERS',
    '192.0.2.1, [2001:db8::1]:5353,2001:db8::2,127.0.0.1:53',
    'dnsResolvers',
    ['192.0.2.1', '[2001:db8::1]:5353', '2001:db8::2', '127.0.0.1:53'],
  ],
  ['KUBERNETES_SERVICE_HOST', 'fd00::1', 'kubernetesServiceHost', 'fd00::1'],
  ['INGRESS_IPS', '192.0.2.1,2001:db8::1', 'ingressIps', ['192.0.2.1', '2001:db8::1']],
  ['APPS_DOMAIN', 'Apps.Example.com', 'ingressHost', 'ingress.apps.example.com'],
  ['INGRESS_HOST', 'edge.example.com', 'ingressHost', 'edge.example.com'],
  ['PLATFORM_DATA_DIR', '/srv/platform/', 'volumeDir', '/srv/platform/volumes'],
  ['PLATFORM_SECRET_KEY', `new:${KEY}`, 'secretKey', `new:${KEY}`],
  ['DATABASE_URL', 'postgres://app:pw@db.example.com/app', 'databaseUrl', 'postgres://app:pw@db.example.com/app'],
] as const)('%s=%s', (name, text, key, value) => {
  expect(loadConfig({ [name]: text })[key]).toEqual(value);
});

test('quotas change the built-in ones', () => {
  expect(loadConfig({ QUOTAS: '{"volumes": 3, "databases": null}' }).quotas).toEqual({
    ...projectQuotas,
    volumes: 3,
    databases: null,
  });
});

test.each([
  ['PORT', '65536'],
  ['PORT', '-1'],
  ['PORT', '80.5'],
  ['PORT', '0x50'],
  ['HOST', 'not a host'],
  ['BASE_URL', 'ftp://api.example.com'],
  ['BASE_URL', 'https://user:pw@api.example.com'],
  ['BASE_URL', 'https://api.example.com/?x=1'],
  ['DATABASE_URL', 'mysql://db.example.com/app'],
  ['DATABASE_POOL_SIZE', '0'],
  ['LOG_LEVEL', 'loud'],
  ['WORKER', 'In_process'],
  ['ALLOW_LOCAL_GIT', 'yes'],
  ['DNS_RESOLVERS', 'dns.example.com'],
  ['DNS_RESOLVERS', '192.0.2.1:99999'],
  ['INGRESS_IPS', '192.0.2.300'],
  ['OWNER_EMAIL', 'owner'],
  ['REGION_ID', 'Region One'],
  ['QUOTAS', '{"volumes": -1}'],
  ['QUOTAS', '{"volume": 1}'],
  ['QUOTAS', '{"volumes": "1"}'],
  ['QUOTAS', '[]'],
  ['QUOTAS', '{'],
  ['PLATFORM_SECRET_KEY', 'short'],
  ['PLATFORM_POSTGRES_USER', 'no\nbody'],
])('%s=%j stops the start with its name', (name, text) => {
  expect(() => loadConfig({ [name]: text })).toThrow(StartupError);
  expect(() => loadConfig({ [name]: text })).toThrow(new RegExp(`^${name} is malformed.*expected`));
});

test('an unknown setting of ours stops the start, those of others do not', () => {
  expect(() => loadConfig({ PLATFORM_DATADIR: '/srv' })).toThrow('PLATFORM_DATADIR is not a setting');
  expect(() => loadConfig({ HOME: '/root', PATH: '/bin', FOO_PORT: 'x' })).not.toThrow();
});

describe('a setting that was removed', () => {
  const home = mkdtempSync(path.join(tmpdir(), 'platform-removed-'));
  const [data, former] = [path.join(home, 'data'), path.join(home, 'former')];
  beforeAll(() => {
    for (const directory of [data, former]) mkdirSync(directory);
  });
  afterAll(() => rmSync(home, { recursive: true }));

  test('is named with what to do, and stops nothing', () => {
    const env = { INGRESS_PROCESS: 'in_process', REGION_CITY: 'Frankfurt', DATABASE_DIR: former };
    expect(() => loadConfig(env)).not.toThrow();
    const said = 'is not a setting any more and has no effect.';
    expect(removedSettings(env)).toEqual([
      `INGRESS_PROCESS ${said} The ingress always runs in a process of its own. Remove INGRESS_PROCESS from the ` +
        'settings.',
      `REGION_CITY ${said} Set REGION_LOCATION to city and country, such as \`Frankfurt, DE\`. Remove REGION_CITY ` +
        'from the settings.',
      `DATABASE_DIR ${said} It is \`databases\` in the data directory. Remove DATABASE_DIR from the settings.`,
    ]);
    for (const name of ['CDN_GATEWAY', 'CDN_VARNISH_NODES', 'CDN_VARNISH_SECRET_FILE'])
      expect(removedSettings({ [name]: '192.0.2.1:6081/6082' })).toEqual([
        `${name} ${said} Each ingress caches for CDN zones itself, up to CDN_SIZE_GB. The Varnish servers can be ` +
          `stopped. Remove ${name} from the settings.`,
      ]);
    expect(removedSettings({ INGRESS_PROCESS: ' ' })).toEqual([]);
  });

  test('is no name of a setting', () => {
    for (const name of Object.keys(settings)) expect(removedSettings({ [name]: '1' })).toEqual([]);
  });

  test.each([
    ['DATABASE_DIR', 'databases'],
    ['REGISTRY_DIR', 'registry'],
    ['RUNTIME_DIR', 'runtime'],
    ['S3_DIR', 'objects'],
    ['VOLUME_DIR', 'volumes'],
  ])('%s: a start without the data that lies there is refused', (name, part) => {
    const env = { PLATFORM_DATA_DIR: data, [name]: former };
    writeFileSync(path.join(former, 'content'), '');
    expect(() => loadConfig(env)).toThrow(
      `${name} is not a setting any more, and ${former} has data. Mount it at ${data}/${part} ` +
        `(mkdir -p ${data}/${part} && mount --bind ${former} ${data}/${part}, and in /etc/fstab: ` +
        `${former} ${data}/${part} none bind,nofail 0 0), then remove ${name}`,
    );
    symlinkSync(former, path.join(data, part));
    expect(() => loadConfig(env)).not.toThrow();
    expect(() => loadConfig({ ...env, [name]: path.join(home, 'absent') })).not.toThrow();
    expect(() => loadConfig({ ...env, [name]: path.join(former, 'content', 'no directory') })).not.toThrow();
  });
});

test('all mistakes come in one line, and no secret is repeated', () => {
  const env = { PORT: 'x', PLATFORM_X: '1', DATABASE_URL: 'mysql://app:hunter2@db', PLATFORM_SECRET_KEY: 'hunter3' };
  const message = messageOf(() => loadConfig(env));
  for (const name of Object.keys(env)) expect(message).toContain(name);
  expect(message).not.toMatch(/hunter|\n/);
});

test.each([
  ['KUBERNETES_NAMESPACE_PREFIX', 'a'.repeat(32), 'a'.repeat(33)],
  ['KUBERNETES_STORAGE_CLASS', 'gp3.encrypted', 'gp3_encrypted'],
  ['KUBERNETES_INGRESS_NAMESPACE', '0'.repeat(63), '-ingress'],
])('%s: a cluster takes %s and not %s', (name, taken, refused) => {
  expect(loadConfig({ [name]: taken })).toMatchObject(Object.fromEntries([[camelCaseOf(name), taken]]));
  expect(() => loadConfig({ [name]: refused })).toThrow(name);
});

const camelCaseOf = (name: string): string =>
  name.toLowerCase().replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());

test('the configuration cannot be changed', () => {
  const config = loadConfig({ DNS_RESOLVERS: '192.0.2.1' });
  expect(() => Object.assign(config, { port: 1 })).toThrow(TypeError);
  expect(() => Object.assign(config.quotas, { volumes: 1 })).toThrow(TypeError);
  expect(() => (config.dnsResolvers as string[]).push('192.0.2.2')).toThrow(TypeError);
});

test('a free port enters the base address unless that was set', () => {
  expect(withPort(loadConfig({ PORT: '0' }), 4711)).toMatchObject({ port: 4711, baseUrl: 'http://127.0.0.1:4711' });
  expect(withPort(loadConfig({ PORT: '0', BASE_URL: 'https://api.example.com' }), 4711).baseUrl).toBe(
    'https://api.example.com',
  );
});

test('help and documentation show every setting, whoever asks', () => {
  const ofProviders = ['ISSUER', 'CLIENT_ID', 'CLIENT_SECRET', 'TITLE', 'TYPE'].map((end) => `LOGIN_<NAME>_${end}`);
  for (const name of [...names, ...ofProviders]) {
    expect(helpText()).toContain(`  ${name}  (`);
    expect(settingsMarkdown()).toContain(`| \`${name}\` |`);
  }
  expect(settingsMarkdown().trim().split('\n')).toHaveLength(names.length + ofProviders.length + 2);
  for (const line of settingsMarkdown().trim().split('\n'))
    expect(line.replaceAll('\\|', '').match(/\|/g)).toHaveLength(5);
  expect(helpText()).toContain('./data, as root /var/lib/platform-api');
});

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}
