// config/deploy.yml of Kamal: one application, and its accessories as databases.
import {
  addApplication,
  addDatabase,
  addDomain,
  addVolume,
  processName,
  processFieldsOf,
  relativePath,
  setDockerfile,
  setPort,
  setRepository,
  setSetting,
  setCommand,
} from './application';
import { setHealthNumbers, setHealthPath } from './health';
import { knownImage } from './images';
import { nodeEntries, flagOf, itemsOf, numberOf, peek, take, takeAll, nodeText, type Node } from './node';
import { durationSeconds } from './quantities';
import { note, openFile, report, type Application, type ImportRun } from './run';
import { setVariable, importVariables, type Given, type Reachable } from './variables';
import type { Reasons } from './sweep';

export function importKamal(run: ImportRun, path: string): void {
  const root = openFile(run, path);
  if (!root) return;
  run.roots.push(root);
  const name = take(root, 'service');
  const application = addApplication(run, nodeText(name) ?? 'app', name ?? root);
  setRepository(run, application, undefined, undefined);
  readBuilder(run, application, take(root, 'builder'));
  const databases = nodeEntries(take(root, 'accessories')).flatMap(([key, node]) =>
    readAccessory(run, application, key, node),
  );
  importVariables(run, application, variablesOf(run, take(root, 'env')), databases);
  readServers(run, application, take(root, 'servers'));
  readProxy(run, application, take(root, 'proxy'));
  setHealthPath(run, application, take(root, 'healthcheck', 'path'));
  setPort(run, application, take(root, 'healthcheck', 'port'));
  for (const volume of itemsOf(take(root, 'volumes'))) readVolume(run, application, volume);
  const drain = take(root, 'drain_timeout');
  const seconds = durationSeconds(nodeText(drain) ?? '');
  if (drain && seconds !== null) setSetting(application, 'run', 'shutdown_grace_seconds', Math.min(300, seconds));
  setHealthNumbers(run, application, { grace: take(root, 'deploy_timeout') });
}

function readBuilder(run: ImportRun, application: Application, builder: Node | undefined): void {
  const [context, path] = [relativePath(run, take(builder, 'context')), relativePath(run, take(builder, 'dockerfile'))];
  setDockerfile(run, application, { path, root: context, target: take(builder, 'target') });
  for (const [key, node] of nodeEntries(take(builder, 'args')))
    setVariable(run, application, { key, value: valueOf(run, node), node, available_at: 'build' });
  for (const secret of itemsOf(take(builder, 'secrets')))
    report(run, secret, 'A build has no files of secrets.', 'A variable that an ARG names.');
}

/** Ruby in the file is not run. */
function valueOf(run: ImportRun, node: Node): string | null {
  const text = nodeText(node);
  if (text === null || !text.includes('<%')) return text;
  note(run, node, 'Ruby in the file is not run.', 'svc env set');
  return null;
}

/** `clear` and `secret`, or plain pairs. */
function variablesOf(run: ImportRun, env: Node | undefined): Given[] {
  const found: Given[] = [];
  const clear = take(env, 'clear');
  const secret = take(env, 'secret');
  for (const node of itemsOf(secret)) {
    const key = (nodeText(node) ?? '').split(':')[0] as string;
    found.push({ key, value: null, node });
  }
  const tags = peek(env, 'tags');
  const pairs = clear || secret ? clear : env;
  for (const [key, node] of pairs?.is === 'map' ? pairs.entries : [])
    if (node !== tags || (clear && pairs === clear)) found.push({ key, value: valueOf(run, node), node });
  return found;
}

function readServers(run: ImportRun, application: Application, servers: Node | undefined): void {
  if (!servers) return;
  if (servers.is === 'list') return setHosts(run, processFieldsOf(application, 'web'), servers);
  for (const [role, node] of nodeEntries(servers)) {
    const fields = processFieldsOf(application, role === 'web' ? 'web' : processName(run, role, node));
    if (node.is === 'list') {
      setHosts(run, fields, node);
      continue;
    }
    const hosts = take(node, 'hosts');
    if (hosts) setHosts(run, fields, hosts);
    const command = take(node, 'cmd');
    const line = command && valueOf(run, command);
    if (command && line) setCommand(run, fields, line, command);
    const variables = take(node, 'env');
    if (variables) report(run, variables, 'Process types have the variables of the application.', 'variables');
    if (!fields.has('instances')) fields.set('instances', 1);
  }
}

/** Each host runs one. */
function setHosts(run: ImportRun, fields: Map<string, unknown>, hosts: Node): void {
  const count = hosts.is === 'list' ? hosts.items.length : 1;
  takeAll(hosts);
  fields.set('instances', Math.min(10, Math.max(1, count)));
  note(run, hosts, 'The platform chooses the machines. Each host is an instance.', 'processes.….instances');
}

function readProxy(run: ImportRun, application: Application, proxy: Node | undefined): void {
  const ssl = take(proxy, 'ssl');
  if (ssl && flagOf(ssl) === false) setSetting(application, 'http', 'force_https', false);
  else if (ssl?.is === 'map') report(run, ssl, 'The platform orders certificates.', 'domains');
  const hosts = take(proxy, 'hosts');
  for (const host of [take(proxy, 'host'), ...itemsOf(hosts)]) {
    const name = host && valueOf(run, host);
    for (const one of name ? name.split(',') : []) addDomain(run, application, one.trim(), host as Node);
  }
  setPort(run, application, take(proxy, 'app_port'));
  const health = take(proxy, 'healthcheck');
  setHealthPath(run, application, take(health, 'path'));
  setHealthNumbers(run, application, { interval: take(health, 'interval'), timeout: take(health, 'timeout') });
  const timeout = numberOf(take(proxy, 'response_timeout'));
  if (timeout !== null) setSetting(application, 'http', 'request_timeout_seconds', Math.min(900, Math.max(1, timeout)));
}

function readAccessory(run: ImportRun, application: Application, key: string, node: Node): Reachable[] {
  const image = take(node, 'image');
  const known = knownImage(nodeText(image) ?? '');
  if (known?.is !== 'database') {
    report(
      run,
      node,
      'Only databases that the platform has are taken over from accessories.',
      'An application of its own.',
    );
    return [];
  }
  const database = addDatabase(run, { original: key, engine: known.engine, version: known.version }, node);
  takeAll(node);
  if (database === null) return [];
  const service = application.original;
  note(run, node, 'The platform sets how the database runs, and where. It is empty.', 'svc db import');
  const env = variablesOf(run, peek(node, 'env'));
  const valueFor = (pattern: RegExp): string | undefined =>
    env.find((one) => pattern.test(one.key))?.value ?? undefined;
  const credentials = { user: valueFor(/_USER$/), password: valueFor(/_PASSWORD$/), name: valueFor(/_(DB|DATABASE)$/) };
  return [{ database, hosts: [`${service}-${key}`, key], credentials }];
}

/** `/host/path:/container/path`, `name:/container/path`. */
function readVolume(run: ImportRun, application: Application, node: Node): void {
  const [source = '', target] = (valueOf(run, node) ?? '').split(':');
  if (!target) return report(run, node, 'This is no volume.', 'volumes');
  if (/docker\.sock/.test(source))
    return report(run, node, 'No application reaches the container engine of the host.', 'The API of the platform.');
  const name = source.replace(/^.*\//, '');
  if (/^[/.~]/.test(source)) note(run, node, 'The volume is a new one, not the directory of the host.', 'volumes');
  addVolume(run, { name: name || 'data', gigabytes: null, application, path: target }, node);
}

const HOSTS = ['The platform chooses the machines, and has its own way to them.'] as const;
const DEPLOYS = ['The platform deploys by itself.', 'svc deploy'] as const;

export const KAMAL_REASONS: Reasons = {
  ...{ ssh: HOSTS, sshkit: HOSTS, boot: DEPLOYS, aliases: ['The command line has commands of its own.', 'svc run'] },
  image: ['The image is built here.', 'settings.build.image pushes it.'],
  registry: ['The platform keeps the images of its releases.', 'A registry of the project.'],
  asset_path: ['Files of the previous version are served while it drains.'],
  ...{ retain_containers: DEPLOYS, run_directory: DEPLOYS, hooks_path: DEPLOYS, secrets_path: DEPLOYS },
  ...{ require_destination: DEPLOYS, minimum_version: DEPLOYS, primary_role: DEPLOYS, readiness_delay: DEPLOYS },
  ...{
    allow_empty_roles: DEPLOYS,
    stop_wait_time: DEPLOYS,
    arch: ['Images are built for the machines of the platform.'],
  },
  ...{ multiarch: ['Images are built for the machines of the platform.'], remote: HOSTS, local: HOSTS },
  cache: ['The platform keeps its own cache of builds.'],
  ssl: ['The platform orders certificates.', 'domains'],
  ...{ labels: ['Applications have no labels.'], logging: ['Lines of output are in the log.', 'log_retention_days'] },
  ...{
    options: ['The size of the application limits this.', 'application_type'],
    traefik: ['The platform has its own proxy.'],
  },
  ...{ forward_headers: ['The platform sets the headers of proxies.'], buffering: ['The platform has its own proxy.'] },
  proxy: ['The platform has its own proxy.'],
  cmd: ['The platform has its own proxy.'],
  tags: ['Variables are those of the application.'],
  healthcheck: ['A health check is a request to a path, or a connection to the port.', 'settings.health_check'],
};
