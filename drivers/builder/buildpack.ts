// Plans builds with the languages of the host and of the npm registry. A plan is shell commands for a unit.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { BuildError, type BuildDriver, type BuildPlan, type BuildSettings } from '../builder';
import type { ToolchainDriver } from '../toolchain';
import { buildEnvironment, buildScript } from './build_script';
import { planDockerfile } from './dockerfile';
import { detectGo } from './go';
import { detectNode } from './node';
import { shellWord, type BuildHost, type DetectLanguage, type LanguagePlan, type Step } from './language_plan';
import { parseProcfile } from './procfile';
import { detectPython } from './python';
import { openFiles, type SourceFiles } from './source_files';
import { detectStaticSite, siteOfCustomBuild } from './static_site';

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

/** The builder of this host. It keeps nothing beside the programs of the toolchains. */
export function openBuilder(toolchains: ToolchainDriver): BuildDriver {
  return {
    detect: (directory, settings, facts, ctx) => detect(directory, settings, { facts, toolchains, ctx }),
    ensureTools: ({ tools = [] }, ctx) => toolchains.ensure(tools, ctx),
    async task(plan, directories, ctx) {
      const { files, env } = await toolchains.registry(ctx);
      const tools = (plan.tools ?? []).map((tool) => toolchains.binDirectory(tool));
      return { command: buildScript(plan, tools, files), env: buildEnvironment(directories, plan), defaults: env };
    },
  };
}

async function detect(directory: string, settings: BuildSettings, host: BuildHost): Promise<BuildPlan> {
  const files = await openFiles(directory, settings.root_directory);
  if (settings.builder === 'dockerfile') return planDockerfile(files, settings, host.facts);
  const text = await files.read('Procfile');
  if (settings.build_command !== null) return planCustomBuild(settings.build_command, text, files, host);
  if (text !== null) return planProcfile(text, files, host);
  const found = await detectFirst(files, host);
  if (found !== null) return toBuildPlan(found);
  if (await files.has(settings.dockerfile_path)) return planDockerfile(files, settings, host.facts);
  const place = settings.root_directory === '.' ? 'the source' : settings.root_directory;
  throw new BuildError(
    `The platform found nothing to build or start in ${place}. ` +
      'Add a Procfile, a package.json with a start script, an index.html, a requirements.txt or a go.mod.',
  );
}

async function planCustomBuild(
  command: string,
  procfile: string | null,
  files: SourceFiles,
  host: BuildHost,
): Promise<BuildPlan> {
  const step: Step = { name: 'Build command', command };
  if (procfile !== null) return { ...(await planProcfile(procfile, files, host, [step])), kind: 'custom' };
  const found = (await detectFirst(files, host)) ?? { ...emptyPlan, ...siteOfCustomBuild() };
  const site = found.site.length ? siteOfCustomBuild().site : [];
  return {
    ...toBuildPlan({
      ...found,
      summary: [...found.summary.slice(0, 1), 'build command'],
      steps: [step],
      site,
      prune: null,
    }),
    kind: 'custom',
  };
}

async function planProcfile(text: string, files: SourceFiles, host: BuildHost, instead?: Step[]): Promise<BuildPlan> {
  const { processes, release_command } = parseProcfile(text);
  // All languages that the files speak: a Procfile may start any of them.
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

/** The first language that knows what to start, with what those before it have to build; the first where none knows. */
async function detectFirst(files: SourceFiles, host: BuildHost): Promise<LanguagePlan | null> {
  const before: LanguagePlan[] = [];
  for (const look of [detectNode, detectStaticSite, detectPython, detectGo]) {
    const part = await look(files, host);
    if (part === null) continue;
    before.push(part);
    if (Object.keys(part.processes).length > 0) return mergePlans(before);
  }
  return before[0] ?? null;
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
    }),
    emptyPlan,
  );
}

function toBuildPlan(found: LanguagePlan, releaseCommand: string | null = null): BuildPlan {
  const { kind, summary, tools, steps, site, prune, processes, env, programs } = found;
  const commands = [...Object.values(processes), ...(releaseCommand === null ? [] : [releaseCommand])];
  return {
    kind,
    summary: summary.join(', '),
    tools: tools.filter(({ name }, i) => tools.findIndex((other) => other.name === name) === i),
    steps: [...steps, ...site, ...(prune === null ? [] : [pruneStep(prune, commands)])],
    programs,
    processes,
    release_command: releaseCommand,
    env,
  };
}

/** A build that succeeded does not fail because it is larger than it must be. */
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
