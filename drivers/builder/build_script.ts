// The shell script of a build, and its environment variables.
import type { BuildDirectories, BuildPlan } from '../builder';
import { majorOf } from '../toolchain/versions';
import type { RegistrySettings } from '../toolchain';
import { shellWord } from './language_plan';

/** Programs read it as an empty file, and pip no other of its files. */
const NO_FILE = '/dev/null';
/** Sourced by the runtime in each unit, if it exists. */
const PROFILE = '.platform/profile';

/**
 * Runs all steps, prints `-----> name` before each and ends at the first failure.
 * @param tools program directories of the plan
 * @param before lines before the first step
 */
export function buildScript(
  { steps, programs = [] }: BuildPlan,
  tools: string[],
  files: RegistrySettings['files'],
  before: string[] = [],
): string {
  const lines = steps.flatMap(({ name, command }) => [
    `printf '%s\\n' ${shellWord(`-----> ${name}`)}`,
    // Each command runs in its own shell, so that its variables, directory changes and exits do not affect the next
    // step.
    `/bin/sh -c ${shellWord(command)} || {`,
    `code=$?; printf '%s\\n' ${shellWord(`${name} failed`)}" with exit code $code." >&2; exit "$code"`,
    '}',
  ]);
  return [
    // Merge stderr into stdout, to preserve the order of the lines.
    'exec 2>&1',
    'mkdir -p -- "$HOME" || exit 1',
    ...Object.entries(files).map(([name, text]) => `printf '%s\\n' ${text.map(shellWord).join(' ')} > "$HOME/${name}"`),
    ...(tools.length ? [`PATH=${shellWord(tools.join(':'))}":$PATH"; export PATH`] : []),
    ...before,
    ...lines,
    ...profileLines(programs, tools),
    '',
  ].join('\n');
}

/** PATH of the processes: programs of the source's packages first, then those of the plan. */
function profileLines(programs: string[], tools: string[]): string[] {
  const places = [...programs.map((directory) => `$PWD/${directory}`), ...tools].map((one) => `${one}:`).join('');
  if (places === '') return [];
  return [
    `mkdir -p .platform && printf '%s\\n' ${shellWord(`PATH="${places}$PATH"; export PATH`)} > ${PROFILE} || exit 1`,
  ];
}

/**
 * Variables that those of the user override. Settings that the host has for all its users may hold credentials: builds
 * get what is meant for them from the platform (docs/decisions/0220).
 */
export const buildDefaults: Record<string, string> = {
  CI: '1',
  npm_config_globalconfig: NO_FILE,
  PIP_CONFIG_FILE: NO_FILE,
};

export function buildEnvironment({ cache }: BuildDirectories, { tools = [] }: BuildPlan): Record<string, string> {
  return {
    HOME: `${cache}/home`,
    XDG_CACHE_HOME: `${cache}/xdg`,
    XDG_DATA_HOME: `${cache}/data`,
    npm_config_cache: `${cache}/npm`,
    npm_config_update_notifier: 'false',
    // With NODE_ENV=production, package managers would skip the development dependencies that the build needs.
    npm_config_include: 'dev',
    ...yarnSettings(cache, tools.find(({ name }) => name === 'yarn')?.version ?? null),
    BUN_INSTALL_CACHE_DIR: `${cache}/bun`,
    ...(tools.some(({ name }) => name === 'pnpm') && pnpmSettings(cache)),
    PIP_CACHE_DIR: `${cache}/pip`,
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    PIP_NO_INPUT: '1',
    POETRY_CACHE_DIR: `${cache}/poetry`,
    UV_CACHE_DIR: `${cache}/uv`,
    GOPATH: `${cache}/go`,
    GOMODCACHE: `${cache}/go/pkg/mod`,
    GOCACHE: `${cache}/go-build`,
  };
}

// From version 2 on, yarn rejects unknown settings. Packages that it does not unpack must stay with the files, since
// the application reads them at runtime; a copy is cached for the next build.
function yarnSettings(cache: string, version: string | null): Record<string, string> {
  if (version === null || majorOf(version) < 2) return { YARN_PRODUCTION: 'false', YARN_CACHE_FOLDER: `${cache}/yarn` };
  return {
    YARN_GLOBAL_FOLDER: `${cache}/yarn-global`,
    YARN_ENABLE_GLOBAL_CACHE: 'false',
    YARN_ENABLE_TELEMETRY: '0',
  };
}

// npm would warn of settings specific to pnpm. From version 11 on, pnpm reads its own prefix.
function pnpmSettings(cache: string): Record<string, string> {
  return {
    npm_config_store_dir: `${cache}/pnpm`,
    pnpm_config_store_dir: `${cache}/pnpm`,
    npm_config_production: 'false',
  };
}
