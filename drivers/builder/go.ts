// Go: every program of the module into bin/.
import { BuildError } from '../builder';
import type { DetectLanguage } from './language_plan';
import type { SourceFiles } from './source_files';
import { findSiteDirectory } from './static_site';
import { findNestedSource } from './unbuilt_source';

export const detectGo: DetectLanguage = async (files, { facts }) => {
  const module = await files.read('go.mod');
  if (module === null || (await isModuleOfSite(files))) return null;
  if (!facts.programs.go)
    throw new BuildError(
      'The source needs Go, which is not installed on this platform. Ask the operator to install it.',
    );
  const program = await findProgram(files, module);
  return {
    kind: 'go',
    summary: [`Go ${facts.programs.go.version}`, 'go build'],
    tools: [],
    steps: [{ name: 'go build', command: 'mkdir -p bin && go build -o bin/ ./...' }],
    site: [],
    prune: null,
    processes: webProcess(program),
    env: {},
    programs: ['bin'],
  };
};

/** Generators of sites keep their themes in a go.mod, without a program. */
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

/** The program of the root, or the only one of cmd/. */
async function findProgram(files: SourceFiles, module: string): Promise<string | null> {
  for (const name of await files.names('.')) {
    if (name.endsWith('.go') && !name.endsWith('_test.go') && /^package main\b/m.test((await files.read(name)) ?? ''))
      return programNameOf(module);
  }
  const commands = await files.names('cmd');
  return commands.length === 1 && /^[\w.-]+$/.test(commands[0]!) ? commands[0]! : null;
}

/** As go build names it: the last part of the module that is no version. */
function programNameOf(module: string): string | null {
  const parts = /^module\s+"?([\w./~-]+)"?/m.exec(module)?.[1]?.split('/') ?? [];
  return parts.filter((part, i) => i === 0 || !/^v\d+$/.test(part)).at(-1) ?? null;
}
