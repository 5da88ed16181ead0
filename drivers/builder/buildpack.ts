// Plans builds with languages installed on the host or downloaded. A plan is a list of shell commands for a unit.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  BUILD_COMMAND,
  BuildError,
  type BuildDriver,
  type BuildPlan,
  type BuildSettings,
  type PlanKind,
} from '../builder';
import type { ToolchainDriver } from '../toolchain';
import { buildDefaults, buildEnvironment, buildScript } from './build_script';
import { canBuildImages, planDockerfile } from './dockerfile/dockerfile';
import { detectGo } from './go';
import { detectNode, detectNodeFile } from './node/node';
import {
  shellWord,
  type BuildHost,
  type DetectLanguage,
  type LanguagePlan,
  type PreferredNode,
  type PreferredPython,
  type Step,
} from './language_plan';
import { parseProcfile } from './procfile';
import { detectPython } from './python/python';
import { developmentNote } from './python/python_server';
import { runTimeTools } from './run_time_tools';
import { openFiles, type SourceFiles } from './source_files';
import { findSiteDirectory, OUTPUT_DIRECTORIES, planSite, siteOfBuild, siteOfCustomBuild } from './static/static_site';
import {
  findNestedServer,
  findNestedSource,
  findUnbuiltSource,
  shownFile,
  unbuiltSourceError,
  type UnbuiltSource,
} from './unbuilt_source';

const languages = [detectNode, detectPython, detectGo];
const emptyPlan: LanguagePlan = {
  kind: 'procfile',
  summary: [],
  tools: [],
  steps: [],
  site: [],
  prune: null,
  processes: {},
  env: {},
  programs: [],
};

/** The builder of this host. Its only state are the programs of the toolchains. */
export function openBuilder(
  toolchains: ToolchainDriver,
  preferredNode: PreferredNode = 'long_term',
  preferredPython: PreferredPython = 'newest',
  isPortable = false,
): BuildDriver {
  const preferred = { preferredNode, preferredPython, isPortable };
  return {
    detect: (directory, settings, facts, ctx) => detect(directory, settings, { facts, toolchains, ...preferred, ctx }),
    ensureTools: ({ tools = [] }, ctx) => toolchains.ensure(tools, ctx),
    runTimeTools: (plan, commands, facts) => runTimeTools(plan, commands, facts, toolchains),
    async task(plan, directories, ctx) {
      const { files, env } = await toolchains.registry(ctx);
      const tools = (plan.tools ?? []).map((tool) => toolchains.binDirectory(tool));
      return {
        command: buildScript(plan, tools, files),
        env: buildEnvironment(directories, plan),
        defaults: { ...buildDefaults, ...env },
      };
    },
  };
}

async function detect(directory: string, settings: BuildSettings, host: BuildHost): Promise<BuildPlan> {
  const files = await openFiles(directory, settings.root_directory);
  if (settings.builder === 'dockerfile') return planDockerfile(files, settings, host.facts);
  const text = await files.read('Procfile');
  if (settings.build_command !== null) return planCustomBuild(settings.build_command, text, files, host);
  if (text !== null) return planProcfile(text, files, host);
  const found = await planSource(files, settings, host);
  if (found !== null) return found;
  const place = settings.root_directory === '.' ? 'the source' : settings.root_directory;
  throw new BuildError(
    `The platform found nothing to build or start in ${place}. ` +
      'Add a Procfile, a package.json with a start script, an index.html, a requirements.txt or a go.mod.',
  );
}

/** Programs take precedence: a site is served only if the files contain no program, whose source it would publish. */
async function planSource(files: SourceFiles, settings: BuildSettings, host: BuildHost): Promise<BuildPlan | null> {
  const parts = await detectUntilStart(files, host);
  if (parts.some(startsSomething)) return toBuildPlan(mergePlans(parts));
  const site = await findSiteDirectory(files);
  const unbuilt = await findUnbuilt(files, parts, site);
  const isMixed = unbuilt !== null || parts.some(({ kind }) => kind !== 'node');
  const hasDockerfile = await files.has(settings.dockerfile_path);
  if (parts.some(({ hasBuildScript }) => hasBuildScript) && !(isMixed && hasDockerfile))
    return planBuiltSite(mergePlans(parts), unbuilt);
  if (hasDockerfile && (site !== null || unbuilt !== null || parts.length === 0))
    return planDockerfile(files, settings, host.facts);
  if (unbuilt !== null && (site !== null || parts.length === 0))
    throw unbuiltSourceError(unbuilt, site !== null, canBuildImages(host.facts));
  if (site !== null && !isMixed) {
    const server = site === '.' ? await findNestedServer(files) : null;
    if (server !== null) throw unbuiltSourceError(server, true, canBuildImages(host.facts));
    return withNote(mergePlans([...parts, planSite(site)]), await nestedNote(files, site));
  }
  return parts.length > 0 ? toBuildPlan(mergePlans(parts)) : null;
}

/** Only the output of the build script is a site: the root directory holds its sources. */
function planBuiltSite(merged: LanguagePlan, unbuilt: UnbuiltSource | null): BuildPlan {
  const site = siteOfBuild(siteDirectories(merged));
  const plan: LanguagePlan = {
    ...merged,
    ...site,
    kind: 'static',
    summary: [...merged.summary, 'static site'],
    prune: null,
  };
  return withNote(plan, unbuilt && noteOf(unbuilt));
}

function siteDirectories({ siteDirectories: known = [] }: LanguagePlan): string[] {
  return [...known, ...OUTPUT_DIRECTORIES];
}

async function planCustomBuild(
  command: string,
  procfile: string | null,
  files: SourceFiles,
  host: BuildHost,
): Promise<BuildPlan> {
  const step: Step = { name: BUILD_COMMAND, command };
  if (procfile !== null) return { ...(await planProcfile(procfile, files, host, [step])), kind: 'custom' };
  const parts = await detectUntilStart(files, host);
  const found = mergePlans(parts);
  const site = parts.some(startsSomething) ? {} : siteOfCustomBuild(siteDirectories(found));
  return {
    ...toBuildPlan({
      ...found,
      summary: [...found.summary.slice(0, 1), 'build command'],
      steps: [step],
      ...site,
      prune: null,
    }),
    kind: 'custom',
  };
}

async function planProcfile(text: string, files: SourceFiles, host: BuildHost, instead?: Step[]): Promise<BuildPlan> {
  const { processes, release_command } = parseProcfile(text);
  // All detected languages: a Procfile may start any of them.
  const found = mergePlans(await detectAll(languages, files, host));
  const words = instead ? [...found.summary.slice(0, 1), 'build command'] : found.summary;
  const plan: LanguagePlan = {
    ...found,
    kind: 'procfile',
    summary: ['Procfile', ...words],
    steps: instead ?? found.steps,
    site: [],
    prune: instead ? null : found.prune,
    processes,
  };
  return toBuildPlan(plan, release_command);
}

/** Detected languages, up to the first one with a start command: earlier ones only contribute to the build. */
async function detectUntilStart(files: SourceFiles, host: BuildHost): Promise<LanguagePlan[]> {
  const parts: LanguagePlan[] = [];
  for (const look of [...languages, detectNodeFile]) {
    const part = await look(files, host);
    if (part !== null) parts.push(part);
    if (part !== null && startsSomething(part)) break;
  }
  return parts;
}

function startsSomething({ processes }: LanguagePlan): boolean {
  return Object.keys(processes).length > 0;
}

const NAMES: Partial<Record<PlanKind, string>> = { node: 'Node.js', python: 'Python', go: 'Go' };

function findUnbuilt(files: SourceFiles, parts: LanguagePlan[], site: string | null): Promise<UnbuiltSource | null> {
  const known = parts.flatMap(({ kind }) => NAMES[kind] ?? []);
  return findUnbuiltSource(files, site === 'public' ? ['.', 'public'] : ['.'], known);
}

async function nestedNote(files: SourceFiles, site: string): Promise<string | null> {
  const nested = await findNestedSource(files, site);
  return nested && noteOf(nested);
}

function noteOf(found: UnbuiltSource): string {
  return (
    `${shownFile(found)} (${found.language}) does not run: this deployment publishes a static site. ` +
    'To run a program, add a Procfile or a Dockerfile.'
  );
}

function withNote(plan: LanguagePlan, note: string | null): BuildPlan {
  return toBuildPlan({ ...plan, notes: [...(plan.notes ?? []), ...(note === null ? [] : [note])] });
}

async function detectAll(looks: DetectLanguage[], files: SourceFiles, host: BuildHost): Promise<LanguagePlan[]> {
  const found = await Promise.all(looks.map((look) => look(files, host)));
  return found.filter((part) => part !== null);
}

function mergePlans(parts: LanguagePlan[]): LanguagePlan {
  return parts.reduce(
    (before, part) => ({
      kind: part.kind,
      summary: [...before.summary, ...part.summary],
      tools: [...before.tools, ...part.tools],
      prune: part.prune ?? before.prune,
      steps: [...before.steps, ...part.steps],
      site: [...before.site, ...part.site],
      processes: { ...before.processes, ...part.processes },
      env: { ...before.env, ...part.env },
      programs: [...before.programs, ...part.programs],
      reasons: [...(before.reasons ?? []), ...(part.reasons ?? [])],
      notes: [...(before.notes ?? []), ...(part.notes ?? [])],
      siteDirectories: [...(before.siteDirectories ?? []), ...(part.siteDirectories ?? [])],
    }),
    emptyPlan,
  );
}

function toBuildPlan(found: LanguagePlan, releaseCommand: string | null = null): BuildPlan {
  const { kind, summary, tools, steps, site, prune, processes, env, programs } = found;
  const commands = [...Object.values(processes), ...(releaseCommand === null ? [] : [releaseCommand])];
  const notes = [...(found.notes ?? []), ...commands.map(developmentNote).filter((note) => note !== null)];
  return {
    kind,
    summary: summary.join(', '),
    ...(found.reasons?.length && { reasons: found.reasons }),
    ...(notes.length > 0 && { notes }),
    tools: tools.filter(({ name }, i) => tools.findIndex((other) => other.name === name) === i),
    steps: [...steps, ...site, ...(prune === null ? [] : [pruneStep(prune, commands)])],
    programs,
    processes,
    release_command: releaseCommand,
    env,
  };
}

/** Failure to prune does not fail a successful build. */
function pruneStep(command: string, commands: string[]): Step {
  const check = readFileSync(path.join(__dirname, 'development_check.js'), 'utf8').trimEnd();
  return {
    name: 'Remove development packages',
    command: [
      `node --input-type=commonjs - ${shellWord(JSON.stringify(commands))} <<'END_OF_CHECK' || exit 0`,
      check,
      'END_OF_CHECK',
      `${command} || echo 'The development packages could not be removed, so they stay.'`,
    ].join('\n'),
  };
}
