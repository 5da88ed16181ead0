// .do/app.yaml: the components of an app spec as applications and databases.
import {
  addApplication,
  addDatabase,
  addDomain,
  addSchedule,
  makeWorker,
  processFieldsOf,
  relativePath,
  setDatabaseName,
  setDockerfile,
  setImage,
  setInstances,
  setPort,
  setBuildCommand,
  setReleaseCommand,
  setRepository,
  setSetting,
  setSizeOf,
  takeCommand,
} from './application';
import { setHealthNumbers, setHealthPath } from './health';
import { engineOf } from './images';
import { itemsOf, numberOf, peek, scalarAt, take, takeAll, nodeText, type Node } from './node';
import { note, openFile, report, type Application, type ImportRun } from './run';
import { attach, setVariable, type Part } from './variables';
import type { Reasons } from './sweep';

interface Spec {
  run: ImportRun;
  /** Names here of databases there. */
  databases: Map<string, string>;
  /** Variables of all components. */
  shared: Node[];
}

export function importDigitalOcean(run: ImportRun, path: string): void {
  const file = openFile(run, path);
  if (!file) return;
  run.roots.push(file);
  // A template for a button has the app below `spec`.
  const root = take(file, 'spec') ?? file;
  take(root, 'name');
  const spec: Spec = { run, databases: new Map(), shared: itemsOf(take(root, 'envs')) };
  for (const database of itemsOf(take(root, 'databases'))) readDatabase(spec, database);
  const found: Application[] = [];
  for (const node of itemsOf(take(root, 'services'))) found.push(readService(spec, node));
  for (const node of itemsOf(take(root, 'static_sites'))) found.push(readSite(spec, node));
  for (const node of itemsOf(take(root, 'workers'))) readWorker(spec, node);
  for (const node of itemsOf(take(root, 'jobs'))) readJob(spec, node, found[0]);
  for (const node of itemsOf(take(root, 'functions')))
    report(run, node, 'There are no functions.', 'An application that answers HTTP.');
  for (const domain of itemsOf(take(root, 'domains'))) readDomain(spec, domain, found[0]);
  if (found.length > 1)
    for (const rule of itemsOf(take(root, 'ingress', 'rules')))
      report(run, rule, 'Each application has host names of its own, not paths.', 'domains');
}

function readDatabase({ run, databases }: Spec, node: Node): void {
  const name = nodeText(take(node, 'name')) ?? 'db';
  const given = take(node, 'engine');
  const engine = engineOf(nodeText(given) ?? 'PG');
  if (!engine) return report(run, node, 'The platform has no databases of this engine.', 'A server elsewhere.');
  const found = addDatabase(run, { original: name, engine, version: nodeText(take(node, 'version')) }, node);
  if (found === null) return takeAll(node);
  databases.set(name, found);
  const databaseName = nodeText(take(node, 'db_name'));
  if (databaseName !== null) setDatabaseName(run, found, databaseName, node);
  if (peek(node, 'cluster_name'))
    note(run, node, 'The database is a new one, not that of the cluster.', 'svc db import');
}

function readComponent(spec: Spec, node: Node): Application {
  const { run } = spec;
  const application = addApplication(run, nodeText(take(node, 'name')) ?? 'app', node);
  readSource(run, application, node);
  const own = itemsOf(take(node, 'envs'));
  const keys = own.map((one) => nodeText(peek(one, 'key')));
  for (const variable of spec.shared)
    if (!keys.includes(nodeText(peek(variable, 'key')))) readVariable(spec, application, variable);
  for (const variable of own) readVariable(spec, application, variable);
  const size = take(node, 'instance_size_slug');
  if (size) readSize(run, application, size);
  return application;
}

function readSource(run: ImportRun, application: Application, node: Node): void {
  const [image, git] = [take(node, 'image'), take(node, 'git')];
  const host = ['github', 'gitlab', 'bitbucket'].find((name) => peek(node, name) !== undefined);
  if (image) readImage(run, application, image);
  else if (git) setRepository(run, application, take(git, 'repo_clone_url'), take(git, 'branch'));
  else if (host) {
    const hosted = take(node, host);
    const repository = take(hosted, 'repo');
    const domain = host === 'bitbucket' ? 'bitbucket.org' : `${host}.com`;
    const address = repository && scalarAt(repository, `https://${domain}/${nodeText(repository)}.git`);
    setRepository(run, application, address, take(hosted, 'branch'));
  } else setRepository(run, application, undefined, undefined);
  const folder = relativePath(run, take(node, 'source_dir'));
  if (folder && folder !== '.') setSetting(application, 'build', 'root_directory', folder);
  const dockerfile = relativePath(run, take(node, 'dockerfile_path'));
  // Its path is that of the repository.
  const below = folder && folder !== '.' ? `${folder}/` : '';
  if (dockerfile)
    setDockerfile(run, application, { path: dockerfile.slice(dockerfile.startsWith(below) ? below.length : 0) });
  const build = take(node, 'build_command');
  if (!dockerfile) setBuildCommand(run, application, build);
  else if (build) takeAll(build);
}

function readImage(run: ImportRun, application: Application, image: Node): void {
  const type = nodeText(take(image, 'registry_type'));
  const [registry, repository, tag] = ['registry', 'repository', 'tag'].map((key) => nodeText(take(image, key)));
  const host = type === 'DOCR' ? 'registry.digitalocean.com' : type === 'GHCR' ? 'ghcr.io' : 'docker.io';
  const name = [host, registry ?? (host === 'docker.io' ? 'library' : null), repository].filter(Boolean).join('/');
  setImage(run, application, `${name}:${tag ?? 'latest'}`, image);
}

const MEGABYTES: Readonly<Record<string, number>> = { xxs: 512, xs: 1_024, s: 2_048, m: 4_096, l: 8_192 };

/** `apps-s-1vcpu-0.5gb`, `basic-xxs`, `professional-m`. */
function readSize(run: ImportRun, application: Application, node: Node): void {
  const text = nodeText(node) ?? '';
  const [, cpus, gigabytes] = /(\d+)vcpu-([\d.]+)gb/.exec(text) ?? [];
  const megabytes = gigabytes ? Number(gigabytes) * 1_024 : MEGABYTES[text.split('-').at(-1) ?? ''];
  if (megabytes === undefined) return report(run, node, 'There is no such size here.', 'application_type');
  const isOwn = text.includes('-d-') || text.startsWith('professional');
  setSizeOf(run, application, { megabytes, cpus: isOwn && cpus ? Number(cpus) : null }, node);
}

function readService(spec: Spec, node: Node): Application {
  const { run } = spec;
  const application = readComponent(spec, node);
  const web = processFieldsOf(application, 'web');
  takeCommand(run, web, take(node, 'run_command'));
  const scaling = take(node, 'autoscaling');
  if (scaling) readScaling(web, scaling);
  else setInstances(run, web, take(node, 'instance_count'));
  setPort(run, application, take(node, 'http_port'));
  const health = take(node, 'health_check');
  setHealthPath(run, application, take(health, 'http_path'));
  const numbers = { interval: take(health, 'period_seconds'), timeout: take(health, 'timeout_seconds') };
  setHealthNumbers(run, application, {
    ...{ ...numbers, threshold: take(health, 'failure_threshold'), grace: take(health, 'initial_delay_seconds') },
  });
  const grace = numberOf(take(node, 'termination', 'grace_period_seconds'));
  if (grace !== null) setSetting(application, 'run', 'shutdown_grace_seconds', Math.min(300, grace));
  readRoutes(run, node);
  return application;
}

function readScaling(web: Map<string, unknown>, scaling: Node): void {
  const least = numberOf(take(scaling, 'min_instance_count')) ?? 1;
  const most = numberOf(take(scaling, 'max_instance_count')) ?? least;
  const target = numberOf(take(scaling, 'metrics', 'cpu', 'percent')) ?? 80;
  const limits: [string, unknown][] = [
    ['min_instances', Math.max(1, least)],
    ['max_instances', Math.min(10, Math.max(1, least, most))],
    ['metric', 'cpu'],
    ['target', target],
  ];
  web.set('autoscaling', new Map(limits));
}

function readRoutes(run: ImportRun, node: Node): void {
  for (const route of itemsOf(take(node, 'routes'))) {
    const path = take(route, 'path');
    if (path && nodeText(path) !== '/')
      report(run, path, 'Each application has host names of its own, not paths.', 'domains');
  }
}

function readSite(spec: Spec, node: Node): Application {
  const { run } = spec;
  const application = readComponent(spec, node);
  const output = relativePath(run, take(node, 'output_dir'));
  if (output) setSetting(application, 'build', 'output_directory', output);
  const index = peek(node, 'index_document');
  if (index?.is === 'scalar' && index.source === 'index.html') take(node, 'index_document');
  readRoutes(run, node);
  return application;
}

function readWorker(spec: Spec, node: Node): void {
  const application = readComponent(spec, node);
  const worker = makeWorker(application);
  takeCommand(spec.run, worker, take(node, 'run_command'));
  setInstances(spec.run, worker, take(node, 'instance_count'));
}

function readJob(spec: Spec, node: Node, first: Application | undefined): void {
  const { run } = spec;
  const kind = nodeText(take(node, 'kind')) ?? 'UNSPECIFIED';
  const cron = take(node, 'schedule', 'cron');
  if (kind === 'PRE_DEPLOY' && first && !first.settings.get('run')?.has('release_command')) {
    takeAll(node);
    setReleaseCommand(run, first, peek(node, 'run_command'));
    return note(run, node, `The job is the release command of ${first.name}, with its files.`, 'run.release_command');
  }
  if (!cron) return report(run, node, 'Jobs run before a release or at certain times.', 'svc run');
  const application = readComponent(spec, node);
  processFieldsOf(application, 'web').set('instances', 0);
  const zone = nodeText(take(node, 'schedule', 'time_zone'));
  addSchedule(run, application, { name: application.name, cron, command: nodeText(take(node, 'run_command')) });
  if (zone && zone !== 'UTC') note(run, node, 'The times are those of UTC.', 'schedules.….time_zone');
}

function readDomain({ run }: Spec, node: Node, first: Application | undefined): void {
  const name = node.is === 'map' ? take(node, 'domain') : node;
  take(node, 'type');
  if (!first || !name) return report(run, node, 'No application answers for this host name.', 'domains');
  const wildcard = nodeText(take(node, 'wildcard')) === 'true';
  addDomain(run, first, nodeText(name) ?? '', name);
  if (wildcard) addDomain(run, first, `*.${nodeText(name)}`, name);
}

const PARTS: ReadonlyMap<string, Part> = new Map([
  ...([
    ['DATABASE_URL', 'url'],
    ['PUBLIC_URL', 'url'],
    ['REDIS_URL', 'url'],
    ['HOSTNAME', 'host'],
  ] as const),
  ...([
    ['PORT', 'port'],
    ['USERNAME', 'user'],
    ['PASSWORD', 'password'],
    ['DATABASE', 'name'],
  ] as const),
]);

function readVariable(spec: Spec, application: Application, node: Node): void {
  const { run, databases } = spec;
  const key = nodeText(take(node, 'key'));
  if (key === null) return report(run, node, 'A variable needs a key.');
  const value = nodeText(take(node, 'value'));
  const scope = nodeText(take(node, 'scope'));
  const isSecret = nodeText(take(node, 'type'))?.toUpperCase() === 'SECRET';
  const [, name, part] = /^\$\{([\w-]+)\.(\w+)\}$/.exec(value ?? '') ?? [];
  const [database, known] = [databases.get(name ?? ''), PARTS.get(part ?? '')];
  if (database && known) return attach(run, application, { key, part: known, database }, node);
  if (value !== null && /\$\{[\w.-]+\}/.test(value) && !isSecret)
    note(run, node, 'No variable refers to another part of the project.', 'SVC_URL is the address of the application.');
  const isReference = value !== null && /\$\{[\w.-]+\}/.test(value);
  const at = scope === 'BUILD_TIME' ? 'build' : scope === 'RUN_TIME' ? 'runtime' : undefined;
  const given = {
    key,
    value: isSecret || isReference ? null : value,
    node,
    ...(at && ({ available_at: at } as const)),
  };
  setVariable(run, application, given);
}

const PUSH = ['A push deploys by a Git integration.', 'svc open'] as const;
const ANSWERS = ['Headers of answers are said by the program.'] as const;
const PLAN = ['The smallest package is used.', 'database_package'] as const;

export const DIGITALOCEAN_REASONS: Reasons = {
  ...{ deploy_on_push: PUSH, alerts: ['Alarms are set for people.', 'Notifiers of the project.'] },
  region: ['Resources are in the region of the project.', 'region'],
  environment_slug: ['The language is recognised in the source.'],
  features: ['The platform has its own image of builds.'],
  ...{ cors: ANSWERS, ingress: ['Each application has host names of its own, not paths.', 'domains'] },
  ...{ size: PLAN, num_nodes: PLAN, production: PLAN, cluster_name: PLAN, db_user: PLAN, db_name: PLAN },
  internal_ports: ['Only programs that answer HTTP are reached by others.'],
  log_destinations: ['Lines of output are in the log of the application.', 'svc logs'],
  ...{ catchall_document: ['Pages of a router in the browser are recognised.', 'A file _redirects'] },
  ...{ index_document: ['The first page is index.html.'], error_document: ['The page of errors is 404.html.'] },
  ...{ success_threshold: ['One answer is enough.'], port: ['A health check goes to the port of the application.'] },
  ...{ termination: ['Instances drain by themselves.'], maintenance: ['settings.maintenance_mode'] },
  registry_credentials: ['Private images come from a registry of the project.', 'source.registry_id'],
  routes: ['Each application has host names of its own, not paths.', 'domains'],
  zone: ['DNS zones are made beside platform.yaml.', 'svc domains'],
  minimum_tls_version: ['The platform sets how TLS is spoken.'],
};
