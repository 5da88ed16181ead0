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
    description: 'Directory of the embedded database, the secret key and the first API key.',
  }),

  DATABASE_URL: postgresUrl({
    default: null,
    secret: true,
    description: 'URL of the PostgreSQL database to use. If not set, an embedded server runs in the data directory.',
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
  BASE_URL: httpUrl({
    default: null,
    derived: 'http://HOST:PORT',
    description: 'URL at which clients reach the API. It is used in problem documents and in the OpenAPI document.',
  }),
  ADMIN_HOST: listenHost({ default: '127.0.0.1', description: 'Address on which the metrics listen.' }),
  ADMIN_PORT: integer({
    default: '9090',
    min: 0,
    max: 65535,
    description: 'Port on which the metrics listen. 0 selects a free port.',
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
    description: 'Lowest level that is logged.',
  }),
  WEB_CONCURRENCY: processCount({
    default: '1',
    max: 128,
    description:
      'Number of processes that serve the API with `npm start`. auto is one per core. With more than one, an additional process does all other work.',
  }),
  WORKER: oneOf(['in_process', 'separate'], {
    default: 'in_process',
    description: 'Where background work is done: in this process, or in the processes of `npm run worker`.',
  }),

  WORKER_CONCURRENCY: integer({
    default: '4',
    min: 1,
    max: 100,
    description: 'Number of background jobs that a process runs at the same time.',
  }),

  PLATFORM_SECRET_KEY: secretKeys({
    default: null,
    secret: true,
    description:
      'Key that encrypts the secrets in the database: 32 bytes in base64 or hex, or a list id:key,id:key of which the first key encrypts. If not set, a key is created in the data directory.',
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
    description: 'Failed authentications per IP address and minute.',
  }),
  RATE_LIMIT_STORE: oneOf(['memory', 'postgres'], {
    default: null,
    derived: 'memory; postgres where WEB_CONCURRENCY is above 1',
    description: 'Where calls are counted: memory for a single process, postgres for several processes.',
  }),
  QUOTAS: amounts(Object.keys(projectQuotas) as QuotaName[], {
    default: '{}',
    description:
      'Quotas of a project that differ from the defaults, as JSON: {"volumes": 10, "databases": null}. null is no limit.',
  }),

  OWNER_EMAIL: email({
    default: 'owner@example.com',
    description: 'E-mail address of the owner, who is created at the first start.',
  }),
  REGION_ID: slug({ default: 'local', description: 'Id of the region of this installation.' }),
  REGION_NAME: text({ default: 'Local', description: 'Name of the region.' }),
  REGION_COUNTRY: text({ default: null, description: 'Country of the region.' }),
  REGION_CITY: text({ default: null, description: 'City of the region.' }),

  APPS_DOMAIN: hostname({
    default: 'localhost',
    description: 'Domain below which applications get their default host names.',
  }),
  INGRESS_HOST: hostname({
    default: null,
    derived: 'ingress. and APPS_DOMAIN',
    description: 'Host name to which the CNAME records of custom domains point.',
  }),
  INGRESS_LISTEN: listenHost({
    default: '127.0.0.1',
    description: 'Address on which the ingress, the router in front of the applications, listens.',
  }),
  INGRESS_PORT: integer({
    default: '8000',
    min: 0,
    max: 65535,
    description:
      'Port on which the ingress listens. 0 selects a free port. The process that holds the port runs the applications, all others stand by.',
  }),
  INGRESS_TLS_PORT: integer({
    default: null,
    min: 0,
    max: 65535,
    description:
      'Port on which the ingress listens with TLS. 0 selects a free port. If not set, the ingress has no TLS.',
  }),
  INGRESS_IPS: addresses({
    default: '',
    derived: 'those of INGRESS_HOST',
    description: 'IP addresses to which the A and AAAA records of custom domains at an apex point.',
  }),
  DNS_RESOLVERS: resolvers({
    default: '',
    derived: "the system's",
    description: 'DNS resolvers for the verification of domains.',
  }),

  VOLUME_DRIVER: oneOf(['auto', 'directory', 'loop_image'], {
    default: 'auto',
    description:
      'How volumes are stored: in directories (soft limit) or in mounted images (hard limit). auto selects images if the service may mount them.',
  }),
  VOLUME_DIR: path({
    default: null,
    derived: 'volumes in the data directory',
    description: 'Directory of the volumes.',
  }),

  RUNTIME_DIR: path({
    default: null,
    derived: 'runtime in the data directory',
    description: 'Directory of sources, builds and running instances.',
  }),
  APP_PORTS: portRange({
    default: '20000-29999',
    description: 'Ports of the loopback interface that are assigned to instances as PORT.',
  }),
  SANDBOX: oneOf(['auto', 'bubblewrap', 'none'], {
    default: 'auto',
    description: 'What isolates builds and instances from the files of the host. auto selects bubblewrap if it works.',
  }),
  TENANT_UID_BASE: integer({
    default: '700000',
    min: 1000,
    max: 2_000_000_000,
    description:
      'When the service runs as root, the first of the user ids as which applications run. Each application has its own.',
  }),
  BUILD_CONCURRENCY: integer({
    default: '2',
    min: 1,
    max: 64,
    description: 'Number of builds and releases that run at the same time.',
  }),
  BUILD_TIMEOUT_SECONDS: integer({
    default: '1800',
    min: 1,
    max: 86_400,
    description: 'Seconds that a deployment may take from its start until its instances are healthy.',
  }),
  BUILD_MEMORY_MB: integer({
    default: '2048',
    min: 64,
    max: 1_048_576,
    description: 'Memory limit of a build in megabytes.',
  }),
  BUILD_DISK_MB: integer({
    default: '4096',
    min: 16,
    max: 1_048_576,
    description: 'Disk limit of a build in megabytes.',
  }),
  BUILD_OUTPUT_MB: integer({
    default: '16',
    min: 1,
    max: 1024,
    description: 'Output in megabytes after which a build is stopped.',
  }),
  SOURCE_SIZE_MB: integer({
    default: '1024',
    min: 1,
    max: 1_048_576,
    description: 'Maximum size of a repository in megabytes.',
  }),
  GIT_POLL_SECONDS: integer({
    default: '60',
    min: 1,
    max: 86_400,
    description: 'Seconds between two checks of the branch of an application with auto-deploy.',
  }),
  ACME_DIRECTORY: httpUrl({
    default: null,
    description:
      'ACME directory (RFC 8555) of the certificate authority for custom domains. By setting it, you accept its terms of service. If not set, no certificates are requested.',
  }),
  ACME_EMAIL: email({ default: null, description: 'E-mail address for messages of the certificate authority.' }),
  ACME_CA_FILE: path({
    default: null,
    description:
      'File with additional root certificates (PEM) to trust at ACME_DIRECTORY, for a private certificate authority.',
  }),
  INGRESS_CERT_FILE: path({
    default: null,
    description: 'File with the certificate chain (PEM) for *.APPS_DOMAIN. It is reloaded when it changes.',
  }),
  INGRESS_KEY_FILE: path({ default: null, description: 'File with the private key (PEM) of INGRESS_CERT_FILE.' }),

  DATABASE_DIR: path({
    default: null,
    derived: 'databases in the data directory',
    description: 'Directory of managed databases and their backups.',
  }),
  DATABASE_PORTS: portRange({
    default: '30000-30999',
    description: 'Ports for databases, replicas and pooled endpoints.',
  }),
  OPERATION_WAIT_SECONDS: integer({
    default: String(limits.operationWaitMs / 1000),
    min: 0,
    max: 60,
    description: 'Seconds that the response to a password rotation waits for the database server to apply it.',
  }),

  ALLOW_HTTP_GIT: flag({ default: '0', description: 'Allows Git URLs with http.' }),
  ALLOW_LOCAL_GIT: flag({ default: '0', description: 'Allows Git URLs of directories on this machine (file).' }),
  ALLOW_PRIVATE_ADDRESSES: flag({
    default: '0',
    description: 'Allows users to enter addresses in private networks.',
  }),
};
