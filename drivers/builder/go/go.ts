// Go: builds the program that is meant into bin/, and beside it those of cmd/, for other process types and for runs.
import type { DetectLanguage, LanguagePlan, Step } from '../language_plan';
import { shellWord } from '../language_plan';
import type { SourceFiles } from '../source_files';
import { findSiteDirectory } from '../static/static_site';
import { findNestedSource } from '../unbuilt_source';
import {
  findGoModule,
  findGoWorkspace,
  isInWorkspace,
  moduleNameOf,
  modulesBelow,
  type GoModule,
  type GoWorkspace,
} from './go_module';
import { findGoPrograms, findMeantProgram, findNamedPrograms, listPrograms, type GoProgram } from './go_programs';
import { chooseGo } from './go_version';

const FURTHER_MAX = 20;

export const detectGo: DetectLanguage = async (files, host) => {
  const module = await findGoModule(files);
  if (module === null || (module.up === '.' && (await isModuleOfSite(files)))) return null;
  const ownName = (module.up === '.' ? moduleNameOf(module) : module.below.split('/').at(-1)) ?? 'app';
  const programs = await findGoPrograms(files, ownName);
  // The folder of another language in the repository of a Go module.
  if (module.up !== '.' && programs.length === 0) return null;
  const workspace = await findGoWorkspace(files);
  const isMember = workspace !== null && isInWorkspace(module, workspace, files);
  const go = await chooseGo([module.text, ...(isMember ? [workspace.text] : [])], host);
  const named = findNamedPrograms(programs, Object.values(host.commands));
  const meant = findMeantProgram(programs, [moduleNameOf(module) ?? '', host.applicationName ?? '']);
  const required = meant === null || host.commands.web !== undefined ? named : [meant, ...named];
  const plan: LanguagePlan = {
    kind: 'go',
    summary: [`Go ${go.version}`, 'go build', ...(isMember && workspace.up !== '.' ? [workspaceWord(workspace)] : [])],
    reasons: [...go.reasons, ...reasonOf(programs, meant, named)],
    tools: go.tools,
    steps: await buildSteps(files, programs, required),
    site: [],
    prune: null,
    processes: meant === null ? {} : { web: await executableOf(files, meant) },
    missing: meant === null ? missingProgram(programs, module, workspace) : null,
    env: {
      // Some systems set it to `local`, which disables the download of the version that go.mod requires.
      GOTOOLCHAIN: 'auto',
      // Go would refuse to build a module that the nearest workspace does not name.
      ...(workspace !== null && !isMember && { GOWORK: 'off' }),
    },
    programs: ['bin'],
    ...(go.library && { go: go.library }),
  };
  return plan;
};

function workspaceWord({ up }: GoWorkspace): string {
  return `in the workspace at ${up}`;
}

/** Static site generators manage themes in a go.mod, without a program. */
async function isModuleOfSite(files: SourceFiles): Promise<boolean> {
  return (await findSiteDirectory(files)) !== null && !(await hasGoFile(files));
}

async function hasGoFile(files: SourceFiles): Promise<boolean> {
  if ((await files.names('.')).some((name) => name.endsWith('.go'))) return true;
  return (await findNestedSource(files, '.', ['Go'])) !== null;
}

/** What starts has to compile; a program beside it, such as an example, may fail to. */
async function buildSteps(files: SourceFiles, programs: GoProgram[], started: GoProgram[]): Promise<Step[]> {
  const required = [...new Map(started.map((one) => [one.name, one])).values()];
  const taken = new Set(required.map(({ name }) => name));
  const usual = programs.filter(({ directory }) => /^cmd\/[^/]+$/.test(directory));
  const further = (required.length + usual.length === 0 ? programs : usual)
    .filter(({ name }) => !taken.has(name) && taken.add(name))
    .slice(0, FURTHER_MAX);
  if (required.length + further.length === 0) return [{ name: 'go build', command: 'go build -v ./...' }];
  const lines = await Promise.all([
    ...required.map(async (one) => `${await buildCommand(files, one)} || exit 1`),
    ...further.map(async (one) => `${await buildCommand(files, one)} || echo ${shellWord(notBuilt(one))}`),
  ]);
  return [{ name: 'go build', command: ['mkdir -p bin || exit 1', ...lines].join('\n') }];
}

function notBuilt({ directory, name }: GoProgram): string {
  return `The program ${directory} did not compile, so there is no bin/${name}. The deployment does not start it.`;
}

/** With the packages that it compiles as lines, which show progress. */
async function buildCommand(files: SourceFiles, program: GoProgram): Promise<string> {
  const { directory } = program;
  return `go build -v -o ${await executableOf(files, program)} ${directory === '.' ? '.' : `./${directory}`}`;
}

/** In a source with a folder of this name below bin/, in that folder. */
async function executableOf(files: SourceFiles, { name }: GoProgram): Promise<string> {
  return (await files.isDirectory(`bin/${name}`)) ? `bin/${name}/${name}` : `bin/${name}`;
}

function reasonOf(programs: GoProgram[], meant: GoProgram | null, named: GoProgram[]): string[] {
  if (programs.length < 2) return [];
  const built = meant === null ? '' : ` \`web\` is ${meant.directory}, unless another command is stated.`;
  const also = named.length === 0 ? '' : ` Commands start ${listPrograms(named)}.`;
  return [`The Go module has the programs ${listPrograms(programs)}.${built}${also}`];
}

function missingProgram(programs: GoProgram[], { text }: GoModule, workspace: GoWorkspace | null): string {
  const name = /^module\s+"?([\w./~-]{1,100})"?/m.exec(text)?.[1] ?? 'without a name';
  const what = `The source is the Go module ${name}`;
  if (programs[0] !== undefined)
    return (
      `${what} with the programs ${listPrograms(programs)}, and none of them is in the root directory or has the ` +
      `name of the module or of the application. Add a Procfile with the line \`web: bin/${programs[0].name}\`.`
    );
  const others = workspace === null ? [] : modulesBelow(workspace).slice(0, 8);
  if (others.length > 0)
    return `${what} without a program. Set build.root_directory to a module of its go.work: ${others.join(', ')}.`;
  return (
    `${what}, and no package \`main\` was found in it. ` +
    'Add one, or set build.root_directory to the module that has it.'
  );
}
