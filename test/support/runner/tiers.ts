// Which test files a run takes: docs/decisions/0160. A file that is too slow for every run says so in its first line:
//   /** @tier heavy @quarter 2 @covers drivers/database jobs/databases/database */
import path from 'node:path';
import { importsOf, resolveImport } from './imports';
import { readSource, repositoryFiles } from './repository';

/** `both`: in every run with few kills and inputs of a fixed seed, in the heavy tier with more of them. */
type Tier = 'every' | 'both' | 'heavy';
export const QUARTERS = [1, 2, 3, 4];
/** Heavy files that a run takes beside its quarter: a change of the foundations touches nearly all of them. */
export const TOUCHED_MAX = 4;

export interface Marks {
  tier: Tier;
  /** 1 to 4, null where the file is no heavy one. */
  quarter: number | null;
  /** Sources that the file tests over HTTP: files, or folders with all below them. */
  covers: string[];
}

/** What differs for an ordinary user: users of tenants, sandboxes, mounts, networks, low ports, and a whole start. */
export const USER_ROOMS = [
  ...[
    'drivers/release_image',
    'drivers/runtime',
    'drivers/network',
    'drivers/volume',
    'drivers/database',
    'drivers/hosted_server',
  ],
  ...['drivers/endpoint', 'drivers/builder', 'drivers/toolchain', 'server/platform/embedded/', 'server/main.ts'],
  ...[
    'tools/scripts/start.mjs',
    'tools/scripts/setup.mjs',
    'server/operator/main.ts',
    'server/operator/doctor.ts',
    'server/backup/',
    'core/directory.ts',
  ],
];

const files = repositoryFiles();
const known = new Set(files);
/** Run by the first user only: engines and programs of others, and what looks at the sources. */
const OF_ONE_USER = /^test\/(clients|contract|engines|kubernetes|sources|starters|suites)\//;
const isOfOneUser = (file: string): boolean => OF_ONE_USER.test(file);

/** All test files, but those inside of the starters' applications. */
export const testFiles: readonly string[] = files.filter(
  (file) => /^test\/.*\.test\.ts$/.test(file) && !/^test\/(starters|clients)\/[^/]+\//.test(file),
);

/** @throws Error where the first line of the file is malformed */
export function marksOf(file: string): Marks {
  const [, text] = /^\/\*\* (@tier .*) \*\/\n/.exec(readSource(file)) ?? [];
  if (text === undefined) return { tier: 'every', quarter: null, covers: [] };
  const [, tier, quarter, covers] =
    /^@tier (heavy|both) @quarter ([1-4]) @covers (\S+(?: [^@\s]+)*)$/.exec(text) ?? malformed(file);
  return { tier: tier as Tier, quarter: Number(quarter), covers: (covers as string).split(' ') };
}

export const everyRun = (): string[] => testFiles.filter((file) => marksOf(file).tier !== 'heavy');

export const heavyFiles = (): string[] => testFiles.filter((file) => marksOf(file).tier !== 'every');

/** The heavy files of a quarter. */
export const heavyOf = (quarter: number): string[] => heavyFiles().filter((file) => marksOf(file).quarter === quarter);

/**
 * Files that can differ for an ordinary user: these heavy ones, and of the suite those that the change touches most, up
 * to TOUCHED_MAX. Where root has the run without optional programs, a half of the suite, too; the other run of that
 * kind has the other half.
 */
export function userFiles(quarter: number, heavy: readonly string[], changed: readonly string[]): string[] {
  const differing = (files: readonly string[]): string[] =>
    files.filter((file) => !isOfOneUser(file) && differsByUser(file));
  const suite = differing(everyRun());
  const taken = isBareForUser(quarter) ? touchedMost(suite, changed) : halfWithTouched(suite, quarter, changed);
  return [...new Set([...taken, ...differing(heavy)])];
}

/** A half of these files, and of the other one those that the change touches most. */
function halfWithTouched(files: readonly string[], quarter: number, changed: readonly string[]): string[] {
  const half = files.filter((file) => halfOf(quarterOf(file)) === halfOf(quarter));
  const others = files.filter((file) => !half.includes(file));
  return [...half, ...touchedMost(others, changed)];
}

/** Whether the suite runs without optional programs as an ordinary user in this quarter; else it does as root. */
export const isBareForUser = (quarter: number): boolean => quarter % 2 === 0;

const halfOf = (quarter: number): number => Math.ceil(quarter / 2);

/** That of its mark; without one, by its name. */
function quarterOf(file: string): number {
  const sum = [...file].reduce((total, letter) => total + letter.charCodeAt(0), 0);
  return marksOf(file).quarter ?? (sum % QUARTERS.length) + 1;
}

/**
 * What a machine with Node and git alone has to do: half of the suite, as `npm test` runs it, and of starts. The run
 * two quarters later has the other half as the same user; both halves as both users have run after four.
 */
export function bareFiles(quarter: number, changed: readonly string[]): string[] {
  const starts = testFiles.filter((file) => /^test\/server\/(npm_)?start/.test(file));
  return halfWithTouched([...new Set([...everyRun(), ...starts])], quarter, changed);
}

/** What a file is about cannot differ, though it reaches a room that can: plans, caches, the loop. */
const SAME_FOR_ANY_USER = '/** @user any */\n';

export function differsByUser(file: string): boolean {
  const source = readSource(file);
  if (source.replace(/^\/\*\* @tier .*\n/, '').startsWith(SAME_FOR_ANY_USER)) return false;
  return source.includes('getuid') || reachOf(file).some((source) => USER_ROOMS.some((room) => isWithin(source, room)));
}

/** Without a change here no cluster is built outside of its quarter: that takes five minutes of one processor. */
const ON_CLUSTER = /^(?:drivers\/(?:workload\/)?kubernetes|test\/(?:support\/)?kubernetes|test\/cluster)\//;

export interface Turn {
  files: string[];
  /** Outside of the quarter, run because of what is changed. */
  touched: string[];
  /** Touched, and left to the runs that follow. */
  left: string[];
}

/**
 * The heavy files of one run: those of the quarter, and of the others up to TOUCHED_MAX that the change touches: those
 * that are changed themselves, then those that most of the changed files touch. Files of both tiers are in every run.
 */
export function heavyTurn(quarter: number, changed: readonly string[]): Turn {
  const ofQuarter = heavyOf(quarter);
  const isOnCluster = changed.some((file) => ON_CLUSTER.test(file));
  const others = mostTouched(
    heavyFiles()
      .filter((file) => !ofQuarter.includes(file) && marksOf(file).tier === 'heavy')
      .filter((file) => isOnCluster || !ON_CLUSTER.test(file)),
    changed,
  );
  const touched = others.slice(0, TOUCHED_MAX);
  return {
    files: [...ofQuarter, ...touched],
    touched,
    left: others.slice(TOUCHED_MAX),
  };
}

const touchedMost = (files: readonly string[], changed: readonly string[]): string[] =>
  mostTouched(files, changed).slice(0, TOUCHED_MAX);

/** Of these files those that a change touches: first those that are changed themselves, then by how much is theirs. */
function mostTouched(files: readonly string[], changed: readonly string[]): string[] {
  return files
    .map((file) => ({ file, isChanged: Number(changed.includes(file)), touches: touchesOf(file, changed) }))
    .filter(({ touches }) => touches > 0)
    .sort((a, b) => b.isChanged - a.isChanged || b.touches - a.touches)
    .map(({ file }) => file);
}

/** How many of the changed files are the test, files of the tests that it uses, or lie where what it tests does. */
export function touchesOf(file: string, changed: readonly string[]): number {
  const reach = reachOf(file);
  const rooms = [...marksOf(file).covers, ...reach.filter((source) => !source.startsWith('test/')).map(roomOf)];
  return changed.filter((one) => reach.includes(one) || rooms.some((room) => isWithin(one, room))).length;
}

/** A source stands for its folder; one of the top of a layer for itself and the folder of its name. */
function roomOf(source: string): string {
  const folder = path.dirname(source);
  return folder.includes('/') ? `${folder}/` : source.replace(/\.\w+$/, '');
}

/** `drivers/volume` is drivers/volume.ts and all below drivers/volume/. */
function isWithin(file: string, room: string): boolean {
  return file === room || file.startsWith(room.endsWith('/') ? room : `${room}/`) || file === `${room}.ts`;
}

const reaches = new Map<string, string[]>();

/** The test and what it imports or starts as a program, through files of the tests, up to the first sources. */
function reachOf(file: string): string[] {
  const found = reaches.get(file) ?? [...walk(file)];
  reaches.set(file, found);
  return found;
}

function walk(start: string): Set<string> {
  const seen = new Set<string>();
  const waiting = [start];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    if (/^test\/.*\.(ts|js)$/.test(file)) waiting.push(...neighboursOf(file));
  }
  return seen;
}

function neighboursOf(file: string): string[] {
  const imported = importsOf(file)
    .filter(({ target, typeOnly }) => target.startsWith('.') && !typeOnly)
    .map(({ target }) => resolveImport(file, target, known));
  // Programs that a test starts are named by their path, from the root or from the file.
  const named = [...readSource(file).matchAll(/'([\w./-]+\.(?:ts|js|mjs))'/g)].flatMap(([, name = '']) => [
    path.normalize(name),
    path.join(path.dirname(file), name),
  ]);
  return [...imported, ...named].flatMap((one) => [one, `${one}.js`].filter((candidate) => known.has(candidate)));
}

function malformed(file: string): never {
  throw new Error(`${file}: its first line is malformed (expected "/** @tier heavy @quarter 2 @covers PATH... */")`);
}
