// Every setting of the program. Read once at the start by core/config.ts; `npm start -- --help` prints this table.
import { limits, projectQuotas, type QuotaName } from './limits';
import {
  addresses,
  amounts,
  email,
  flag,
  hostname,
  httpUrl,
  integer,
  listenHost,
  oneOf,
  path,
  portRange,
  postgresUrl,
  processCount,
  resolvers,
  secretKeys,
  slug,
  text,
} from './setting_types';

const rates = limits.rateBudgetsPerMinute;

export const settings = {
  PLATFORM_DATA_DIR: path({
    default: './data',
    defaultAsRoot: '/var/lib/platform-api',
    description: 'Where the embedded database, the secret key and the first key are kept.',
  }),

  DATABASE_URL: postgresUrl({
    default: null,
    secret: true,
    description: 'The PostgreSQL server to use. Not set: an embedded one runs in the data directory.',
  }),
  DATABASE_POOL_SIZE: integer({
    default: '10',
    min: 2,
    max: 200,
    description: 'Connections to PostgreSQL that a process keeps at most.',
  }),
  PLATFORM_POSTGRES_USER: text({
    default: 'nobody',
    description: 'User of the operating system that the embedded database runs as when the program runs as root.',
  }),
  PG_BIN: path({ default: null, description: 'Folder of the PostgreSQL programs to use for the embedded database.' }),

  HOST: listenHost({ default: '127.0.0.1', description: 'Address that the API listens on.' }),
  PORT: integer({
    default: '8080',
    min: 0,
    max: 65535,
    description: 'Port that the API listens on; 0 takes a free one.',
  }),
  BASE_URL: httpUrl({
    default: null,
    derived: 'http://HOST:PORT',
    description: 'Address under which clients reach the API. Problem documents and the OpenAPI description carry it.',
  }),
  ADMIN_HOST: listenHost({ default: '127.0.0.1', description: 'Address that the metrics listen on.' }),
  ADMIN_PORT: integer({
    default: '9090',
    min: 0,
    max: 65535,
    description: 'Port that the metrics listen on; 0 takes a free one.',
  }),
  TRUST_PROXY: integer({
    default: '0',
    min: 0,
    max: 10,
    description: 'Number of reverse proxies in front whose X-Forwarded-For is believed.',
  }),
  SHUTDOWN_GRACE_SECONDS: integer({
    default: '25',
    min: 0,
    max: 600,
    description: 'How long a stopping process lets open requests finish.',
  }),
  LOG_LEVEL: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
    default: 'info',
    description: 'Least level that is logged.',
  }),
  WEB_CONCURRENCY: processCount({
    default: '1',
    max: 128,
    description:
      'Processes of `npm start` that serve the API; auto = one for each core. With more than one, a further one does everything else.',
  }),
  WORKER: oneOf(['in_process', 'separate'], {
    default: 'in_process',
    description: 'Where the work behind the answers is done: in this process, or in those of `npm run worker`.',
  }),

  WORKER_CONCURRENCY: integer({
    default: '4',
    min: 1,
    max: 100,
    description: 'Pieces of work that one process does at a time.',
  }),

  PLATFORM_SECRET_KEY: secretKeys({
    default: null,
    secret: true,
    description:
      'Key that seals secrets in the database: 32 bytes in base64 or hex, or a list id:key,id:key whose first one seals. Not set: made in the data directory.',
  }),

  RATE_LIMIT_READ: integer({
    default: String(rates.read),
    min: 1,
    max: 10_000_000,
    description: 'Reads of one account a minute.',
  }),
  RATE_LIMIT_WRITE: integer({
    default: String(rates.write),
    min: 1,
    max: 10_000_000,
    description: 'Writes of one account a minute.',
  }),
  RATE_LIMIT_DEPLOY: integer({
    default: String(rates.deploy),
    min: 1,
    max: 10_000_000,
    description: 'Deployments of one account a minute.',
  }),
  RATE_LIMIT_FAILED_AUTH: integer({
    default: String(limits.failedAuthPerMinute),
    min: 1,
    max: 10_000_000,
    description: 'Failed authentications of one address a minute.',
  }),
  RATE_LIMIT_STORE: oneOf(['memory', 'postgres'], {
    default: null,
    derived: 'memory; postgres where WEB_CONCURRENCY is above 1',
    description: 'Where calls are counted: memory for one process, postgres for several.',
  }),
  QUOTAS: amounts(Object.keys(projectQuotas) as QuotaName[], {
    default: '{}',
    description:
      'Limits of a project that differ from the built-in ones, {"volumes": 10, "databases": null}; null = none.',
  }),

  OWNER_EMAIL: email({
    default: 'owner@example.com',
    description: 'E-mail address of the owner account that the first start makes.',
  }),
  REGION_ID: slug({ default: 'local', description: 'Id of the one region that this installation is.' }),
  REGION_NAME: text({ default: 'Local', description: 'Its name.' }),
  REGION_COUNTRY: text({ default: null, description: 'Its country, as shown in the catalog of regions.' }),
  REGION_CITY: text({ default: null, description: 'Its city, as shown in the catalog of regions.' }),

  APPS_DOMAIN: hostname({
    default: 'localhost',
    description: 'Domain below which every application gets its default host name.',
  }),
  INGRESS_HOST: hostname({
    default: null,
    derived: 'ingress. and APPS_DOMAIN',
    description: 'Name that custom domains point to with a CNAME.',
  }),
  INGRESS_LISTEN: listenHost({
    default: '127.0.0.1',
    description: 'Address that the ingress, the listener in front of the applications, listens on.',
  }),
  INGRESS_PORT: integer({
    default: '8000',
    min: 0,
    max: 65535,
    description:
      'Port that the ingress listens on; 0 takes a free one. The process that has it runs the applications, others stand by.',
  }),
  INGRESS_TLS_PORT: integer({
    default: null,
    min: 0,
    max: 65535,
    description: 'Port that the ingress listens on with TLS; 0 takes a free one. Not set: no TLS.',
  }),
  INGRESS_IPS: addresses({
    default: '',
    derived: 'those of INGRESS_HOST',
    description: 'Addresses that custom domains at an apex point to with A and AAAA.',
  }),
  DNS_RESOLVERS: resolvers({
    default: '',
    derived: "the system's",
    description: 'Resolvers that are asked when a domain is verified.',
  }),

  VOLUME_DRIVER: oneOf(['auto', 'directory', 'loop_image'], {
    default: 'auto',
    description:
      'How volumes are kept: directories (soft limit) or mounted images (hard limit). auto takes images where the process may mount.',
  }),
  VOLUME_DIR: path({ default: null, derived: 'volumes in the data directory', description: 'Where volumes are kept.' }),

  RUNTIME_DIR: path({
    default: null,
    derived: 'runtime in the data directory',
    description: 'Where sources, builds and running instances are kept.',
  }),
  APP_PORTS: portRange({
    default: '20000-29999',
    description: 'Ports of the loopback interface that instances get as PORT.',
  }),
  SANDBOX: oneOf(['auto', 'bubblewrap', 'none'], {
    default: 'auto',
    description:
      'What separates builds and instances from the files of the host. auto takes bubblewrap where it works.',
  }),
  TENANT_UID_BASE: integer({
    default: '700000',
    min: 1000,
    max: 2_000_000_000,
    description: 'As root, each application runs as a user of its own: this number and the number of the application.',
  }),
  BUILD_CONCURRENCY: integer({
    default: '2',
    min: 1,
    max: 64,
    description: 'Builds and releases at a time on this host.',
  }),
  BUILD_TIMEOUT_SECONDS: integer({
    default: '1800',
    min: 1,
    max: 86_400,
    description: 'Time for a deployment from its start to its first healthy instance.',
  }),
  BUILD_MEMORY_MB: integer({ default: '2048', min: 64, max: 1_048_576, description: 'Memory that a build may take.' }),
  BUILD_DISK_MB: integer({
    default: '4096',
    min: 16,
    max: 1_048_576,
    description: 'Size that the files of a build may reach.',
  }),
  BUILD_OUTPUT_MB: integer({
    default: '16',
    min: 1,
    max: 1024,
    description: 'Output of a build after which it is ended.',
  }),
  SOURCE_SIZE_MB: integer({ default: '1024', min: 1, max: 1_048_576, description: 'Size that a repository may have.' }),
  GIT_POLL_SECONDS: integer({
    default: '60',
    min: 1,
    max: 86_400,
    description: 'How often the branch of an application with auto-deploy is asked for its head.',
  }),
  ACME_DIRECTORY: httpUrl({
    default: null,
    description:
      'Directory of the certificate authority (RFC 8555) that certificates of custom domains come from; setting it accepts its terms of service. Not set: no certificates.',
  }),
  ACME_EMAIL: email({ default: null, description: 'Address that the certificate authority writes to.' }),
  ACME_CA_FILE: path({
    default: null,
    description:
      'File with roots (PEM) to trust at ACME_DIRECTORY besides the usual ones, for an authority of your own.',
  }),
  INGRESS_CERT_FILE: path({
    default: null,
    description:
      'Certificate chain (PEM) of *.APPS_DOMAIN that the ingress serves for default host names. Read again when it changes.',
  }),
  INGRESS_KEY_FILE: path({ default: null, description: 'Its private key (PEM).' }),

  DATABASE_DIR: path({
    default: null,
    derived: 'databases in the data directory',
    description: 'Where the data of managed databases and their backups are kept.',
  }),
  DATABASE_PORTS: portRange({
    default: '30000-30999',
    description: 'Ports that databases, their replicas and their pooled endpoints get.',
  }),
  OPERATION_WAIT_SECONDS: integer({
    default: String(limits.operationWaitMs / 1000),
    min: 0,
    max: 60,
    description: 'How long the answer to a new password waits for the server to have it.',
  }),

  ALLOW_HTTP_GIT: flag({ default: '0', description: 'Git addresses may be http without TLS.' }),
  ALLOW_LOCAL_GIT: flag({ default: '0', description: 'Git addresses may be folders of this machine (file).' }),
  ALLOW_PRIVATE_ADDRESSES: flag({
    default: '0',
    description: 'Addresses that users give may lead into private networks.',
  }),
};
