// Applications, databases and volumes of the file that is written.
import { enginesOwnDatabases } from '../../../core/catalog/catalog_definitions/databases';
import { validationFailed } from '../../../core/errors';
import { formats } from '../../../core/formats/formats';
import { limits } from '../../../core/limits';
import { numberOf, nodeText, textsOf, type Node, type Place } from './node';
import { gigabytesOf, megabytesOf, slugOf } from './quantities';
import { note, report, type Application, type ImportRun } from './run';
import { hasSecret } from './secrets';

const COMMAND_MAX = 2_000;
/** As a file of a project. */
const RESOURCES_MAX = 500;
const PROCESS = /^[a-z][a-z0-9_-]{0,29}$/;

/** A new application. Another name than that of the file is noted. */
export function addApplication(run: ImportRun, original: string, place: Place): Application {
  const name = freeName(run, original, 'app', run.applications, place);
  const application: Application = {
    ...{ name, place, original, fields: new Map(), settings: new Map(), processes: new Map() },
    ...{ variables: new Map(), schedules: new Map(), domains: new Map() },
  };
  run.applications.set(name, application);
  return application;
}

function freeName(
  run: ImportRun,
  original: string,
  suffix: string,
  used: ReadonlyMap<string, unknown>,
  place: Place,
): string {
  if (used.size >= RESOURCES_MAX)
    throw validationFailed([
      { field: 'files', code: 'too_many', detail: `has more than ${RESOURCES_MAX} applications, databases or volumes` },
    ]);
  const plain = slugOf(original, suffix);
  let name = plain;
  for (let serial = 2; used.has(name); serial += 1) name = `${plain}-${serial}`;
  if (name !== original)
    note(run, place, `Names are 3 to 40 lower-case letters, digits and hyphens. It is called ${name}.`);
  return name;
}

/** @returns the name of the database, or null where the engine is not installed */
export function addDatabase(
  run: ImportRun,
  { original, engine, version }: { original: string; engine: string; version: string | null },
  place: Place,
): string | null {
  const found = run.catalog.engines.find(({ id }) => id === engine) ?? run.catalog.engines.find(isLike(engine));
  if (!found) {
    note(run, place, `This installation offers no ${engine}.`, 'Ask the operator to install it.');
    return null;
  }
  const name = freeName(run, original, 'db', run.databases, place);
  const fields = new Map<string, unknown>([['engine', found.id]]);
  const offered = version && found.versions.find((one) => one.version === version || version.startsWith(one.version));
  if (offered) fields.set('engine_version', offered.version);
  else if (version)
    note(run, place, `${found.id} ${version} is not offered here. The default version is used.`, 'engine_version');
  run.databases.set(name, fields);
  return name;
}

/** The name of the database on its server; one that cannot be used here is noted. */
export function setDatabaseName(run: ImportRun, database: string, name: string, place: Place): void {
  const fields = run.databases.get(database);
  if (!fields || ['redis', 'valkey'].includes(fields.get('engine') as string)) return;
  const isFree = !enginesOwnDatabases.includes(name) && !name.startsWith('pg_');
  if (isFree && /^[a-z][a-z0-9_]{0,62}$/.test(name)) fields.set('database_name', name);
  else note(run, place, 'The database is called app: its name cannot be used here.', 'database_name');
}

/** Redis and Valkey are the same to a client. */
const isLike =
  (engine: string) =>
  ({ id }: { id: string }): boolean =>
    ['redis', 'valkey'].includes(engine) && ['redis', 'valkey'].includes(id);

/** Storage, within what the smallest package has; more is noted. */
export function setStorage(run: ImportRun, database: string, gigabytes: number | null, place: Place): void {
  const fields = run.databases.get(database);
  if (!fields || gigabytes === null) return;
  const fitting = run.catalog.packages.filter(
    ({ engines, nodes }) => nodes === 1 && engines.includes(fields.get('engine') as string),
  );
  const largest = Math.max(...fitting.filter(({ storage_gb }) => storage_gb <= 1).map((one) => one.max_storage_gb));
  if (gigabytes <= largest) fields.set('storage_gb', Math.max(1, Math.ceil(gigabytes)));
  else note(run, place, `The smallest package has at most ${largest} GB.`, 'database_package and storage_gb');
}

/** A volume. @returns false, and a report, where another application has it */
export function addVolume(
  run: ImportRun,
  { name: original, gigabytes, application, path }: VolumeWish,
  place: Place,
): boolean {
  const used = [...run.volumes.values()].find((one) => one.get('original') === original);
  if (used) {
    note(
      run,
      place,
      `A volume belongs to one application, and ${String(used.get('application'))} has it.`,
      'A bucket, which all applications reach.',
    );
    return false;
  }
  if (!formats.mount_path(path)) {
    note(run, place, 'This path cannot be that of a volume.', 'mount_path');
    return false;
  }
  const name = freeName(run, original, 'volume', run.volumes, place);
  const size = Math.min(gigabytes ?? 1, limits.volumeSizeMaxGb);
  if (gigabytes !== null && size < gigabytes) note(run, place, `Volumes have at most ${size} GB here.`, 'size_gb');
  run.volumes.set(
    name,
    new Map<string, unknown>([
      ['original', original],
      ['size_gb', size],
      ['application', application.name],
      ['mount_path', path],
    ]),
  );
  return true;
}

export interface VolumeWish {
  name: string;
  /** Null where the file does not say. */
  gigabytes: number | null;
  application: Application;
  path: string;
}

export function setSetting(application: Application, section: string, field: string, value: unknown): void {
  const fields = application.settings.get(section) ?? new Map<string, unknown>();
  application.settings.set(section, fields);
  fields.set(field, value);
}

export function processFieldsOf(application: Application, type: string): Map<string, unknown> {
  const fields = application.processes.get(type) ?? new Map<string, unknown>();
  application.processes.set(type, fields);
  return fields;
}

/** The name of a process type: of what the file calls it. */
export function processName(run: ImportRun, original: string, place: Place): string {
  const name = original
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 30);
  if (name !== original) note(run, place, `Process types are lower-case letters, digits, - and _. It is ${name}.`);
  return PROCESS.test(name) ? name : 'worker';
}

const SECRET = 'The command has what looks like a secret, so it is not in platform.yaml.';

/** Whether a command may be in the file; the report of one that may not. */
export function isPublicCommand(run: ImportRun, command: string, node: Node): boolean {
  if (!node.hasSecret && !hasSecret(command)) return true;
  report(run, node, SECRET, 'The command with $NAME, and svc env set NAME');
  return false;
}

/** What replaces the command of the builder. */
export function setBuildCommand(run: ImportRun, application: Application, node: Node | undefined): void {
  const command = nodeText(node);
  if (node && command && isPublicCommand(run, command, node))
    setSetting(application, 'build', 'build_command', command);
}

/** The command before each release. */
export function setReleaseCommand(run: ImportRun, application: Application, node: Node | undefined): void {
  const command = textsOf(node)?.join(' && ');
  if (!node || !command || !isPublicCommand(run, command, node)) return;
  if (command.length > COMMAND_MAX) report(run, node, `Commands have at most ${COMMAND_MAX} characters.`, 'A script.');
  else setSetting(application, 'run', 'release_command', command);
}

/** A command; empty and long ones are reported. */
export function setCommand(run: ImportRun, fields: Map<string, unknown>, command: string, node: Node): void {
  if (!isPublicCommand(run, command, node)) return;
  if (command.length > COMMAND_MAX) report(run, node, `Commands have at most ${COMMAND_MAX} characters.`, 'A script.');
  else if (command.trim() !== '' && !command.includes('\0')) fields.set('command', command);
}

/** As `setCommand`, of a scalar. */
export function takeCommand(run: ImportRun, fields: Map<string, unknown>, node: Node | undefined): void {
  const command = nodeText(node);
  if (node && command !== null) setCommand(run, fields, command, node);
}

/** A program without requests: the process type `worker` runs, and `web` does not. */
export function makeWorker(application: Application, instances = 1): Map<string, unknown> {
  processFieldsOf(application, 'web').set('instances', 0);
  return processFieldsOf(application, 'worker').set('instances', instances);
}

/** The port that the program listens on. */
export function setPort(run: ImportRun, application: Application, node: Node | undefined): void {
  const port = numberOf(node);
  if (port !== null && Number.isInteger(port) && port >= 1 && port <= 65_535)
    setSetting(application, 'http', 'port', port);
  else if (node) report(run, node, 'This is no port.', 'http.port');
}

/** On a host whose instances share a network, the platform chooses the ports. */
export function dropPorts(run: ImportRun): void {
  for (const { settings, place } of run.catalog.hasOwnPorts ? [] : run.applications.values()) {
    const http = settings.get('http');
    if (http?.delete('port'))
      note(run, place, 'This host gives instances no networks of their own.', 'The program listens on PORT.');
  }
}

/** Instances of a process type, within what its size allows. */
export function setInstances(run: ImportRun, fields: Map<string, unknown>, node: Node | undefined): void {
  const count = numberOf(node);
  if (!node) return;
  if (count === null || !Number.isInteger(count) || count < 0) return report(run, node, 'This is no number.');
  const id = (fields.get('application_type') as string | undefined) ?? DEFAULT_SIZE;
  const most = run.catalog.applicationTypes.find((type) => type.id === id)?.max_instances ?? count;
  if (count > most) note(run, node, `The size has at most ${most} instances.`, 'Instances of a larger size.');
  fields.set('instances', Math.min(count, most));
}

const DEFAULT_SIZE = 's-512mb';

/** The smallest size with this memory and these processors. */
export function setSize(
  run: ImportRun,
  application: Application,
  { memory, cpus, unit }: { memory?: Node | undefined; cpus?: Node | undefined; unit?: 'b' | 'm' | 'g' },
): void {
  const text = nodeText(memory);
  const megabytes = text === null ? null : megabytesOf(text, unit);
  if (memory && megabytes === null) report(run, memory, 'This is no size of memory.', 'application_type');
  setSizeOf(run, application, { megabytes, cpus: numberOf(cpus) }, memory ?? cpus);
}

export function setSizeOf(
  run: ImportRun,
  application: Application,
  { megabytes, cpus }: { megabytes: number | null; cpus: number | null },
  place: Place | undefined,
): void {
  if (megabytes === null && cpus === null) return;
  const types = [...run.catalog.applicationTypes].sort((a, b) => a.memory_mb - b.memory_mb);
  const found = types.find(({ memory_mb, vcpu }) => memory_mb >= (megabytes ?? 0) && vcpu >= (cpus ?? 0));
  const size = found ?? types.at(-1);
  if (!size) return;
  if (!found && place) note(run, place, `The largest size is ${size.id}.`, 'application_type');
  application.fields.set('application_type', size.id);
}

/** What is built: a repository, or what is uploaded. */
export function setRepository(
  run: ImportRun,
  application: Application,
  repository: Node | undefined,
  branch: Node | undefined,
): void {
  const address = nodeText(repository);
  const url = address === null ? null : formats.git_url(address)?.value;
  if (!url) {
    if (repository) report(run, repository, 'This is no address of a Git repository.', 'source.repository_url');
    if (branch) report(run, branch, 'The source is uploaded, so it has no branch.', 'source: { type: git, branch }');
    application.fields.set('source', new Map([['type', 'upload']]));
    return;
  }
  const source = new Map<string, unknown>([
    ['type', 'git'],
    ['repository_url', url],
  ]);
  const name = nodeText(branch);
  if (name) source.set('branch', name);
  application.fields.set('source', source);
}

/** An image that runs as it is. */
export function setImage(run: ImportRun, application: Application, image: string, place: Place): void {
  const full = fullReference(image);
  if (!formats.oci_reference(full)) {
    note(run, place, 'This is no reference of an image.', 'source.image');
    application.fields.set('source', new Map([['type', 'upload']]));
    return;
  }
  application.fields.set(
    'source',
    new Map<string, unknown>([
      ['type', 'image'],
      ['image', full],
    ]),
  );
}

/** `nginx` is docker.io/library/nginx. */
function fullReference(image: string): string {
  const [first = '', ...rest] = image.split('/');
  if (!rest.length) return `docker.io/library/${image}`;
  return /[.:]/.test(first) || first === 'localhost' ? image : `docker.io/${image}`;
}

/** Builds with a Dockerfile. */
export function setDockerfile(
  run: ImportRun,
  application: Application,
  { path, root, target }: { path?: string | null; root?: string | null; target?: Node | undefined },
): void {
  setSetting(application, 'build', 'builder', 'dockerfile');
  if (root && root !== '.') setSetting(application, 'build', 'root_directory', root);
  if (path && path !== 'Dockerfile') setSetting(application, 'build', 'dockerfile_path', path);
  const stage = nodeText(target);
  if (stage && /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/.test(stage))
    setSetting(application, 'build', 'dockerfile_target', stage);
}

/** A directory or a file of the source, as the settings have it; null and a report for others. */
export function relativePath(run: ImportRun, node: Node | undefined): string | null {
  const text = nodeText(node);
  if (!node || text === null || text === '') return null;
  const path = formats.relative_path(text.replace(/^\/+/, '') || '.')?.value ?? null;
  if (path === null) report(run, node, 'The path is not within the source.', 'build.root_directory');
  return path;
}

/** A host name of visitors. */
export function addDomain(run: ImportRun, application: Application, name: string, node: Node): void {
  const host = formats.wildcard_hostname(name)?.value;
  if (!host || !host.includes('.')) return report(run, node, 'This is no host name.', 'domains');
  if ([...run.applications.values()].some(({ domains }) => domains.has(host)))
    return report(run, node, 'Another application has this host name.', 'domains');
  application.domains.set(host, new Map());
}

/** A command at certain times. */
export function addSchedule(
  run: ImportRun,
  application: Application,
  { name, cron, command }: { name: string; cron: Node | undefined; command: string | null },
): void {
  const times = nodeText(cron);
  if (!cron || times === null) return;
  const normal = formats.cron(times)?.value;
  if (!normal) return report(run, cron, 'These times cannot be said as a cron expression of five fields.', 'schedules');
  if (!command?.trim()) return report(run, cron, 'A schedule needs a command.', 'schedules: { …: { cron, command } }');
  if (!isPublicCommand(run, command, cron)) return;
  const label = formats.label(name)?.value ?? 'schedule';
  application.schedules.set(
    label,
    new Map([
      ['cron', normal],
      ['command', command],
    ]),
  );
}

/** A disk of an application. */
export function importDisk(
  run: ImportRun,
  application: Application,
  { name, path, size }: { name: Node | undefined; path: Node | undefined; size: Node | undefined },
  place: Place,
): void {
  const at = nodeText(path);
  const text = nodeText(size);
  if (at === null) return note(run, place, 'A volume needs a path.', 'mount_path');
  const wish = { name: nodeText(name) ?? `${application.name}-data`, application, path: at };
  addVolume(run, { ...wish, gigabytes: text === null ? null : gigabytesOf(text, 'g') }, place);
}
