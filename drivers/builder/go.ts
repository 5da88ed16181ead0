// Go: builds all programs of the module into bin/.
import { satisfies } from '../toolchain/versions';
import { BuildError } from '../builder';
import type { Tool } from '../toolchain';
import type { BuildHost, DetectLanguage } from './language_plan';
import type { SourceFiles } from './source_files';
import { findSiteDirectory } from './static/static_site';
import { findNestedSource } from './unbuilt_source';

// https://go.dev/doc/toolchain
const FETCHES_OTHERS = '>=1.21';

export const detectGo: DetectLanguage = async (files, host) => {
  const module = await files.read('go.mod');
  if (module === null || (await isModuleOfSite(files))) return null;
  const go = await chooseGo(module, host);
  const program = await findProgram(files, module);
  return {
    kind: 'go',
    summary: [`Go ${go.version}`, 'go build'],
    reasons: go.reasons,
    tools: go.tools,
    steps: [{ name: 'go build', command: 'mkdir -p bin && go build -o bin/ ./...' }],
    site: [],
    prune: null,
    processes: webProcess(program),
    // Some systems set it to `local`, which disables the download of the version that go.mod requires.
    env: { GOTOOLCHAIN: 'auto' },
    programs: ['bin'],
  };
};

interface ChosenGo {
  version: string;
  tools: Tool[];
  reasons: string[];
}

/** The Go of the host, if it is new enough, or can download the version that go.mod requires. */
async function chooseGo(module: string, { facts, toolchains, ctx }: BuildHost): Promise<ChosenGo> {
  const needs =
    /^toolchain\s+go(\d+(?:\.\d+)*)/m.exec(module)?.[1] ?? /^go\s+(\d+(?:\.\d+)*)/m.exec(module)?.[1] ?? '1';
  const ours = facts.programs.go?.version ?? null;
  const isNew = (version: string): boolean => satisfies(version, `>=${needs}`) !== false;
  const reasonOf = (version: string): string[] =>
    isNew(version) ? [] : [`go.mod asks for Go ${needs}, which Go ${version} gets from the Go module proxy.`];
  if (ours !== null && (isNew(ours) || satisfies(ours, FETCHES_OTHERS) === true))
    return { version: ours, tools: [], reasons: reasonOf(ours) };
  const name = 'go';
  const packageName = toolchains.packageOf(name, null);
  const found = packageName === null ? [] : await toolchains.versions(name, packageName, ctx);
  if (packageName === null || found[0] === undefined)
    throw new BuildError(
      `The source needs Go ${needs} or newer, which is not installed on this platform. Ask the operator to install it.`,
    );
  const { version } = found[0];
  const why = ours === null ? 'the host has none' : `that of the host is ${ours}, and go.mod asks for ${needs}`;
  const reason = `Go ${version} comes from the Go module proxy: ${why}.`;
  return { version, tools: [{ name, version, package: packageName }], reasons: [reason, ...reasonOf(version)] };
}

/** Static site generators manage themes in a go.mod, without a program. */
async function isModuleOfSite(files: SourceFiles): Promise<boolean> {
  return (await findSiteDirectory(files)) !== null && !(await hasGoFile(files));
}

async function hasGoFile(files: SourceFiles): Promise<boolean> {
  if ((await files.names('.')).some((name) => name.endsWith('.go'))) return true;
  return (await findNestedSource(files, '.', ['Go'])) !== null;
}

function webProcess(program: string | null): Record<string, string> {
  return program === null ? {} : { web: `bin/${program}` };
}

/** The program in the root directory, or the only one below cmd/. */
async function findProgram(files: SourceFiles, module: string): Promise<string | null> {
  for (const name of await files.names('.')) {
    if (name.endsWith('.go') && !name.endsWith('_test.go') && /^package main\b/m.test((await files.read(name)) ?? ''))
      return programNameOf(module);
  }
  const commands = await files.names('cmd');
  return commands.length === 1 && /^[\w.-]+$/.test(commands[0]!) ? commands[0]! : null;
}

/** Named as by go build: the last path element of the module that is not a version. */
function programNameOf(module: string): string | null {
  const parts = /^module\s+"?([\w./~-]+)"?/m.exec(module)?.[1]?.split('/') ?? [];
  return parts.filter((part, i) => i === 0 || !/^v\d+$/.test(part)).at(-1) ?? null;
}
