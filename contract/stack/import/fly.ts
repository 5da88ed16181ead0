// fly.toml: one application.
import {
  addApplication,
  processName,
  processFieldsOf,
  relativePath,
  setDockerfile,
  setImage,
  setPort,
  setReleaseCommand,
  setRepository,
  setSetting,
  setSize,
  takeCommand,
  importDisk,
} from './application';
import { setHealthNumbers, setHealthPath } from './health';
import { nodeEntries, flagOf, itemsOf, numberOf, peek, scalarAt, take, nodeText, textsOf, type Node } from './node';
import { durationSeconds } from './quantities';
import { note, openFile, report, type Application, type ImportRun } from './run';
import { setVariable } from './variables';
import type { Reasons } from './sweep';

export function importFly(run: ImportRun, path: string): void {
  const root = openFile(run, path);
  if (!root) return;
  run.roots.push(root);
  const name = take(root, 'app');
  const application = addApplication(run, nodeText(name) ?? 'app', name ?? root);
  readBuild(run, application, root);
  for (const [key, node] of nodeEntries(take(root, 'env')))
    setVariable(run, application, { key, value: nodeText(node), node });
  setReleaseCommand(run, application, take(root, 'deploy', 'release_command'));
  readProcesses(run, application, root);
  readVms(run, application, root);
  const hasHttp = readHttp(run, application, take(root, 'http_service'));
  for (const service of listOf(take(root, 'services'))) readService(run, application, service, hasHttp);
  for (const [, check] of nodeEntries(take(root, 'checks'))) readCheck(run, application, check);
  for (const mount of listOf(take(root, 'mounts')))
    importDisk(
      run,
      application,
      { name: take(mount, 'source'), path: take(mount, 'destination'), size: take(mount, 'initial_size') },
      mount,
    );
  const grace = take(root, 'kill_timeout');
  const seconds = durationSeconds(nodeText(grace) ?? '');
  if (grace && seconds !== null) setSetting(application, 'run', 'shutdown_grace_seconds', Math.min(300, seconds));
}

/** A table, or a list of tables. */
const listOf = (node: Node | undefined): Node[] => (node?.is === 'list' ? itemsOf(node) : node ? [node] : []);

function readBuild(run: ImportRun, application: Application, root: Node): void {
  const build = take(root, 'build');
  const image = take(build, 'image');
  if (image) setImage(run, application, nodeText(image) ?? '', image);
  else setRepository(run, application, undefined, undefined);
  const dockerfile = relativePath(run, take(build, 'dockerfile'));
  const target = take(build, 'build-target');
  const isBuildpack = peek(build, 'builder') !== undefined || peek(build, 'buildpacks') !== undefined;
  if (!image && (dockerfile || target || !isBuildpack)) setDockerfile(run, application, { path: dockerfile, target });
  for (const [key, node] of nodeEntries(take(build, 'args')))
    if (!application.variables.has(key))
      setVariable(run, application, { key, value: nodeText(node), node, available_at: 'build' });
}

/** `app` is the process of requests, if no other is named by the services. */
function readProcesses(run: ImportRun, application: Application, root: Node): void {
  const given = nodeEntries(take(root, 'processes'));
  const services = [peek(root, 'http_service'), ...listOf(peek(root, 'services'))];
  const named = services.flatMap((service) => textsOf(peek(service, 'processes')) ?? []);
  const web = given.find(([type]) => named.includes(type)) ?? given.find(([type]) => ['web', 'app'].includes(type));
  for (const [type, node] of given) {
    const isWeb = type === (web ?? given[0])?.[0];
    const fields = processFieldsOf(application, isWeb ? 'web' : processName(run, type, node));
    if (nodeText(node)?.trim()) takeCommand(run, fields, node);
    if (!isWeb) fields.set('instances', 1);
  }
}

const PRESETS: Readonly<Record<string, string>> = {
  ...{ 'shared-cpu-1x': '256m', 'shared-cpu-2x': '512m', 'shared-cpu-4x': '1g', 'shared-cpu-8x': '2g' },
  ...{ 'performance-1x': '2g', 'performance-2x': '4g', 'performance-4x': '8g' },
};

function readVms(run: ImportRun, application: Application, root: Node): void {
  const [vm, ...others] = listOf(take(root, 'vm'));
  for (const one of others)
    report(run, one, 'Sizes of other process types are set at them.', 'processes.….application_type');
  const size = take(vm, 'size');
  const preset = PRESETS[nodeText(size) ?? ''];
  if (size && !preset) report(run, size, 'There is no such size here.', 'application_type');
  const memory = take(vm, 'memory') ?? take(vm, 'memory_mb') ?? (size && preset ? scalarAt(size, preset) : undefined);
  // Processors are shared there: only those of a machine of its own count.
  const kind = nodeText(take(vm, 'cpu_kind'));
  const cpus = take(vm, 'cpus');
  setSize(run, application, { memory, cpus: kind === 'performance' ? cpus : undefined, unit: 'm' });
  take(vm, 'processes');
}

function readHttp(run: ImportRun, application: Application, service: Node | undefined): boolean {
  if (!service) return false;
  setPort(run, application, take(service, 'internal_port'));
  const force = flagOf(take(service, 'force_https'));
  if (force !== null) setSetting(application, 'http', 'force_https', force);
  take(service, 'processes');
  for (const check of listOf(take(service, 'checks'))) readCheck(run, application, check);
  readMachines(application, service);
  return true;
}

function readService(run: ImportRun, application: Application, service: Node, hasHttp: boolean): void {
  const ports = listOf(take(service, 'ports'));
  const handlers = ports.flatMap((port) => textsOf(take(port, 'handlers')) ?? []);
  const protocol = nodeText(take(service, 'protocol'));
  if (hasHttp || protocol === 'udp' || (handlers.length > 0 && !handlers.includes('http') && !handlers.includes('tls')))
    return report(run, service, 'Visitors reach one port of an application, by HTTP.', 'http.port');
  setPort(run, application, take(service, 'internal_port'));
  take(service, 'processes');
  for (const port of ports) {
    take(port, 'port');
    const force = flagOf(take(port, 'force_https'));
    if (force !== null) setSetting(application, 'http', 'force_https', force);
  }
  for (const kind of ['http_checks', 'tcp_checks'])
    for (const check of listOf(take(service, kind))) readCheck(run, application, check);
  readMachines(application, service);
}

function readMachines(application: Application, service: Node): void {
  const least = numberOf(take(service, 'min_machines_running'));
  const stop = peek(service, 'auto_stop_machines');
  if (least !== null && least > 1) processFieldsOf(application, 'web').set('instances', Math.min(5, least));
  if (stop?.is === 'scalar' && ['off', 'false'].includes(stop.source)) take(service, 'auto_stop_machines');
}

function readCheck(run: ImportRun, application: Application, check: Node): void {
  if (application.settings.has('health_check'))
    return report(run, check, 'An application has one health check.', 'settings.health_check');
  const path = take(check, 'path');
  const type = nodeText(take(check, 'type'));
  const method = take(check, 'method');
  if (method && nodeText(method)?.toLowerCase() !== 'get') report(run, method, 'A health check is a GET request.');
  take(check, 'protocol');
  take(check, 'port');
  if (path && type !== 'tcp') setHealthPath(run, application, path);
  else setSetting(application, 'health_check', 'type', 'tcp');
  const numbers = { interval: take(check, 'interval'), timeout: take(check, 'timeout') };
  // Numbers without a unit are milliseconds there.
  setHealthNumbers(run, application, { ...numbers, grace: take(check, 'grace_period'), unit: 'ms' });
  const limit = take(check, 'restart_limit');
  if (limit && numberOf(limit) === 0) return;
  if (limit) note(run, limit, 'Instances are restarted after failures in a row.', 'health_check.failure_threshold');
}

const REGION = ['Resources are in the region of the project.', 'region'] as const;
const MACHINES = ['Instances run until they are scaled.', 'processes.web.autoscaling'] as const;

export const FLY_REASONS: Reasons = {
  ...{ primary_region: REGION, swap_size_mb: ['The size of the application limits this.', 'application_type'] },
  ...{ auto_stop_machines: MACHINES, auto_start_machines: MACHINES, min_machines_running: MACHINES },
  ...{ concurrency: MACHINES, cpus: ['Processors are a part of the size.', 'application_type'] },
  ...{ cpu_kind: ['Processors are a part of the size.', 'application_type'] },
  statics: ['The program serves its files.', 'build.output_directory, for a site'],
  kill_signal: ['Instances get SIGTERM.'],
  strategy: ['Each deployment starts the new version before the previous one stops.'],
  metrics: ['The platform measures requests, processors and memory.', 'svc metrics'],
  builder: ['The language is recognised in the source.', 'build.builder'],
  buildpacks: ['The language is recognised in the source.', 'build.builder'],
  restart: ['Instances are always restarted.'],
  experimental: ['This is of Fly alone.'],
  console_command: ['A console is opened by name.', 'svc ssh'],
  tls_options: ['The platform sets how TLS is spoken.'],
  http_options: ['Headers of answers are said by the program.'],
  files: ['There are no files beside the source.', 'COPY in the Dockerfile, or a variable.'],
  headers: ['A health check has no headers.'],
};
