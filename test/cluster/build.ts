// The programs of a cluster of tests: made once for each version of their sources, and kept in a cache of this user.
// From nothing the build takes five minutes of processor time and 1 GB of modules, then half a minute. As a program it
// builds them ahead of tests:
//   node --require ./test/support/runner/typescript.js test/cluster/build.ts
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

export interface ClusterPrograms {
  /** apiserver, controller-manager, scheduler, kubelet and proxy in one. */
  kubernetes: string;
  /** Static: what test images consist of. */
  program: string;
  /** Of Kubernetes, as in `v1.34.4`. */
  version: string;
}

const SOURCES = ['go.mod', 'go.sum', 'main.go', 'program/go.mod', 'program/main.go'];
const CACHE = path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'platform-api/test-cluster');
/**
 * Two thirds of the processor time of Go's defaults: nothing is inlined, a debugger is told nothing, and the compiler
 * collects its garbage later.
 */
const FLAGS = ['-gcflags', 'all=-l -dwarf=false'];
const GOGC = '800';
/** Where the archives of go.dev are unpacked. */
const PATH = `${process.env.PATH ?? ''}:/usr/local/go/bin`;

/** How Go builds what tests run, so that packages which two of them have are built once. */
export const GO_BUILD = { flags: FLAGS, env: { PATH, GOGC } };

/** The programs of these sources; null where they have not been built. */
export function builtPrograms(): ClusterPrograms | null {
  const programs = programsIn(path.join(CACHE, digestOfSources()));
  return existsSync(programs.kubernetes) && existsSync(programs.program) ? programs : null;
}

/** Builds what has not been built. @throws Error with the output of Go */
export async function buildPrograms(): Promise<ClusterPrograms> {
  const { kubernetes, version } = programsIn(path.join(CACHE, digestOfSources()));
  // Without a version kubectl cannot parse the answer of /version, and features have no default.
  const [major, minor] = version.slice(1).split('.');
  const stamps = { gitVersion: version, gitMajor: major, gitMinor: minor };
  const stamp = Object.entries(stamps).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  await buildOnce('.', kubernetes, stamp, {});
  return { kubernetes, version, program: await buildTestProgram() };
}

/** @returns the path of the program that test images consist of */
export async function buildTestProgram(): Promise<string> {
  const { program } = programsIn(path.join(CACHE, digestOfSources()));
  await buildOnce('program', program, [], { CGO_ENABLED: '0' });
  return program;
}

function programsIn(directory: string): ClusterPrograms {
  const [, version = ''] =
    /k8s\.io\/kubernetes (v\S+)/.exec(readFileSync(path.join(__dirname, 'go.mod'), 'utf8')) ?? [];
  return { kubernetes: path.join(directory, 'kubernetes'), program: path.join(directory, 'program'), version };
}

function digestOfSources(): string {
  const hash = createHash('sha256');
  for (const file of SOURCES) hash.update(readFileSync(path.join(__dirname, file)));
  return hash.digest('hex').slice(0, 16);
}

/** Another process may build the same meanwhile: the second waits for the first, and takes what it made. */
async function buildOnce(
  folder: string,
  output: string,
  flags: readonly string[],
  env: Record<string, string>,
): Promise<void> {
  if (existsSync(output)) return;
  removeOthers(path.dirname(output));
  const draft = `${output}.draft`;
  const linked = ['-ldflags', ['-s -w', ...flags].join(' ')];
  const build = ['nice', '-n', '10', 'go', 'build', ...FLAGS, ...linked, '-o', draft, '.'];
  const script = '[ -e "$1" ] || { "${@:2}" && mv "$1.draft" "$1"; }';
  const options = {
    cwd: path.join(__dirname, folder),
    env: { ...process.env, PATH, GOGC, ...env },
    maxBuffer: 1 << 26,
  };
  const lock = `${output}.lock`;
  await promisify(execFile)('flock', [lock, 'bash', '-c', script, 'build', output, ...build], options);
}

/** Programs of sources that are not these. */
function removeOthers(directory: string): void {
  mkdirSync(directory, { recursive: true });
  for (const name of readdirSync(CACHE).filter((one) => one !== path.basename(directory)))
    rmSync(path.join(CACHE, name), { recursive: true, force: true });
}

if (require.main === module)
  buildPrograms().catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
