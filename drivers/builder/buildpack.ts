// Plans builds with the languages of the host and of the npm registry. A plan is shell commands for a unit of the runtime.
import type { HostFacts } from '../../core/host_facts';
import { BuildError, type BuildDriver, type BuildDirectories, type BuildPlan, type BuildSettings } from '../builder';
import { detectGo } from './go';
import { detectNode } from './node';
import { quoted, type DetectLanguage, type LanguagePlan, type Step } from './language_plan';
import { parseProcfile } from './procfile';
import { detectPython } from './python';
import { openFiles, type SourceFiles } from './source_files';
import { detectStaticSite, siteOfCustomBuild } from './static_site';

/** Read by the runtime in each unit, where it is there. */
const profile = '.platform/profile';

const languages = [detectNode, detectPython, detectGo];
const emptyPlan: LanguagePlan = {
  kind: 'procfile',
  summary: [],
  steps: [],
  site: [],
  processes: {},
  env: {},
  programs: [],
};

/** The builder of this host. It keeps nothing. */
export function openBuilder(): BuildDriver {
  return { detect, script, environment };
}

async function detect(directory: string, settings: BuildSettings, facts: HostFacts): Promise<BuildPlan> {
  const files = await openFiles(directory, settings.root_directory);
  if (settings.builder === 'dockerfile') throw await dockerfileError(files, settings.dockerfile_path, facts);
  const text = await files.read('Procfile');
  if (settings.build_command !== null) return planCustomBuild(settings.build_command, text, files, facts);
  if (text !== null) return planProcfile(text, files, facts);
  const found = await detectFirst(files, facts);
  if (found !== null) return toBuildPlan(found);
  if (await files.has(settings.dockerfile_path)) throw await dockerfileError(files, settings.dockerfile_path, facts);
  throw new BuildError(
    `The platform found nothing to build or start in ${settings.root_directory === '.' ? 'the source' : settings.root_directory}. Add a Procfile, a package.json with a start script, an index.html, a requirements.txt or a go.mod.`,
  );
}

async function planCustomBuild(
  command: string,
  procfile: string | null,
  files: SourceFiles,
  facts: HostFacts,
): Promise<BuildPlan> {
  const step: Step = { name: 'Build command', command };
  if (procfile !== null) return { ...(await planProcfile(procfile, files, facts, [step])), kind: 'custom' };
  const found = (await detectFirst(files, facts)) ?? { ...emptyPlan, ...siteOfCustomBuild() };
  const site = found.site.length ? siteOfCustomBuild().site : [];
  return {
    ...toBuildPlan({ ...found, summary: [...found.summary.slice(0, 1), 'build command'], steps: [step], site }),
    kind: 'custom',
  };
}

async function planProcfile(text: string, files: SourceFiles, facts: HostFacts, instead?: Step[]): Promise<BuildPlan> {
  const { processes, release_command } = parseProcfile(text);
  // All languages that the files speak: a Procfile may start any of them.
  const found = mergePlans(await detectAll(languages, files, facts));
  const words = instead ? [...found.summary.slice(0, 1), 'build command'] : found.summary;
  return {
    ...toBuildPlan({
      ...found,
      kind: 'procfile',
      summary: ['Procfile', ...words],
      steps: instead ?? found.steps,
      site: [],
      processes,
    }),
    release_command,
  };
}

/** The first language that knows what to start, with what those before it have to build; the first one where none knows. */
async function detectFirst(files: SourceFiles, facts: HostFacts): Promise<LanguagePlan | null> {
  const before: LanguagePlan[] = [];
  for (const look of [detectNode, detectStaticSite, detectPython, detectGo]) {
    const part = await look(files, facts);
    if (part === null) continue;
    before.push(part);
    if (Object.keys(part.processes).length > 0) return mergePlans(before);
  }
  return before[0] ?? null;
}

async function detectAll(looks: DetectLanguage[], files: SourceFiles, facts: HostFacts): Promise<LanguagePlan[]> {
  const found = await Promise.all(looks.map((look) => look(files, facts)));
  return found.filter((part) => part !== null);
}

function mergePlans(parts: LanguagePlan[]): LanguagePlan {
  return parts.reduce(
    (before, part) => ({
      kind: part.kind,
      summary: [...before.summary, ...part.summary],
      steps: [...before.steps, ...part.steps],
      site: [...before.site, ...part.site],
      processes: { ...before.processes, ...part.processes },
      env: { ...before.env, ...part.env },
      programs: [...before.programs, ...part.programs],
    }),
    emptyPlan,
  );
}

function toBuildPlan({ kind, summary: words, steps, site, processes, env, programs }: LanguagePlan): BuildPlan {
  const places = programs.map((directory) => `$PWD/${directory}:`).join('');
  const write: Step[] =
    places === ''
      ? []
      : [
          {
            name: 'Profile',
            command: `mkdir -p .platform && echo ${quoted(`PATH="${places}$PATH"; export PATH`)} > ${profile}`,
          },
        ];
  return {
    kind,
    summary: words.join(', '),
    steps: [...steps, ...site, ...write],
    processes,
    release_command: null,
    env,
  };
}

async function dockerfileError(
  files: SourceFiles,
  dockerfile: string,
  { oci_builders }: HostFacts,
): Promise<BuildError> {
  if (!(await files.has(dockerfile)))
    return new BuildError(
      `The source has no ${dockerfile}. Check build.dockerfile_path in the settings of the application.`,
    );
  const instead = 'Use the builder `buildpack` with a Procfile, or one of the languages of this platform.';
  const [found] = oci_builders;
  if (found !== undefined)
    return new BuildError(`This platform has ${found}, but it cannot run images yet. ${instead}`);
  return new BuildError(`A Dockerfile needs podman, buildah or docker, which this platform does not have. ${instead}`);
}

function script({ steps }: BuildPlan): string {
  const lines = steps.flatMap(({ name, command }) => [
    `printf '%s\\n' ${quoted(`-----> ${name}`)}`,
    // A shell of its own: whatever the command sets, leaves or exits, the next step is not the worse for it.
    `/bin/sh -c ${quoted(command)} || { code=$?; printf '%s\\n' ${quoted(`${name} failed`)}" with exit code $code." >&2; exit "$code"; }`,
  ]);
  return ['mkdir -p -- "$HOME" || exit 1', ...lines, ''].join('\n');
}

function environment({ cache }: BuildDirectories): Record<string, string> {
  return {
    CI: '1',
    HOME: `${cache}/home`,
    XDG_CACHE_HOME: `${cache}/xdg`,
    npm_config_cache: `${cache}/npm`,
    npm_config_update_notifier: 'false',
    npm_config_store_dir: `${cache}/pnpm`,
    YARN_CACHE_FOLDER: `${cache}/yarn`,
    YARN_GLOBAL_FOLDER: `${cache}/yarn-global`,
    COREPACK_HOME: `${cache}/corepack`,
    PIP_CACHE_DIR: `${cache}/pip`,
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    PIP_NO_INPUT: '1',
    GOPATH: `${cache}/go`,
    GOMODCACHE: `${cache}/go/pkg/mod`,
    GOCACHE: `${cache}/go-build`,
  };
}
