// Database packages and engines.
import type { EngineFeature } from '../catalog_rows';
import type { ProgramName } from '../host_facts';

const relational = ['postgresql', 'mariadb'];
const keyValue = ['redis', 'valkey'];

/** Databases that an engine has for itself. */
export const enginesOwnDatabases = [
  ...['postgres', 'template0', 'template1'],
  ...['mysql', 'sys', 'information_schema', 'performance_schema'],
];

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
    id: 'ha-1vcpu-1gb',
    name: 'Automatic failover, 1 GB',
    engines: ['postgresql'],
    nodes: 3,
    vcpu: 1,
    memory_mb: 1024,
    storage_gb: 10,
    max_storage_gb: 100,
    max_connections: 50,
  },
  {
    id: 'ha-1vcpu-2gb',
    name: 'Automatic failover, 2 GB',
    engines: ['postgresql'],
    nodes: 3,
    vcpu: 1,
    memory_mb: 2048,
    storage_gb: 20,
    max_storage_gb: 200,
    max_connections: 100,
  },
  {
    id: 'ha-2vcpu-4gb',
    name: 'Automatic failover, 4 GB',
    engines: ['postgresql'],
    nodes: 3,
    vcpu: 2,
    memory_mb: 4096,
    storage_gb: 50,
    max_storage_gb: 500,
    max_connections: 200,
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

/** A feature is available when its program is installed beside the server (`tool`) or on the host (`program`). */
export interface FeatureDefinition {
  feature: EngineFeature;
  tool?: string;
  program?: ProgramName;
  /** Not of servers in a cluster. */
  host_only?: true;
}

/** `end_of_life` per series, as announced by the vendor; a series without a date has none yet. */
export interface EngineDefinition {
  id: 'postgresql' | 'mariadb' | 'redis' | 'valkey';
  name: string;
  default_port: number;
  features: FeatureDefinition[];
  end_of_life: Record<string, string>;
}

const keyValueFeatures: FeatureDefinition[] = [
  { feature: 'backups' },
  { feature: 'replicas', host_only: true },
  { feature: 'users' },
];

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
      { feature: 'point_in_time', tool: 'pg_basebackup', host_only: true },
      { feature: 'pooling', program: 'pgbouncer', host_only: true },
      { feature: 'replicas', tool: 'pg_basebackup', host_only: true },
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
