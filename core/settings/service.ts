// Settings of the API, its store and its limits.
import { limits, projectQuotas, type QuotaName } from '../limits';
import {
  amounts,
  email,
  httpUrlSetting,
  integer,
  listenHost,
  oneOf,
  origins,
  path,
  postgresUrl,
  processCount,
  secretKeys,
  slug,
  text,
} from '../setting_types';

const rates = limits.rateBudgetsPerMinute;

export const serviceSettings = {
  PLATFORM_DATA_DIR: path({
    default: './data',
    defaultAsRoot: '/var/lib/platform-api',
    description:
      'Directory of everything that the platform keeps: the embedded database, the secret key, and volumes, runtime, ' +
      'databases, objects, registry and cdn. Mount another disk at one of these to move it there.',
  }),
  DATABASE_URL: postgresUrl({
    default: null,
    secret: true,
    description:
      'URL of the PostgreSQL database to use. If not set, an embedded server runs in the data directory. Of several ' +
      'servers, `postgresql://a:5432,b:5432/platform`, the one that takes writes is used.',
  }),
  DATABASE_POOL_SIZE: integer({
    default: '10',
    min: 2,
    max: 200,
    description: 'Maximum number of PostgreSQL connections per process.',
  }),
  PLATFORM_POSTGRES_USER: text({
    default: 'nobody',
    description: 'Operating system user of the embedded database when the service runs as root.',
  }),
  PG_BIN: path({ default: null, description: 'Directory of the PostgreSQL programs for the embedded database.' }),
  HOST: listenHost({ default: '127.0.0.1', description: 'Address on which the API listens.' }),
  PORT: integer({
    default: '8080',
    min: 0,
    max: 65535,
    description: 'Port on which the API listens. 0 selects a free port.',
  }),
  BASE_URL: httpUrlSetting({
    default: null,
    derived: 'http://HOST:PORT',
    description: 'URL at which clients reach the API. It is used in problem documents and in the OpenAPI document.',
  }),
  HOST_URL: httpUrlSetting({
    default: null,
    description:
      'For API processes on other machines than the worker: the address of an API process that has its directories. ' +
      'Downloads of backups and, without FILE_STORE, uploads of sources are passed on to it.',
  }),
  ADMIN_HOST: listenHost({ default: '127.0.0.1', description: 'Address on which the metrics listen.' }),
  ADMIN_PORT: integer({
    default: '9090',
    min: 0,
    max: 65535,
    description: 'Port on which the metrics listen. 0 selects a free port.',
  }),
  CORS_ORIGINS: origins({
    default: '',
    description:
      'Origins of web pages that may call the API with a key, such as https://console.example.com. Cookies are ' +
      'never accepted from them.',
  }),
  TRUST_PROXY: integer({
    default: '0',
    min: 0,
    max: 10,
    description: 'Number of reverse proxies in front of the service whose X-Forwarded-For header is trusted.',
  }),
  SHUTDOWN_GRACE_SECONDS: integer({
    default: '25',
    min: 0,
    max: 600,
    description: 'Seconds that open requests have to finish when the service stops.',
  }),
  LOG_LEVEL: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
    default: 'info',
    description: 'Lowest level that is logged. On a terminal, requests are logged at debug.',
  }),
  WEB_CONCURRENCY: processCount({
    default: '1',
    max: 128,
    description:
      'Number of processes that serve the API. auto: one per core. Above 1, one more process does all other work.',
  }),
  WORKER: oneOf(['in_process', 'separate'], {
    default: 'in_process',
    description: 'Where background work is done: in this process, or in the processes of `npm run worker`.',
  }),
  PLATFORM_SECRET_KEY: secretKeys({
    default: null,
    secret: true,
    description:
      'Encryption key: 32 bytes in base64 or hex, or id:key,id:key (the first encrypts). Default: a generated key.',
  }),
  RATE_LIMIT_READ: integer({
    default: String(rates.read),
    min: 1,
    max: 10_000_000,
    description: 'Reads per account and minute.',
  }),
  RATE_LIMIT_WRITE: integer({
    default: String(rates.write),
    min: 1,
    max: 10_000_000,
    description: 'Writes per account and minute.',
  }),
  RATE_LIMIT_DEPLOY: integer({
    default: String(rates.deploy),
    min: 1,
    max: 10_000_000,
    description: 'Deployments per account and minute.',
  }),
  RATE_LIMIT_FAILED_AUTH: integer({
    default: String(limits.failedAuthPerMinute),
    min: 1,
    max: 10_000_000,
    description:
      'Per IP address and minute: failed authentications, and GraphQL queries without a key whose text is new.',
  }),
  RATE_LIMIT_STORE: oneOf(['memory', 'postgres'], {
    default: null,
    derived: 'memory; postgres where WEB_CONCURRENCY is above 1',
    description: 'Where calls are counted: memory for a single process, postgres for several processes.',
  }),
  QUOTAS: amounts(Object.keys(projectQuotas) as QuotaName[], {
    default: '{}',
    description:
      'Quotas of a project that differ from the defaults: {"volumes": 10, "databases": null}. null is no limit.',
  }),
  RETENTION_OF_DELETED_DAYS: integer({
    default: '7',
    min: 0,
    max: limits.activityRetentionDays,
    description: 'Days in which a deleted resource can be restored. 0: it is removed at once.',
  }),
  EVICT_DELETED_ABOVE_DISK_PERCENT: integer({
    default: null,
    derived: 'never',
    min: 1,
    max: 99,
    description:
      'When more than this part of the disk of PLATFORM_DATA_DIR is used, deleted resources are removed for good ' +
      'before their time, those deleted first before others.',
  }),
  DESTROYING_CALLS_PER_MINUTE: integer({
    default: '10',
    min: 1,
    max: 1_000_000,
    description:
      'Calls of one key within a minute that delete, or overwrite what cannot be made again. One more pauses the key ' +
      'until a person lets it go on. Raise it for programs that remove many resources at once.',
  }),
  OWNER_EMAIL: email({
    default: 'owner@example.com',
    description: 'E-mail address of the owner, who is created at the first start.',
  }),
  REGION_ID: slug({ default: 'local', description: 'Id of the region of this installation.' }),
  REGION_NAME: text({ default: 'Local', description: 'Name of the region.' }),
  REGION_LOCATION: text({ default: null, description: 'City and country of the region, such as `Frankfurt, DE`.' }),
};
