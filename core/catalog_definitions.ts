// What the platform knows how to offer. What of it an installation really offers, catalogs.ts finds out from the host.
import type { BuildpackBuilderRow, DnsRecordTypeRow, EngineFeature, Feature, PresetVariable } from './catalog_rows';
import type { ProgramName } from './host_facts';

/** What a thing needs of the host. All programs; the engine. */
export interface Needs {
  programs?: ProgramName[];
  engine?: string;
}

export interface Prices {
  currency: string;
  hourly: Record<string, string>;
  volume_gb_hourly: string;
}

/** Prices an hour, decimal strings, by the id of the application type or the database package. */
export const prices: Prices = {
  currency: 'EUR',
  volume_gb_hourly: '0.0001',
  hourly: {
    'xs-256mb': '0.0035',
    's-512mb': '0.0070',
    'm-1gb': '0.0140',
    'l-2gb': '0.0280',
    'xl-4gb': '0.0560',
    'dev-1vcpu-256mb': '0.0050',
    's-1vcpu-1gb': '0.0200',
    's-1vcpu-2gb': '0.0400',
    'm-2vcpu-4gb': '0.0800',
    'l-4vcpu-8gb': '0.1600',
    'kv-1vcpu-256mb': '0.0050',
    'kv-1vcpu-1gb': '0.0200',
    'kv-2vcpu-4gb': '0.0800',
  },
};

/** A feature joins when its group works on this platform. */
export const builtFeatures: Feature[] = ['applications', 'databases', 'volumes'];

export const defaultApplicationType = 's-512mb';

export const applicationTypeDefinitions = [
  { id: 'xs-256mb', name: 'Extra small', vcpu: 0.25, memory_mb: 256, disk_gb: 1, max_instances: 5 },
  { id: 's-512mb', name: 'Small', vcpu: 0.5, memory_mb: 512, disk_gb: 2, max_instances: 10 },
  { id: 'm-1gb', name: 'Medium', vcpu: 1, memory_mb: 1024, disk_gb: 4, max_instances: 10 },
  { id: 'l-2gb', name: 'Large', vcpu: 2, memory_mb: 2048, disk_gb: 8, max_instances: 20 },
  { id: 'xl-4gb', name: 'Extra large', vcpu: 4, memory_mb: 4096, disk_gb: 16, max_instances: 20 },
];

const relational = ['postgresql', 'mariadb'];
const keyValue = ['redis', 'valkey'];

export const databasePackageDefinitions = [
  {
    id: 'dev-1vcpu-256mb',
    name: 'Development',
    engines: relational,
    nodes: 1,
    vcpu: 1,
    memory_mb: 256,
    storage_gb: 1,
    max_storage_gb: 10,
    max_connections: 20,
  },
  {
    id: 's-1vcpu-1gb',
    name: 'Small, 1 GB',
    engines: relational,
    nodes: 1,
    vcpu: 1,
    memory_mb: 1024,
    storage_gb: 10,
    max_storage_gb: 100,
    max_connections: 50,
  },
  {
    id: 's-1vcpu-2gb',
    name: 'Small, 2 GB',
    engines: relational,
    nodes: 1,
    vcpu: 1,
    memory_mb: 2048,
    storage_gb: 20,
    max_storage_gb: 200,
    max_connections: 100,
  },
  {
    id: 'm-2vcpu-4gb',
    name: 'Medium',
    engines: relational,
    nodes: 1,
    vcpu: 2,
    memory_mb: 4096,
    storage_gb: 50,
    max_storage_gb: 500,
    max_connections: 200,
  },
  {
    id: 'l-4vcpu-8gb',
    name: 'Large',
    engines: relational,
    nodes: 1,
    vcpu: 4,
    memory_mb: 8192,
    storage_gb: 100,
    max_storage_gb: 1000,
    max_connections: 400,
  },
  {
    id: 'kv-1vcpu-256mb',
    name: 'Key-value, 256 MB',
    engines: keyValue,
    nodes: 1,
    vcpu: 1,
    memory_mb: 256,
    storage_gb: 1,
    max_storage_gb: 5,
    max_connections: 500,
  },
  {
    id: 'kv-1vcpu-1gb',
    name: 'Key-value, 1 GB',
    engines: keyValue,
    nodes: 1,
    vcpu: 1,
    memory_mb: 1024,
    storage_gb: 2,
    max_storage_gb: 20,
    max_connections: 1000,
  },
  {
    id: 'kv-2vcpu-4gb',
    name: 'Key-value, 4 GB',
    engines: keyValue,
    nodes: 1,
    vcpu: 2,
    memory_mb: 4096,
    storage_gb: 8,
    max_storage_gb: 80,
    max_connections: 5000,
  },
];

/** A feature is there when the program it needs is beside the server (`tool`) or on the host (`program`). */
export interface FeatureDefinition {
  feature: EngineFeature;
  tool?: string;
  program?: ProgramName;
}

/** `end_of_life` per series, as its makers have announced it; a series without a date has none yet. */
export interface EngineDefinition {
  id: 'postgresql' | 'mariadb' | 'redis' | 'valkey';
  name: string;
  default_port: number;
  features: FeatureDefinition[];
  end_of_life: Record<string, string>;
}

const keyValueFeatures: FeatureDefinition[] = [{ feature: 'backups' }, { feature: 'replicas' }, { feature: 'users' }];

export const engineDefinitions: EngineDefinition[] = [
  {
    id: 'mariadb',
    name: 'MariaDB',
    default_port: 3306,
    features: [{ feature: 'backups', program: 'mariadb_dump' }, { feature: 'users' }],
    // https://mariadb.org/about/#maintenance-policy
    end_of_life: { '10.5': '2025-06-24', '10.6': '2026-07-06', '10.11': '2028-02-16' },
  },
  {
    id: 'postgresql',
    name: 'PostgreSQL',
    default_port: 5432,
    features: [
      { feature: 'backups', tool: 'pg_dump' },
      { feature: 'point_in_time', tool: 'pg_basebackup' },
      { feature: 'pooling', program: 'pgbouncer' },
      { feature: 'replicas', tool: 'pg_basebackup' },
      { feature: 'users' },
    ],
    // https://www.postgresql.org/support/versioning/
    end_of_life: {
      12: '2024-11-14',
      13: '2025-11-13',
      14: '2026-11-12',
      15: '2027-11-11',
      16: '2028-11-09',
      17: '2029-11-08',
      18: '2030-11-14',
    },
  },
  {
    id: 'redis',
    name: 'Redis',
    default_port: 6379,
    features: keyValueFeatures,
    // https://github.com/redis/redis/security
    end_of_life: { '5.0': '2022-04-27', '6.0': '2022-05-31', '7.0': '2024-07-29', '8.0': '2026-02-11' },
  },
  {
    id: 'valkey',
    name: 'Valkey',
    default_port: 6379,
    features: keyValueFeatures,
    // https://valkey.io/topics/releases/
    end_of_life: { '7.2': '2029-04-16', '8.0': '2027-09-15', '8.1': '2030-03-31', '9.0': '2028-10-21' },
  },
];

export const languageDefinitions: { language: string; needs: Needs }[] = [
  { language: 'go', needs: { programs: ['go'] } },
  { language: 'nodejs', needs: { programs: ['node', 'npm'] } },
  { language: 'python', needs: { programs: ['python3'] } },
  { language: 'static', needs: {} },
];

/** `detects`: finds out the language by itself, so its languages are those of the host. */
export interface BuilderDefinition extends Omit<BuildpackBuilderRow, 'languages'> {
  needs: Needs;
  detects: boolean;
}

// The Dockerfile joins when the runtime can run images.
export const builderDefinitions: BuilderDefinition[] = [
  {
    id: 'native',
    name: 'Native',
    image: null,
    needs: {},
    description: 'Finds out the language of the source and builds it with the runtimes of the platform.',
    detects: true,
    default: true,
    deprecated: false,
  },
];

/** What an application made from a preset begins with. `template` names the source that is shipped with the platform. */
export interface PresetDefinition {
  id: string;
  name: string;
  description: string;
  category: string;
  image: string | null;
  application_type: string;
  needs: Needs;
  template: string;
  processes: { type: string; command: string | null; instances: number }[];
  variables: PresetVariable[];
}

const nodeEnv: PresetVariable = {
  key: 'NODE_ENV',
  description: 'The mode that Node.js packages run in.',
  default: 'production',
  required: false,
};
const unbuffered: PresetVariable = {
  key: 'PYTHONUNBUFFERED',
  description: 'Writes log lines at once.',
  default: '1',
  required: false,
};
const greeting: PresetVariable = {
  key: 'GREETING',
  description: 'The headline of the page.',
  default: null,
  required: false,
};
const pace: PresetVariable = {
  key: 'WORK_EVERY_SECONDS',
  description: 'Time between two pieces of work.',
  default: '10',
  required: false,
};
const databaseUrl: PresetVariable = {
  key: 'DATABASE_URL',
  description: 'PostgreSQL database of the guest book; the page says so where there is none.',
  default: null,
  required: false,
};

/** The command is for the source to say: its package.json, Procfile or main file. */
const web = { type: 'web', command: null, instances: 1 };

export const presetDefinitions: PresetDefinition[] = [
  {
    id: 'go-web',
    name: 'Go web server',
    description: 'A web server in Go that answers on PORT.',
    category: 'web',
    image: null,
    application_type: 'xs-256mb',
    needs: { programs: ['go'] },
    template: 'go-web',
    processes: [web],
    variables: [greeting],
  },
  {
    id: 'node-fullstack',
    name: 'Guest book',
    description: 'A page, an API in JavaScript and a PostgreSQL database.',
    category: 'web',
    image: null,
    application_type: 's-512mb',
    needs: { programs: ['node', 'npm'] },
    template: 'node-fullstack',
    processes: [web],
    variables: [databaseUrl, nodeEnv],
  },
  {
    id: 'node-web',
    name: 'Node.js web server',
    description: 'A web server in JavaScript that answers on PORT.',
    category: 'web',
    image: null,
    application_type: 's-512mb',
    needs: { programs: ['node'] },
    template: 'node-web',
    processes: [web],
    variables: [greeting, nodeEnv],
  },
  {
    id: 'node-worker',
    name: 'Node.js page and worker',
    description: 'A web page and, beside it, a process that works in the background.',
    category: 'worker',
    image: null,
    application_type: 's-512mb',
    needs: { programs: ['node'] },
    template: 'node-worker',
    processes: [web, { type: 'worker', command: null, instances: 1 }],
    variables: [nodeEnv, pace],
  },
  {
    id: 'python-web',
    name: 'Python web server',
    description: 'A web server in Python that answers on PORT.',
    category: 'web',
    image: null,
    application_type: 's-512mb',
    needs: { programs: ['python3'] },
    template: 'python-web',
    processes: [web],
    variables: [greeting, unbuffered],
  },
  {
    id: 'static-site',
    name: 'Static site',
    description: 'Files served as they are.',
    category: 'static',
    image: null,
    application_type: 'xs-256mb',
    needs: {},
    template: 'static-site',
    processes: [web],
    variables: [],
  },
];

export const dnsRecordTypeRows: DnsRecordTypeRow[] = [
  { type: 'A', description: 'An IPv4 address of the name.', fields: [], apex_allowed: true },
  { type: 'AAAA', description: 'An IPv6 address of the name.', fields: [], apex_allowed: true },
  {
    type: 'ALIAS',
    description: 'The addresses of another name, answered as A and AAAA. The way to point the apex at a host name.',
    fields: [],
    apex_allowed: true,
  },
  {
    type: 'CAA',
    description: 'Who may issue certificates for the name (RFC 8659).',
    fields: ['flags', 'tag'],
    apex_allowed: true,
  },
  {
    type: 'CNAME',
    description: 'Another name for this one. No other record may stand beside it (RFC 1034 section 3.6.2).',
    fields: [],
    apex_allowed: false,
  },
  {
    type: 'MX',
    description: 'A host that takes mail for the name; the lowest priority comes first.',
    fields: ['priority'],
    apex_allowed: true,
  },
  { type: 'NS', description: 'A name server of the name.', fields: [], apex_allowed: true },
  { type: 'PTR', description: 'The name that an address belongs to.', fields: [], apex_allowed: false },
  {
    type: 'SRV',
    description: 'Host and port of a service (RFC 2782).',
    fields: ['priority', 'weight', 'port'],
    apex_allowed: false,
  },
  {
    type: 'TXT',
    description: 'Text, for instance a proof of ownership or a mail policy.',
    fields: [],
    apex_allowed: true,
  },
];
