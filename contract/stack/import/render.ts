// render.yaml: services, databases and groups of variables of a Blueprint.
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
  setBuildCommand,
  setReleaseCommand,
  setRepository,
  setSetting,
  setStorage,
  takeCommand,
  importDisk,
} from './application';
import { setHealthPath } from './health';
import { flagOf, itemsOf, numberOf, peek, take, takeAll, nodeText, textsOf, type Node } from './node';
import { commandOf } from './quantities';
import { note, openFile, report, type Application, type ImportRun } from './run';
import { attach, setCommandOf, setVariable, type Part } from './variables';
import type { Reasons } from './sweep';

interface Blueprint {
  run: ImportRun;
  /** Names here of databases there. */
  databases: Map<string, string>;
  groups: Map<string, Node[]>;
}

export function importRender(run: ImportRun, path: string): void {
  const root = openFile(run, path);
  if (!root) return;
  run.roots.push(root);
  const blueprint: Blueprint = { run, databases: new Map(), groups: new Map() };
  const parts = [root, ...environmentsOf(run, root)];
  for (const part of parts) readParts(blueprint, part);
  for (const part of parts)
    for (const service of itemsOf(take(part, 'services'))) if (!isKeyValue(service)) readService(blueprint, service);
}

/** `projects` have environments, each with services of its own. */
function environmentsOf(run: ImportRun, root: Node): Node[] {
  const found: Node[] = [];
  for (const project of itemsOf(take(root, 'projects'))) {
    take(project, 'name');
    const [first, ...others] = itemsOf(take(project, 'environments'));
    for (const one of others)
      report(run, one, 'A project here is one environment.', 'environments of platform.yaml, or a project of its own');
    if (first) take(first, 'name');
    if (first) found.push(first);
  }
  return found;
}

function readParts(blueprint: Blueprint, part: Node): void {
  for (const database of itemsOf(take(part, 'databases'))) readDatabase(blueprint, database);
  for (const service of itemsOf(take(part, 'services'))) if (isKeyValue(service)) readKeyValue(blueprint, service);
  for (const group of itemsOf(take(part, 'envVarGroups')))
    blueprint.groups.set(nodeText(take(group, 'name')) ?? '', itemsOf(take(group, 'envVars')));
}

const typeOf = (service: Node): string => {
  const type = peek(service, 'type');
  return type?.is === 'scalar' ? type.source : '';
};

const isKeyValue = (service: Node): boolean => ['redis', 'keyvalue'].includes(typeOf(service));

function readDatabase({ run, databases }: Blueprint, node: Node): void {
  const name = nodeText(take(node, 'name')) ?? 'database';
  const version = nodeText(take(node, 'postgresMajorVersion'));
  const found = addDatabase(run, { original: name, engine: 'postgresql', version }, node);
  if (found === null) return takeAll(node);
  databases.set(name, found);
  const databaseName = nodeText(take(node, 'databaseName'));
  if (databaseName !== null) setDatabaseName(run, found, databaseName, node);
  const size = take(node, 'diskSizeGB');
  setStorage(run, found, numberOf(size), size ?? node);
}

function readKeyValue({ run, databases }: Blueprint, node: Node): void {
  take(node, 'type');
  const name = nodeText(take(node, 'name')) ?? 'cache';
  const found = addDatabase(run, { original: name, engine: 'redis', version: null }, node);
  if (found === null) return takeAll(node);
  databases.set(name, found);
}

function readService(blueprint: Blueprint, node: Node): void {
  const { run } = blueprint;
  const type = nodeText(take(node, 'type')) ?? 'web';
  const application = addApplication(run, nodeText(take(node, 'name')) ?? type, node);
  readSource(run, application, node);
  const command = take(node, 'startCommand') ?? take(node, 'dockerCommand');
  if (type === 'cron') {
    processFieldsOf(application, 'web').set('instances', 0);
    const line = command?.is === 'list' ? commandOf(textsOf(command) ?? []) : nodeText(command);
    addSchedule(run, application, { name: application.name, cron: take(node, 'schedule'), command: line });
  } else {
    const fields = type === 'worker' ? makeWorker(application) : processFieldsOf(application, 'web');
    takeCommand(run, fields, command);
    readScale(run, fields, node);
  }
  if (type === 'pserv')
    note(run, node, 'Every application has a public host name.', 'Let the program ask for a secret.');
  setReleaseCommand(run, application, take(node, 'preDeployCommand') ?? take(node, 'initialDeployHook'));
  setHealthPath(run, application, take(node, 'healthCheckPath'));
  const grace = numberOf(take(node, 'maxShutdownDelaySeconds'));
  if (grace !== null) setSetting(application, 'run', 'shutdown_grace_seconds', Math.min(300, grace));
  const disk = take(node, 'disk');
  if (disk)
    importDisk(
      run,
      application,
      { name: take(disk, 'name'), path: take(disk, 'mountPath'), size: take(disk, 'sizeGB') },
      disk,
    );
  for (const domain of itemsOf(take(node, 'domains'))) addDomain(run, application, nodeText(domain) ?? '', domain);
  const domain = take(node, 'domain');
  if (domain) addDomain(run, application, nodeText(domain) ?? '', domain);
  readPreviews(application, node);
  for (const variable of itemsOf(take(node, 'envVars'))) readVariable(blueprint, application, variable);
}

function readSource(run: ImportRun, application: Application, node: Node): void {
  const image = take(node, 'image');
  const url = take(image, 'url') ?? (image?.is === 'scalar' ? image : undefined);
  const runtime = nodeText(take(node, 'runtime') ?? take(node, 'env')) ?? '';
  if (url) setImage(run, application, nodeText(url) ?? '', url);
  else setRepository(run, application, take(node, 'repo'), take(node, 'branch'));
  const root = relativePath(run, take(node, 'rootDir'));
  const build = take(node, 'buildCommand');
  if (runtime === 'docker') {
    const context = relativePath(run, take(node, 'dockerContext')) ?? root;
    setDockerfile(run, application, { path: relativePath(run, take(node, 'dockerfilePath')), root: context });
    return;
  }
  if (root && root !== '.') setSetting(application, 'build', 'root_directory', root);
  setBuildCommand(run, application, build);
  const output = relativePath(run, take(node, 'staticPublishPath'));
  if (output) setSetting(application, 'build', 'output_directory', output);
}

function readScale(run: ImportRun, fields: Map<string, unknown>, node: Node): void {
  const scaling = take(node, 'scaling');
  if (!scaling) return setInstances(run, fields, take(node, 'numInstances'));
  const [least, most] = [numberOf(take(scaling, 'minInstances')) ?? 1, numberOf(take(scaling, 'maxInstances')) ?? 1];
  const [cpu, memory] = [take(scaling, 'targetCPUPercent'), take(scaling, 'targetMemoryPercent')];
  const target = numberOf(cpu ?? memory) ?? 70;
  const limits = [
    ['min_instances', Math.max(1, least)],
    ['max_instances', Math.min(10, Math.max(1, least, most))],
    ['metric', cpu ? 'cpu' : 'memory'],
    ['target', Math.min(100, target)],
  ] as const;
  fields.delete('instances');
  fields.set('autoscaling', new Map<string, unknown>(limits));
  if (cpu && memory) report(run, memory, 'Autoscaling has one metric.', 'processes.web.autoscaling');
}

function readPreviews(application: Application, node: Node): void {
  const generation = nodeText(take(node, 'previews', 'generation'));
  const enabled = flagOf(take(node, 'pullRequestPreviewsEnabled'));
  // Previews of each pull request need a Git integration, which the file does not name.
  if (generation === 'off' || enabled === false) setSetting(application, 'previews', 'auto_create', false);
}

const PARTS: ReadonlyMap<string, Part> = new Map([
  ...([
    ['connectionString', 'url'],
    ['host', 'host'],
    ['port', 'port'],
    ['user', 'user'],
  ] as const),
  ...([
    ['password', 'password'],
    ['database', 'name'],
  ] as const),
]);

function readVariable(blueprint: Blueprint, application: Application, node: Node): void {
  const { run, databases, groups } = blueprint;
  const group = nodeText(take(node, 'fromGroup'));
  if (group !== null) {
    const found = groups.get(group);
    if (!found) return report(run, node, `There is no group ${group} in the file.`, 'svc env push');
    for (const one of found) readVariable(blueprint, application, one);
    return;
  }
  const key = nodeText(take(node, 'key'));
  if (key === null) return report(run, node, 'A variable needs a key.');
  const source = take(node, 'fromDatabase') ?? take(node, 'fromService');
  const property = nodeText(take(source, 'property')) ?? '';
  const database = databases.get(nodeText(take(source, 'name')) ?? '');
  take(source, 'type');
  const part = PARTS.get(property);
  if (database && part) return attach(run, application, { key, part, database }, node);
  if (source) {
    takeAll(node);
    application.variables.set(key, new Map([['secret', true]]));
    return note(run, node, 'No variable has the address or a value of another application.', setCommandOf(key));
  }
  const generated = flagOf(take(node, 'generateValue'));
  if (generated) note(run, node, 'The platform generates no values.', `${setCommandOf(key)}="$(openssl rand -hex 32)"`);
  take(node, 'sync');
  setVariable(run, application, { key, value: generated ? null : nodeText(take(node, 'value')), node });
}

const PLAN = ['Plans of Render have no size that is said in the file.', 'application_type, database_package'] as const;
const PREVIEWS = ['Previews are set for each application.', 'settings.previews'] as const;

export const RENDER_REASONS: Reasons = {
  ...{ plan: PLAN, instanceType: PLAN, previewPlan: PLAN, previewDiskSizeGB: PREVIEWS },
  region: ['Resources are in the region of the project.', 'region'],
  ...{ previews: PREVIEWS, pullRequestPreviewsEnabled: PREVIEWS, previewsEnabled: PREVIEWS },
  ...{ previewsExpireAfterDays: PREVIEWS, preview: PREVIEWS, initialDeployHook: ['There is one release command.'] },
  ...{
    autoDeploy: ['A push deploys by a Git integration.', 'svc open'],
    autoDeployTrigger: ['A push deploys by a Git integration.'],
  },
  user: ['The platform names the users of databases.'],
  ipAllowList: ['Databases are reached from their project alone.', 'A public endpoint with allowed addresses.'],
  readReplicas: ['Replicas are made for a database that exists.', 'svc api createDatabaseReplica'],
  highAvailability: ['Packages with several nodes have automatic failover.', 'database_package'],
  maxmemoryPolicy: ['The platform sets how databases run.'],
  headers: ['Headers of answers are said by the program.'],
  routes: ['Rules of a static site are in its source.', 'A file _redirects'],
  buildFilter: ['Each push is deployed.', 'build.root_directory'],
  creds: ['Private images come from a registry of the project.', 'source.registry_id'],
  registryCredential: ['Private images come from a registry of the project.', 'source.registry_id'],
  numInstances: ['A schedule has no instances.'],
};
