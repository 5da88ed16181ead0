// Well-known images of servers: which are databases of the platform, and which nothing here replaces.

const ENGINES: readonly [RegExp, string][] = [
  [/(^|\/)(postgres|postgresql|postgis|timescaledb|timescaledb-ha|pgvector|pg_vector|postgres-ssl)$/, 'postgresql'],
  [/(^|\/)(mysql|mysql-server|mariadb|percona|percona-server)$/, 'mariadb'],
  [/(^|\/)(redis|redis-stack|redis-stack-server|redismod|keydb|dragonfly)$/, 'redis'],
  [/(^|\/)(valkey)$/, 'valkey'],
];

const BUCKETS = /(^|\/)(minio|rustfs|garage|seaweedfs)$/;
/** Last parts of names of images. */
const SERVERS = new Set(
  [
    'mongo mongodb mongodb-community-server rabbitmq memcached kafka cp-kafka zookeeper cp-zookeeper nats',
    'cassandra neo4j influxdb elasticsearch opensearch etcd couchdb clickhouse clickhouse-server mssql',
    'sqlserver redpanda mosquitto emqx qdrant weaviate milvus chroma meilisearch typesense arangodb rethinkdb',
    'cockroach scylla beanstalkd activemq pulsar cp-schema-registry vault consul openldap',
  ].flatMap((names) => names.split(' ')),
);

const REFERENCE_MAX = 512;

export interface KnownImage {
  is: 'database' | 'object_storage' | 'server';
  engine: string;
  /** `16` of `postgres:16-alpine`. */
  version: string | null;
  name: string;
}

/** What a reference of an image is known as; null for an application. */
export function knownImage(reference: string): KnownImage | null {
  if (reference.length > REFERENCE_MAX) return null;
  const bare = reference.replace(/@.*$/, '');
  const [, name = bare, tag = ''] = /^(.*?)(?::([^/]+))?$/.exec(bare) ?? [];
  const lower = name.toLowerCase();
  const engine = ENGINES.find(([pattern]) => pattern.test(lower))?.[1];
  if (engine) return { is: 'database', engine, version: versionOf(engine, name, tag), name };
  if (BUCKETS.test(lower)) return { is: 'object_storage', engine: '', version: null, name };
  const isServer = SERVERS.has(lower.split('/').at(-1) ?? '') || lower.includes('mssql');
  return isServer ? { is: 'server', engine: '', version: null, name } : null;
}

/** `pg16` of images with extensions; MySQL's versions are not those of MariaDB. */
function versionOf(engine: string, name: string, tag: string): string | null {
  const [, version = null] = /(?:^|-|pg)(\d+(?:\.\d+)*)/.exec(tag) ?? [];
  if (version === null || (engine === 'mariadb' && !/mariadb/i.test(name))) return null;
  return engine === 'postgresql' ? (version.split('.')[0] as string) : version;
}

/** Engines as other platforms name them. */
export function engineOf(name: string): string | null {
  const lower = name.toLowerCase();
  if (/^(pg|postgres|postgresql)/.test(lower)) return 'postgresql';
  if (/^(mysql|mariadb)/.test(lower)) return 'mariadb';
  if (lower.startsWith('valkey')) return 'valkey';
  return /^(redis|keyvalue|kvs)/.test(lower) ? 'redis' : null;
}
