// Plans builds with languages installed on the host or downloaded. A plan is a list of shell commands for a unit.
import { BUILD_COMMAND, BuildError, type BuildDriver, type BuildPlan, type BuildSettings } from '../builder';
import type { ToolchainDriver } from '../toolchain';
import { buildDefaults, buildEnvironment, buildScript } from './build_script';
import { canBuildImages, planDockerfile } from './dockerfile/dockerfile';
import { detectLanguages, detectUntilStart, knownLanguages, startsSomething } from './detected_languages';
import type { BuildHost, LanguagePlan, PreferredNode, PreferredPython, Step } from './language_plan';
import { mergePlans, toBuildPlan } from './merged_plan';
import { parseProcfile, type Procfile } from './procfile';
import { describeFolders, describeGenerator } from './recognised_source';
import { runTimeTools } from './run_time_tools';
import { openFiles, type SourceFiles } from './source_files';
import {
  findOutputDirectories,
  findSiteDirectory,
  planSite,
  siteOfBuild,
  siteOfCustomBuild,
  siteOfSetting,
} from './static/static_site';
import {
  findNestedServer,
  findNestedSource,
  findUnbuiltApplication,
  findUnbuiltCommand,
  findUnbuiltSource,
  shownFile,
  unbuiltCommandError,
  unbuiltSourceError,
  type UnbuiltSource,
} from './unbuilt_source';

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
    async ensureTools({ tools = [], go }, ctx, onWork) {
      await toolchains.ensure(tools, ctx);
      if (go === undefined || (await toolchains.hasGoLibrary(go.version))) return;
      await onWork?.(
        `The standard library of Go ${go.version} is compiled now, once for all applications: that can take minutes.`,
      );
      await toolchains.ensureGoLibrary(go.version, go.program, ctx);
    },
    runTimeTools: (plan, commands, facts) => runTimeTools(plan, commands, facts, toolchains),
    async task(plan, directories, ctx) {
      const { files, env } = await toolchains.registry(ctx);
      const tools = (plan.tools ?? []).map((tool) => toolchains.binDirectory(tool));
      return {
        command: buildScript(plan, tools, files, plan.go ? toolchains.useGoLibrary(plan.go.version) : []),
        env: buildEnvironment(directories, plan),
        defaults: { ...buildDefaults, ...env },
      };
    },
  };
}

type Preferred = Pick<BuildHost, 'facts' | 'toolchains' | 'preferredNode' | 'preferredPython' | 'isPortable' | 'ctx'>;

async function detect(directory: string, settings: BuildSettings, preferred: Preferred): Promise<BuildPlan> {
  const files = await openFiles(directory, settings.root_directory);
  if (settings.builder === 'dockerfile') return planDockerfile(files, settings, preferred.facts);
  const text = await files.read('Procfile');
  const procfile = text === null ? null : parseProcfile(text);
  const { commands = {}, application_name = null, output_directory = null } = settings;
  const host = { ...preferred, applicationName: application_name, commands: { ...procfile?.processes, ...commands } };
  if (output_directory !== null) return planSiteOfSetting(output_directory, procfile, files, settings, host);
  if (settings.build_command !== null) return planCustomBuild(settings.build_command, procfile, files, host);
  if (procfile !== null) return planProcfile(procfile, files, settings, host);
  const found = await planSource(files, settings, host);
  if (found !== null) return found;
  const place = settings.root_directory === '.' ? 'the source' : settings.root_directory;
  const recognised = (await describeGenerator(files, canBuildImages(host.facts))) ?? (await describeFolders(files));
  throw new BuildError(
    recognised ??
      `The platform found nothing to build or start in ${place}. ` +
        'Add a Procfile, a package.json with a start script, an index.html, a requirements.txt, a go.mod or the like.',
  );
}

/** Programs take precedence: a site is served only if the files contain no program, whose source it would publish. */
async function planSource(files: SourceFiles, settings: BuildSettings, host: BuildHost): Promise<BuildPlan | null> {
  const hasDockerfile = await files.has(settings.dockerfile_path);
  const parts = await detectUntilStart(files, host, hasDockerfile && canBuildImages(host.facts));
  if (parts.some(startsSomething)) return toBuildPlan(mergePlans(parts));
  const site = await findSiteDirectory(files);
  const unbuilt = await findUnbuilt(files, parts, site);
  const isMixed = unbuilt !== null || parts.some(({ kind }) => kind !== 'node');
  if (parts.some(({ hasBuildScript }) => hasBuildScript) && !(isMixed && hasDockerfile)) {
    const application = await findUnbuiltApplication(files, knownLanguages(parts));
    if (application !== null) throw unbuiltSourceError(application, true, canBuildImages(host.facts));
    return planBuiltSite(files, parts, unbuilt);
  }
  if (hasDockerfile && (site !== null || unbuilt !== null || parts.length === 0))
    return planDockerfile(files, settings, host.facts);
  if (unbuilt !== null && (site !== null || parts.length === 0)) {
    const generator = site === null ? await describeGenerator(files, canBuildImages(host.facts)) : null;
    if (generator !== null) throw new BuildError(generator);
    throw unbuiltSourceError(unbuilt, site !== null, canBuildImages(host.facts));
  }
  if (site !== null && !isMixed) return planPlainSite(files, parts, site, host);
  return parts.length > 0 ? planWithoutStart(files, parts, host) : null;
}

async function planPlainSite(
  files: SourceFiles,
  parts: LanguagePlan[],
  site: string,
  host: BuildHost,
): Promise<BuildPlan> {
  const server = site === '.' ? await findNestedServer(files) : null;
  if (server !== null) throw unbuiltSourceError(server, true, canBuildImages(host.facts));
  return withNote(mergePlans([...parts, planSite(site)]), await nestedNote(files, site));
}

/** It may have other process types: what is missing is said where `web` has to run. */
async function planWithoutStart(files: SourceFiles, parts: LanguagePlan[], host: BuildHost): Promise<BuildPlan> {
  const merged = mergePlans(parts);
  const generator = await describeGenerator(files, canBuildImages(host.facts));
  const isComplete = /build\.root_directory|`web: bin/.test(merged.missing ?? '');
  const folders = generator === null && !isComplete ? await describeFolders(files) : null;
  const missing = generator ?? [merged.missing, folders].filter(Boolean).join(' ');
  return toBuildPlan({ ...merged, missing });
}

/** Only the output of the build script is a site: the root directory holds its sources. */
async function planBuiltSite(
  files: SourceFiles,
  parts: LanguagePlan[],
  unbuilt: UnbuiltSource | null,
): Promise<BuildPlan> {
  const merged = mergePlans(parts);
  // Members of a workspace: its top often builds them, and leaves nothing itself.
  const hint = /Choose a member/.test(merged.missing ?? '') ? (merged.missing ?? null) : null;
  const site = await siteOfBuild(files, await findOutputDirectories(files, merged.siteDirectories), hint);
  const plan: LanguagePlan = {
    ...merged,
    ...site,
    kind: 'static',
    summary: [...merged.summary, 'static site'],
    prune: null,
  };
  return withNote(plan, unbuilt && noteOf(unbuilt));
}

async function planCustomBuild(
  command: string,
  procfile: Procfile | null,
  files: SourceFiles,
  host: BuildHost,
): Promise<BuildPlan> {
  const step: Step = { name: BUILD_COMMAND, command };
  if (procfile !== null) return ofProcfile(procfile, mergePlans(await detectLanguages(files, host)), step);
  const parts = await detectUntilStart(files, host);
  const found = mergePlans(parts);
  const site = parts.some(startsSomething)
    ? {}
    : await siteOfCustomBuild(files, await findOutputDirectories(files, found.siteDirectories));
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

/** The folder that the owner names is served, whatever the source could start. */
async function planSiteOfSetting(
  directory: string,
  procfile: Procfile | null,
  files: SourceFiles,
  { build_command }: BuildSettings,
  host: BuildHost,
): Promise<BuildPlan> {
  const { web, ...others } = procfile?.processes ?? {};
  if (web !== undefined)
    throw new BuildError(
      'build.output_directory is set, and the Procfile starts a program as web. Remove one of them: an application ' +
        'serves a site or runs a program.',
    );
  const found = mergePlans(await detectLanguages(files, host));
  const steps = build_command === null ? found.steps : [{ name: BUILD_COMMAND, command: build_command }];
  if (directory === '.' && steps.length > 0)
    throw new BuildError(
      'build.output_directory is `.`, which holds the sources of the build. ' +
        'Set it to the folder that the build writes to.',
    );
  const site = siteOfSetting(directory, steps.length > 0);
  const plan = toBuildPlan(
    {
      ...found,
      kind: build_command === null ? 'static' : 'custom',
      summary: [...found.summary, `Static site of ${directory}/`],
      steps,
      site: site.site,
      processes: { ...others, ...site.processes },
      prune: null,
    },
    procfile?.release_command,
  );
  const start = found.processes.web;
  return start === undefined ? plan : { ...plan, notes: [...(plan.notes ?? []), replacedNote(start)] };
}

function replacedNote(command: string): string {
  return `build.output_directory is set, so its site is served, and \`${command}\` does not run.`;
}

async function planProcfile(
  procfile: Procfile,
  files: SourceFiles,
  { dockerfile_path }: BuildSettings,
  host: BuildHost,
): Promise<BuildPlan> {
  // All detected languages: a Procfile may start any of them.
  const parts = await detectLanguages(files, host);
  const commands = [...Object.values(procfile.processes), procfile.release_command ?? ''];
  const unbuilt = await findUnbuiltCommand(files, commands, knownLanguages(parts));
  if (unbuilt !== null)
    throw unbuiltCommandError(unbuilt, await files.has(dockerfile_path), canBuildImages(host.facts));
  return ofProcfile(procfile, mergePlans(parts), null);
}

/** @param instead of the steps of the languages */
function ofProcfile({ processes, release_command }: Procfile, found: LanguagePlan, instead: Step | null): BuildPlan {
  const words = instead ? [...found.summary.slice(0, 1), 'build command'] : found.summary;
  const plan: LanguagePlan = {
    ...found,
    kind: instead ? 'custom' : 'procfile',
    summary: ['Procfile', ...words],
    steps: instead ? [instead] : found.steps,
    site: [],
    prune: instead ? null : found.prune,
    processes,
    missing:
      `The Procfile names the process types ${Object.keys(processes).join(', ')}, and no web. ` + 'Add a line for it.',
  };
  return toBuildPlan(plan, release_command);
}

function findUnbuilt(files: SourceFiles, parts: LanguagePlan[], site: string | null): Promise<UnbuiltSource | null> {
  return findUnbuiltSource(files, site === 'public' ? ['.', 'public'] : ['.'], knownLanguages(parts));
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
