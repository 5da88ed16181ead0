// Settings of volumes, applications and databases.
import { cidrs, flag, httpUrlSetting, integer, ipv4Block, oneOf, portRange, text } from '../setting_types';

export const hostingSettings = {
  VOLUME_DRIVER: oneOf(['auto', 'directory', 'loop_image'], {
    default: 'auto',
    description:
      'Storage of volumes: directories (soft limit) or mounted images (hard limit). auto: images where possible.',
  }),
  APP_PORTS: portRange({
    default: '20000-29999',
    description: 'Ports of the loopback interface that are assigned to instances as PORT.',
  }),
  SANDBOX: oneOf(['auto', 'bubblewrap', 'none'], {
    default: 'auto',
    description: 'What isolates builds and instances from the files of the host. auto selects bubblewrap if it works.',
  }),
  NETWORK: oneOf(['auto', 'shared', 'isolated'], {
    default: 'auto',
    description:
      'Network of applications and databases. isolated: each project has its own. shared: all use that of the host. ' +
      'auto: isolated where the host can, else shared; docs/SECURITY.md says what it takes.',
  }),
  NETWORK_BLOCK: ipv4Block({
    default: '10.247.0.0/16',
    description: 'Private IPv4 addresses for networks of projects, four for each, when the service runs as root.',
  }),
  NETWORK_ALLOW: cidrs({
    default: '',
    description:
      'Addresses or CIDRs outside of the public Internet that applications in isolated networks may connect to.',
  }),
  TENANT_UID_BASE: integer({
    default: null,
    derived: '700000, or the first million of user ids that no other installation of this host has',
    min: 1000,
    max: 2_000_000_000,
    description: 'First user id for applications when the service runs as root. Each application has its own user id.',
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
    description: 'Disk limit of a build in megabytes. Each megabyte allows 128 files.',
  }),
  PREFERRED_NODE: oneOf(['long_term', 'host'], {
    default: 'long_term',
    description:
      'Node.js for applications whose source names no version. long_term: the newest long-term line from the npm ' +
      'registry, or the Node.js of the host if the registry cannot be reached. host: the Node.js of the host.',
  }),
  GO_PROXY: text({
    default: 'https://proxy.golang.org,direct',
    description: 'Proxies of Go modules for builds, as GOPROXY lists them. Go comes from the first that has it.',
  }),
  PREFERRED_PYTHON: oneOf(['newest', 'host'], {
    default: 'newest',
    description:
      'Python for applications whose source names no version. newest: the newest line (3.14), downloaded by uv, ' +
      'or the Python of the host if the download fails. host: the Python of the host; no Python is downloaded.',
  }),
  PYTHON_INDEX: httpUrlSetting({
    default: 'https://pypi.org/simple',
    description: 'Python package index (simple repository API) for uv and for the packages of builds.',
  }),
  PYTHON_MIRROR: httpUrlSetting({
    default: null,
    derived: 'GitHub',
    description: 'Mirror of https://github.com/astral-sh/python-build-standalone/releases/download.',
  }),
  SOURCE_SIZE_MB: integer({
    default: '1024',
    min: 1,
    max: 1_048_576,
    description: 'Maximum size of a repository in megabytes.',
  }),
  DATABASE_PORTS: portRange({
    default: '30000-30999',
    description: 'Ports for databases, replicas and pooled endpoints.',
  }),
  ALLOW_HTTP_GIT: flag({ default: '0', description: 'Allows Git URLs with http.' }),
  ALLOW_LOCAL_GIT: flag({ default: '0', description: 'Allows Git URLs of directories on this machine (file).' }),
  ALLOW_PRIVATE_ADDRESSES: flag({
    default: '0',
    description: 'Allows users to enter addresses in private networks.',
  }),
};
