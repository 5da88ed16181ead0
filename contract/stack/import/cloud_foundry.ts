// manifest.yml of Cloud Foundry: its applications.
import {
  addApplication,
  addDatabase,
  addDomain,
  makeWorker,
  processName,
  processFieldsOf,
  relativePath,
  setImage,
  setInstances,
  setRepository,
  setSetting,
  setSize,
  takeCommand,
} from './application';
import { setHealthNumbers, setHealthPath } from './health';
import { engineOf } from './images';
import { nodeEntries, itemsOf, peek, scalarAt, take, nodeText, type Node } from './node';
import { note, openFile, report, type Application, type ImportRun } from './run';
import { setVariable } from './variables';
import type { Reasons } from './sweep';

export function importCloudFoundry(run: ImportRun, path: string): void {
  const root = openFile(run, path);
  if (!root) return;
  run.roots.push(root);
  take(root, 'version');
  const databases = new Map<string, string>();
  const given = itemsOf(take(root, 'applications'));
  // Older manifests have the values of all applications, or of the only one, at the top.
  const top = root.is === 'map' ? new Map([...root.entries].filter(([name]) => SHARED.includes(name))) : new Map();
  for (const node of given.length ? given : [root]) {
    if (node.is !== 'map') continue;
    for (const [name, one] of top) if (!node.entries.has(name)) node.entries.set(name, one);
    readApplication(run, node, databases);
  }
}

const SHARED = [
  ...['memory', 'disk_quota', 'instances', 'buildpack', 'buildpacks', 'command', 'path', 'env', 'services', 'stack'],
  ...['domain', 'timeout', 'health-check-type', 'health-check-http-endpoint'],
];

function readApplication(run: ImportRun, node: Node, databases: Map<string, string>): void {
  const application = addApplication(run, nodeText(take(node, 'name')) ?? 'app', node);
  const image = take(node, 'docker', 'image');
  if (image) setImage(run, application, nodeText(image) ?? '', image);
  else setRepository(run, application, undefined, undefined);
  readPath(run, application, take(node, 'path'));
  setSize(run, application, { memory: take(node, 'memory'), unit: 'm' });
  readEnvironment(run, application, take(node, 'env'));
  for (const service of itemsOf(take(node, 'services'))) readService(run, application, service, databases);
  for (const route of itemsOf(take(node, 'routes'))) readRoute(run, application, route);
  const isWorker = nodeText(take(node, 'no-route')) === 'true';
  const main = isWorker ? makeWorker(application) : processFieldsOf(application, 'web');
  readProcess(run, application, main, node);
  for (const one of itemsOf(take(node, 'processes'))) {
    const type = nodeText(take(one, 'type')) ?? 'web';
    const fields = type === 'web' && !isWorker ? main : processFieldsOf(application, processName(run, type, one));
    readProcess(run, application, fields, one);
    const memory = peek(one, 'memory');
    if (memory && type === 'web') setSize(run, application, { memory: take(one, 'memory'), unit: 'm' });
    else if (memory) report(run, memory, 'The size of a process type is set at it.', 'processes.….application_type');
  }
}

function readProcess(run: ImportRun, application: Application, fields: Map<string, unknown>, node: Node): void {
  const command = take(node, 'command');
  if (command && nodeText(command) !== 'null') takeCommand(run, fields, command);
  setInstances(run, fields, take(node, 'instances'));
  const type = nodeText(take(node, 'health-check-type'));
  if (type === 'http') setHealthPath(run, application, take(node, 'health-check-http-endpoint'));
  if (type === 'process' || type === 'none') setSetting(application, 'health_check', 'type', 'none');
  if (type === 'http' && !application.settings.get('health_check')?.has('path'))
    setHealthPath(run, application, scalarAt(node, '/'));
  setHealthNumbers(run, application, {
    ...{ grace: take(node, 'timeout'), interval: take(node, 'health-check-interval') },
    timeout: take(node, 'health-check-invocation-timeout'),
  });
}

/** A directory is built; an archive such as a jar is made by a build before. */
function readPath(run: ImportRun, application: Application, node: Node | undefined): void {
  const text = nodeText(node);
  if (!node || text === null) return;
  if (/\.(jar|war|zip|ear)$/.test(text))
    return report(run, node, 'The platform builds the source, and takes no archive of it.', 'build.build_command');
  const path = relativePath(run, node);
  if (path && path !== '.') setSetting(application, 'build', 'root_directory', path);
}

function readEnvironment(run: ImportRun, application: Application, env: Node | undefined): void {
  for (const [key, node] of nodeEntries(env)) {
    const value = node.is === 'scalar' ? nodeText(node) : null;
    if (value === null && node.is !== 'scalar') {
      report(run, node, 'A variable is a text.', 'JSON in one text.');
      continue;
    }
    const isReference = value !== null && /\(\([^()]+\)\)/.test(value);
    if (isReference) note(run, node, 'The value is in a file of variables.', `svc env set ${key}`);
    setVariable(run, application, { key, value: isReference ? null : value, node });
  }
}

/** A service by its name, which often says what it is. */
function readService(run: ImportRun, application: Application, node: Node, databases: Map<string, string>): void {
  const given = node.is === 'map' ? take(node, 'name') : node;
  const name = nodeText(given) ?? '';
  const engine = engineOf(name) ?? engineOf(/(postgres|mysql|mariadb|redis|valkey)/i.exec(name)?.[1] ?? '-');
  if (!engine)
    return report(
      run,
      node,
      'The file does not say what this service is.',
      'A database with an attachment, or a variable.',
    );
  const database = databases.get(name) ?? addDatabase(run, { original: name, engine, version: null }, node);
  if (database === null) return;
  databases.set(name, database);
  const key = engine === 'redis' || engine === 'valkey' ? 'REDIS_URL' : 'DATABASE_URL';
  const isFirst = !application.variables.has(key);
  const own = `${name
    .toUpperCase()
    .replace(/\W+/g, '_')
    .replace(/^[^A-Z_]+/, '')}_URL`;
  application.variables.set(isFirst ? key : own, `\${database.${database}.url}`);
  note(run, node, 'The address is in a variable, not in VCAP_SERVICES.', isFirst ? key : own);
}

function readRoute(run: ImportRun, application: Application, node: Node): void {
  const route = node.is === 'map' ? take(node, 'route') : node;
  const text = nodeText(route) ?? '';
  const [host = '', ...path] = text.replace(/^https?:\/\//, '').split('/');
  if (/\(\(/.test(text)) return report(run, node, 'The host name is in a file of variables.', 'domains');
  if (path.join('') !== '') note(run, node, 'Each application has host names of its own, not paths.', 'domains');
  if (/\.(cfapps\.|mybluemix\.net|cfapps|apps\.internal|appdomain\.cloud)/.test(host) || host.endsWith('.cfapps.io'))
    return report(run, node, 'The host name belongs to the other platform.', 'The default host name, or domains');
  addDomain(run, application, host.replace(/:\d+$/, ''), route ?? node);
}

const RECOGNISED = ['The language is recognised in the source.', 'settings.build.build_command'] as const;
const HOSTS = ['Every application has a host name of its own.', 'domains'] as const;

export const CLOUD_FOUNDRY_REASONS: Reasons = {
  ...{ buildpack: RECOGNISED, buildpacks: RECOGNISED, stack: ['The platform has its own image of builds.'] },
  lifecycle: ['The platform has its own image of builds.'],
  ...{ disk_quota: ['The size of the application limits this.', 'application_type'] },
  ...{ 'disk-quota': ['The size of the application limits this.', 'application_type'] },
  ...{ 'random-route': HOSTS, 'default-route': HOSTS, host: HOSTS, hosts: HOSTS, domain: HOSTS, domains: HOSTS },
  sidecars: ['A process type runs beside others, not in the same instance.', 'processes'],
  metadata: ['Applications have no labels.'],
  inherit: ['A manifest that another one inherits is not read.', 'Put its values into the file.'],
  'log-rate-limit-per-second': ['The platform limits this by itself.'],
  features: ['This is of Cloud Foundry alone.'],
  username: ['Private images come from a registry of the project.', 'source.registry_id'],
  'readiness-health-check-type': ['There is one health check.', 'settings.health_check'],
  'readiness-health-check-http-endpoint': ['There is one health check.', 'settings.health_check'],
};
