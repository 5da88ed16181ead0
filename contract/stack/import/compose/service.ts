// A service that is an application.
import {
  addApplication,
  addVolume,
  makeWorker,
  processFieldsOf,
  setCommand,
  setDockerfile,
  setImage,
  setInstances,
  setRepository,
  setSetting,
  setSizeOf,
} from '../application';
import { serviceVariables } from './values';
import { pathOfCommand, setHealthNumbers, setHealthPath } from '../health';
import {
  childNodesOf,
  nodeEntries,
  flagOf,
  itemsOf,
  numberOf,
  peek,
  scalarAt,
  take,
  takeAll,
  nodeText,
  textsOf,
  type Node,
} from '../node';
import { commandOf, gigabytesOf, lineOfShell, megabytesOf, durationSeconds } from '../quantities';
import { note, pathFrom, report, type Application, type ImportRun } from '../run';
import { pairsOf } from './load';
import { isAttached, setVariable, importVariables, type Reachable } from '../variables';

export function readApplication(
  run: ImportRun,
  root: Node,
  { name, node: service }: { name: string; node: Node },
  { databases, services }: { databases: readonly Reachable[]; services: ReadonlySet<string> },
): void {
  const application = addApplication(run, name, service);
  importVariables(run, application, serviceVariables(run, service).map(withoutFile), databases, services);
  readSource(run, application, service);
  readSize(run, application, service);
  const isWeb = readPorts(run, application, service);
  readHealth(run, application, service);
  readCommand(run, application, service, isWeb);
  const isBuilt = peek(service, 'build') !== undefined;
  for (const volume of itemsOf(take(service, 'volumes'))) readVolume(run, root, { application, isBuilt }, volume);
  readStop(run, application, service);
  readRestart(run, service);
  readDependencies(run, application, service, databases);
}

/** `DB_PASSWORD_FILE: /run/secrets/db_password` is DB_PASSWORD, which is set elsewhere. */
function withoutFile(given: { key: string; value: string | null; node: Node }): typeof given {
  const isFile = given.key.endsWith('_FILE') && given.value?.startsWith('/run/secrets/');
  return isFile ? { ...given, key: given.key.slice(0, -'_FILE'.length), value: null } : given;
}

function readSource(run: ImportRun, application: Application, service: Node): void {
  const build = take(service, 'build');
  const image = take(service, 'image');
  if (!build) {
    const reference = nodeText(image);
    if (reference) setImage(run, application, reference, image as Node);
    else note(run, service, 'The service has neither an image nor a build.', 'source');
    return;
  }
  if (image && nodeText(image) !== null)
    note(run, image, 'The image is built here.', 'settings.build.image pushes it.');
  const context = build.is === 'map' ? take(build, 'context') : build;
  const named = nodeText(context) ?? '.';
  const repository = /^(https?:\/\/|git@|ssh:\/\/|git:\/\/|github\.com\/)/.test(named);
  if (context && repository) {
    const [address = '', fragment = ''] = named.split('#');
    const [branch = '', folder = ''] = fragment.split(':');
    setRepository(run, application, scalarAt(context, address), branch ? scalarAt(context, branch) : undefined);
    setDockerfile(run, application, { path: nodeText(take(build, 'dockerfile')), root: folder });
    return;
  }
  application.fields.set('source', new Map([['type', 'upload']]));
  const directory = pathFrom((context ?? build).file, named);
  if (directory === null) report(run, context ?? build, 'The path is not within the folder.', 'build.root_directory');
  const dockerfile = take(build, 'dockerfile');
  const path = nodeText(dockerfile);
  const inside = path === null ? null : pathFrom('Dockerfile', path);
  if (dockerfile && inside === null)
    report(run, dockerfile, 'The Dockerfile is not within the directory that is built.', 'build.dockerfile_path');
  const inline = take(build, 'dockerfile_inline');
  if (inline) report(run, inline, 'A Dockerfile is a file of the source.', 'build.dockerfile_path');
  setDockerfile(run, application, { path: inside, root: directory, target: take(build, 'target') });
  const args = take(build, 'args');
  for (const [key, one] of args ? pairsOf(args).entries : []) readArgument(run, application, key, one);
  if (args) takeAll(args);
}

/** A build has the variables that an ARG names. */
function readArgument(run: ImportRun, application: Application, key: string, node: Node): void {
  if (application.variables.has(key)) return;
  const value = node.unset ? null : nodeText(node);
  setVariable(run, application, { key, value, node, ...(value !== null && { available_at: 'build' }) });
}

function readSize(run: ImportRun, application: Application, service: Node): void {
  const deploy = take(service, 'deploy');
  const limits = take(deploy, 'resources', 'limits');
  const reservations = take(deploy, 'resources', 'reservations');
  const memory = take(limits, 'memory') ?? take(service, 'mem_limit') ?? take(reservations, 'memory');
  const cpus = take(limits, 'cpus') ?? take(service, 'cpus') ?? take(reservations, 'cpus');
  const text = nodeText(memory);
  const megabytes = text === null ? null : megabytesOf(text);
  if (memory && megabytes === null) report(run, memory, 'This is no size of memory.', 'application_type');
  setSizeOf(run, application, { megabytes, cpus: numberOf(cpus) }, memory ?? cpus);
  const web = processFieldsOf(application, 'web');
  if (application.fields.has('application_type'))
    web.set('application_type', application.fields.get('application_type'));
  setInstances(run, web, take(deploy, 'replicas') ?? take(service, 'scale'));
  web.delete('application_type');
}

const PUBLIC = [
  'Only services of the file reach this port, or programs of the computer. Every application has a public host name.',
  'Let the program ask for a secret.',
] as const;
const LOCAL = /^(127\.|\[?::1\]?|localhost)/;

interface Port {
  target: Node;
  published: string | null;
  /** Only the computer itself reaches it. */
  isLocal: boolean;
  isRange: boolean;
  isUdp: boolean;
}

/** @returns whether it answers requests */
function readPorts(run: ImportRun, application: Application, service: Node): boolean {
  const ports = itemsOf(take(service, 'ports')).flatMap((node) => portOf(run, node));
  const exposed = itemsOf(take(service, 'expose'));
  let first: string | null = null;
  for (const { target, published, isLocal, isRange, isUdp } of ports) {
    const port = target.is === 'scalar' ? target.source : '';
    if (isUdp) report(run, target, 'Visitors reach applications by HTTP, not by UDP.');
    else if (first === null) {
      first = port;
      setSetting(application, 'http', 'port', Number(port));
      if (isRange) note(run, target, `Visitors reach one port of an application, which is ${port}.`, 'http.port');
      if (isLocal) note(run, target, ...PUBLIC);
      else if (published !== null && published !== '')
        note(
          run,
          target,
          `Visitors use the host name of the application with HTTPS, not port ${published}.`,
          'domains',
        );
    } else if (port !== first)
      report(run, target, `Visitors reach one port of an application, which is ${first}.`, 'http.port');
  }
  for (const node of exposed) {
    const port = numberOf(node);
    if (port === null || first === String(port)) continue;
    if (first !== null) {
      report(run, node, `Visitors reach one port of an application, which is ${first}.`, 'http.port');
      continue;
    }
    first = String(port);
    setSetting(application, 'http', 'port', port);
    note(run, node, ...PUBLIC);
  }
  return first !== null;
}

/** `8080:80`, `127.0.0.1:8080:80/tcp`, `3000-3002`, or a mapping. */
function portOf(run: ImportRun, node: Node): Port[] {
  if (node.is === 'map') {
    for (const key of ['mode', 'name', 'app_protocol']) take(node, key);
    const isLocal = LOCAL.test(nodeText(take(node, 'host_ip')) ?? '');
    const target = take(node, 'target');
    const protocol = nodeText(take(node, 'protocol'));
    const published = nodeText(take(node, 'published'));
    takeAll(node);
    const number = numberOf(target);
    if (target && number !== null)
      return [
        { target: scalarAt(target, String(number)), published, isLocal, isRange: false, isUdp: protocol === 'udp' },
      ];
    report(run, node, 'This is no port.', 'http.port');
    return [];
  }
  const text = nodeText(node) ?? '';
  const [, published = null, port, last, protocol] =
    /^(?:(.*):)?(\d{1,5})(?:-(\d{1,5}))?(?:\/(tcp|udp))?$/.exec(text) ?? [];
  if (port && Number(port) >= 1 && Number(port) <= 65_535) {
    const host = published === null ? null : (published.split(':').at(-1) as string);
    const isLocal = LOCAL.test(published ?? '') && published !== host;
    return [
      {
        target: scalarAt(node, port),
        published: host,
        isLocal,
        isRange: last !== undefined && last !== port,
        isUdp: protocol === 'udp',
      },
    ];
  }
  report(run, node, 'This is no port.', 'http.port');
  return [];
}

function readHealth(run: ImportRun, application: Application, service: Node): void {
  const check = take(service, 'healthcheck');
  if (!check) return;
  const test = take(check, 'test');
  const words = textsOf(test) ?? [];
  const command = words.filter((word) => word !== 'CMD' && word !== 'CMD-SHELL').join(' ');
  const path = pathOfCommand(command);
  if (flagOf(take(check, 'disable')) === true || words[0] === 'NONE')
    setSetting(application, 'health_check', 'type', 'none');
  else if (test && path !== null) setHealthPath(run, application, scalarAt(test, path));
  else if (test)
    report(run, test, 'A health check is a request to a path, or a connection to the port.', 'health_check.path');
  const numbers = { interval: take(check, 'interval'), timeout: take(check, 'timeout') };
  take(check, 'start_interval');
  setHealthNumbers(run, application, {
    ...numbers,
    threshold: take(check, 'retries'),
    grace: take(check, 'start_period'),
  });
}

function readCommand(run: ImportRun, application: Application, service: Node, isWeb: boolean): void {
  const [entrypoint, command] = [take(service, 'entrypoint'), take(service, 'command')];
  const line = [entrypoint, command].map(commandLineOf).filter(Boolean).join(' ');
  const given = command ?? entrypoint;
  if (command && !entrypoint)
    note(
      run,
      command,
      'A command replaces the ENTRYPOINT, too, and the shell of the image runs it.',
      'The command with its entrypoint.',
    );
  const web = processFieldsOf(application, 'web');
  if (!isWeb && !line)
    note(
      run,
      service,
      'The file has no ports of this service, and every application has a public host name.',
      'health_check: { type: none }, if it answers no requests',
    );
  if (isWeb || !line || !given) {
    if (line && given) setCommand(run, web, line, withSecret(given, entrypoint));
    return;
  }
  const instances = web.get('instances');
  setCommand(
    run,
    makeWorker(application, typeof instances === 'number' ? instances : 1),
    line,
    withSecret(given, entrypoint),
  );
  application.settings.delete('health_check');
  note(run, given, 'Without ports it is a process type that answers no requests.', 'processes.web, with http.port');
}

/** A list has the secrets of its items, and a command those of its entrypoint. */
function withSecret(given: Node, other: Node | undefined): Node {
  const nodes = [given, ...(other ? [other] : [])].flatMap((one) => [one, ...childNodesOf(one)]);
  if (nodes.some(({ hasSecret }) => hasSecret)) given.hasSecret = true;
  return given;
}

function commandLineOf(node: Node | undefined): string {
  if (node?.is === 'list') return commandOf(textsOf(node) ?? []);
  return lineOfShell(nodeText(node) ?? '');
}

const HOST_PATHS = /^(\/|\/proc|\/sys|\/dev|\/etc|\/root|\/boot|\/var\/lib\/docker|\/lib\/modules)(\/.*)?$/;

const OF_HOST = ['No application sees the files of the host.', 'A volume, or a bucket.'] as const;
const OF_SOURCE = [
  'Files of the folder are in the source that is built.',
  'COPY in the Dockerfile; a volume for what is written.',
] as const;
const OF_FOLDER = [
  'An image runs without the files of the folder.',
  'A volume for what is written; an image of your own for what is read.',
] as const;

/** `data:/var/lib/data`, `./src:/app`, `/app/node_modules`, or a mapping. */
function readVolume(
  run: ImportRun,
  root: Node,
  { application, isBuilt }: { application: Application; isBuilt: boolean },
  volume: Node,
): void {
  const isLong = volume.is === 'map';
  const parts = isLong ? [] : (nodeText(volume) ?? '').split(':');
  const source = isLong ? nodeText(take(volume, 'source')) : parts.length > 1 ? (parts[0] as string) : null;
  const target = isLong ? nodeText(take(volume, 'target')) : (parts[parts.length > 1 ? 1 : 0] as string);
  const type = isLong ? nodeText(take(volume, 'type')) : null;
  takeAll(volume);
  if (!target) return report(run, volume, 'This is no volume.', 'volumes');
  if (/docker\.sock|containerd\.sock|podman\.sock/.test(`${source} ${target}`))
    return report(run, volume, 'No application reaches the container engine of the host.', 'The API of the platform.');
  if (type === 'tmpfs') return report(run, volume, '/tmp is there anyway.', 'application_type, for its memory');
  if (source === null) return report(run, volume, 'A volume without a name is lost with its instance.', 'volumes');
  if (/^[./~]/.test(source) || type === 'bind') {
    const [reason, nearest] = HOST_PATHS.test(source) ? OF_HOST : isBuilt ? OF_SOURCE : OF_FOLDER;
    return report(run, volume, reason, nearest);
  }
  const declared = peek(peek(root, 'volumes'), source);
  const size = nodeText(peek(peek(declared, 'driver_opts'), 'size'));
  addVolume(run, { name: source, gigabytes: size ? gigabytesOf(size) : null, application, path: target }, volume);
}

function readStop(run: ImportRun, application: Application, service: Node): void {
  const grace = take(service, 'stop_grace_period');
  const seconds = durationSeconds(nodeText(grace) ?? '');
  if (grace && seconds !== null) setSetting(application, 'run', 'shutdown_grace_seconds', Math.min(300, seconds));
  else if (grace) report(run, grace, 'This is no duration.', 'run.shutdown_grace_seconds');
}

function readRestart(run: ImportRun, service: Node): void {
  const restart = peek(service, 'restart');
  const text = restart?.is === 'scalar' ? String(restart.value) : '';
  if (restart && /^(always|unless-stopped|on-failure(:\d+)?|any)$/.test(text)) take(service, 'restart');
  const isPlain = take(service, 'deploy', 'restart_policy', 'condition');
  if (isPlain && nodeText(isPlain) === 'none') report(run, isPlain, 'Instances are always restarted.', 'svc run');
}

/** Databases are there before applications. */
function readDependencies(
  run: ImportRun,
  application: Application,
  service: Node,
  databases: readonly Reachable[],
): void {
  const given = peek(service, 'depends_on');
  const jobs = nodeEntries(given).filter(([, one]) => isToEnd(one));
  const names = given?.is === 'map' ? nodeEntries(given).map(([name]) => name) : (textsOf(given) ?? []);
  if (given && names.length && names.every((name) => databases.some(({ hosts }) => hosts.includes(name))))
    takeAll(given);
  else if (given && jobs.length)
    report(
      run,
      given,
      `${jobs.map(([name]) => name).join(', ')} must end first there. Applications start in any order.`,
      'run.release_command, with the command of that service',
    );
  else if (given)
    report(run, given, 'Applications start in any order, and are restarted until what they need is there.');
  for (const { database, hosts } of databases)
    if (given && names.some((name) => hosts.includes(name)) && !isAttached(application, database))
      note(
        run,
        given,
        `No variable names the database ${database}, so it is not attached.`,
        `A variable that ends with _URL: \${database.${database}.url}`,
      );
}

const isToEnd = (dependency: Node): boolean => {
  const condition = peek(dependency, 'condition');
  return condition?.is === 'scalar' && condition.source === 'service_completed_successfully';
};
