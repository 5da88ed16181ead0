// The standard library of a Go, compiled once for all applications of the host: the first build of each would compile
// it for minutes. A build links to these files and cannot change them; what it compiles itself stays in its own cache.
import { execFile } from 'node:child_process';
import { mkdir, readdir, rename } from 'node:fs/promises';
import path from 'node:path';

interface Go {
  version: string;
  /** Path of the program. */
  program: string;
}

const COMPILED_MS = 15 * 60_000;
/** As in the cache of Go: `-a` names what an action made, `-d` is what it made (cmd/go/internal/cache). */
const INDEX = 'index';
const DATA = 'data';

/** Name of its directory in the store. */
export function libraryName({ version }: Pick<Go, 'version'>): string {
  return `go-library-${version}`;
}

/** Writes both parts of the cache to `prefix`. @throws where it does not compile */
export async function compileLibrary(
  { program }: Go,
  { staging, prefix }: { staging: string; prefix: string },
  signal: AbortSignal,
): Promise<void> {
  const cache = path.join(staging, 'cache');
  // Nothing of the host's settings: they would be part of the names of what is made.
  const env = {
    PATH: `${path.dirname(program)}:/usr/local/bin:/usr/bin:/bin`,
    ...{ HOME: staging, GOCACHE: cache, GOPATH: path.join(staging, 'go'), GOENV: 'off', LC_ALL: 'C' },
    ...{ GOTOOLCHAIN: 'local', GOPROXY: 'off', GOFLAGS: '', GO111MODULE: 'on', GOWORK: 'off' },
  };
  await new Promise<void>((resolve, reject) =>
    execFile(
      '/bin/sh',
      ['-c', 'umask 022; exec nice -n 10 "$0" build std', program],
      { env, cwd: staging, signal, timeout: COMPILED_MS, killSignal: 'SIGKILL' },
      (error) =>
        error === null
          ? resolve()
          : reject(new Error('The standard library of Go does not compile.', { cause: error })),
    ),
  );
  for (const [part, suffix] of [
    [INDEX, '-a'],
    [DATA, '-d'],
  ] as const)
    await takePart(cache, path.join(prefix, part), suffix);
}

async function takePart(cache: string, target: string, suffix: string): Promise<void> {
  for (const entry of await readdir(cache, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const files = (await readdir(path.join(cache, entry.name))).filter((name) => name.endsWith(suffix));
    await mkdir(path.join(target, entry.name), { recursive: true, mode: 0o755 });
    for (const file of files) await rename(path.join(cache, entry.name, file), path.join(target, entry.name, file));
  }
}

/**
 * Lines of a build script, before Go runs: entries that the cache of the build lacks. Links to the data, which Go only
 * reads; copies of the index, which it may write.
 */
export function useLibrary(directory: string): string[] {
  const part = (name: string): string => `'${path.join(directory, name).replaceAll("'", String.raw`'\''`)}/.'`;
  return [
    // Go would write through a link whose target has been removed.
    '[ ! -d "$GOCACHE" ] || find -L "$GOCACHE" -type l -exec rm -f {} + 2>/dev/null',
    `if [ -d ${part(DATA)} ] && mkdir -p "$GOCACHE"; then`,
    `cp -Rsn ${part(DATA)} "$GOCACHE/" 2>/dev/null`,
    `cp -Rn ${part(INDEX)} "$GOCACHE/" 2>/dev/null`,
    'fi',
  ];
}
