// compose.yaml: the services of a Compose file as applications and databases.
import { readDotenv } from './dotenv';
import { childNodesOf, nodeEntries, peek, take, textsOf, type Node } from './node';
import { note, openText, pathFrom, report, type ImportRun } from './run';
import { expand, interpolate } from './compose/interpolation';
import { loadCompose } from './compose/load';
import { knownImage, type KnownImage } from './images';
import { readApplication } from './compose/service';
import { readDatabase } from './compose/database';
import type { Reachable } from './variables';
import type { Reasons } from './sweep';

export interface Service {
  name: string;
  node: Node;
  known: KnownImage | null;
}

export function importCompose(run: ImportRun, path: string): void {
  const root = loadCompose(run, path);
  if (!root) return;
  run.roots.push(root);
  run.environment = environmentOf(run, path);
  interpolate(run, root, (name) => run.environment.get(name));
  noteOverride(run, path);
  const services = activeServices(run, root);
  for (const { node } of services) noteUnset(run, node);
  take(root, 'name');
  take(root, 'version');
  const volumes = take(root, 'volumes');
  const databases = services.flatMap(({ name, node, known }): Reachable[] =>
    known?.is === 'database' ? readDatabase(run, name, node, known) : [],
  );
  const applications = services.filter(({ known }) => known === null);
  const names = new Set(services.map(({ name }) => name));
  for (const { name, node } of applications) readApplication(run, root, { name, node }, { databases, services: names });
  for (const { name, node, known } of services)
    if (known && known.is !== 'database') reportServer(run, name, node, known);
  for (const [, volume] of nodeEntries(volumes)) for (const [, one] of nodeEntries(volume)) reportOption(run, one);
  for (const section of ['networks', 'secrets', 'configs', 'models'] as const)
    for (const [, one] of nodeEntries(take(root, section))) report(run, one, ...SECTIONS[section]);
}

/** `docker compose` reads a second file by itself, which mostly changes the first for development. */
function noteOverride(run: ImportRun, path: string): void {
  const [, stem, end] = /^((?:.*\/)?(?:docker-)?compose)\.(ya?ml)$/.exec(path) ?? [];
  if (stem === undefined) return;
  const other = `${stem}.override.${end}`;
  if (openText(run, other) !== undefined)
    note(run, { file: other, line: 1, path: '' }, 'A file that overrides is not read.', `include it in ${path}`);
}

/** Variables without a value; those of the environment are set elsewhere. */
function noteUnset(run: ImportRun, node: Node): void {
  if (node.unset) note(run, node, `${node.unset.join(', ')} has no value here, so it is empty.`, 'A value in .env');
  for (const one of childNodesOf(node)) if (!/\.(environment|args)$/.test(one.path)) noteUnset(run, one);
}

const SECTIONS: Readonly<Record<'networks' | 'secrets' | 'configs' | 'models', readonly [string, string]>> = {
  networks: ['All of a project is in one network of its own.', 'A project of its own.'],
  secrets: ['There are no files of secrets.', 'A variable, with svc env set.'],
  configs: ['There are no files beside the source.', 'COPY in the Dockerfile, or a variable.'],
  models: ['There are no models of Compose.', 'The AI models of the platform.'],
};

function reportOption(run: ImportRun, node: Node): void {
  report(run, node, 'Volumes of the platform have a size, and no options.', 'volumes: { …: { size_gb } }');
}

/** `.env` beside the file, of which later lines may name earlier ones. */
function environmentOf(run: ImportRun, path: string): Map<string, string> {
  const values = new Map<string, string>();
  const text = openText(run, pathFrom(path, '.env') as string);
  for (const { key, value, isLiteral } of text === undefined ? [] : readDotenv(text))
    values.set(key, isLiteral ? value : (expand(value, (name) => values.get(name))?.text ?? ''));
  return values;
}

function activeServices(run: ImportRun, root: Node): Service[] {
  const services: Service[] = [];
  for (const [name, node] of nodeEntries(take(root, 'services'))) {
    const profiles = textsOf(take(node, 'profiles')) ?? [];
    if (profiles.length && !profiles.some((profile) => run.profiles.has(profile))) {
      const [first] = profiles;
      report(run, node, `The service has the profile ${first}.`, `svc import --profile ${first}`);
      continue;
    }
    const image = peek(node, 'image');
    const known = peek(node, 'build') ? null : knownImage(image?.is === 'scalar' ? image.source : '');
    services.push({ name, node, known });
  }
  return services;
}

function reportServer(run: ImportRun, name: string, node: Node, { is }: KnownImage): void {
  if (is === 'object_storage')
    return report(run, node, `${name} stores objects, which buckets do here.`, 'buckets, with keys of their own');
  report(
    run,
    node,
    `Only programs that answer HTTP are reached by others, and the platform has no databases of this engine.`,
    'A server elsewhere, with its address in a variable.',
  );
}

const HOST = ['No application has rights on the host.', 'Nothing: run this outside of the platform.'] as const;
const NETWORK = ['All of a project is in one network of its own.', 'A project of its own.'] as const;
const LIMIT = ['The size of the application limits this.', 'application_type'] as const;
const IMAGE = ['The image says this.', 'The Dockerfile.'] as const;
const LOGS = ['Lines of output are in the log of the application.', 'log_retention_days'] as const;

export const COMPOSE_REASONS: Reasons = {
  ...{ privileged: HOST, cap_add: HOST, devices: HOST, device_cgroup_rules: HOST, pid: HOST, ipc: HOST, uts: HOST },
  ...{ userns_mode: HOST, cgroup: HOST, cgroup_parent: HOST, runtime: HOST, gpus: HOST, sysctls: HOST },
  ...{ use_api_socket: HOST, isolation: HOST, security_opt: HOST, credential_spec: HOST, volumes_from: HOST },
  cap_drop: ['Applications have no capabilities of the host anyway.'],
  ...{ network_mode: NETWORK, networks: NETWORK, dns: NETWORK, dns_search: NETWORK, extra_hosts: NETWORK },
  ...{ links: NETWORK, external_links: NETWORK, mac_address: NETWORK, hostname: NETWORK, domainname: NETWORK },
  ...{ mem_limit: LIMIT, memswap_limit: LIMIT, mem_swappiness: LIMIT, cpu_shares: LIMIT, cpuset: LIMIT },
  ...{ ulimits: LIMIT, pids_limit: LIMIT, shm_size: LIMIT, oom_kill_disable: LIMIT, oom_score_adj: LIMIT },
  ...{ blkio_config: LIMIT, cpu_quota: LIMIT, cpu_period: LIMIT, storage_opt: LIMIT, mem_reservation: LIMIT },
  ...{ user: IMAGE, working_dir: IMAGE, group_add: IMAGE, stop_signal: IMAGE, platform: IMAGE },
  ...{ logging: LOGS, log_driver: LOGS, log_opt: LOGS, attach: LOGS },
  container_name: ['Instances have ids, and applications the name of the service.'],
  labels: ['Applications have no labels.', 'domains and settings.http, for what a proxy reads from labels.'],
  annotations: ['Applications have no labels.'],
  depends_on: ['Applications start in any order, and are restarted until what they need is there.'],
  restart: ['Instances are always restarted.', 'A command that ends is a run, a release_command or a schedule.'],
  ...{ tty: ['Instances have no terminal.', 'svc exec'], stdin_open: ['Instances have no terminal.', 'svc exec'] },
  init: ['The platform reaps processes anyway.'],
  ...{ read_only: ['Files of an instance can be written, and are lost with it.'], tmpfs: ['/tmp is there anyway.'] },
  pull_policy: ['An image is pulled when it is deployed.'],
  develop: ['This is for development.', 'docker compose watch'],
  secrets: ['There are no files of secrets.', 'A variable, with svc env set.'],
  configs: ['There are no files beside the source.', 'COPY in the Dockerfile, or a variable.'],
  deploy: ['The platform deploys by itself.', 'processes.web.instances and application_type'],
  ports: ['Databases have endpoints of their own.', 'svc db url'],
  expose: ['Databases have endpoints of their own.'],
  command: ['The platform sets how databases run.', 'database_package'],
  entrypoint: ['The platform sets how databases run.', 'database_package'],
  build: ['The platform builds no databases.'],
  args: ['A build has the variables of the application that an ARG names.', 'variables'],
  cache_from: ['The platform keeps its own cache of builds.'],
  cache_to: ['The platform keeps its own cache of builds.'],
  healthcheck: ['A health check is a request to a path, or a connection to the port.', 'settings.health_check'],
};
