// A copy of the project in which the generator of kinds may write.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

export const ROOT = path.resolve(__dirname, '../../..');
/** What is copied: these files, and all in these folders. */
export const COPIED = [
  ...['schema', 'resolvers', 'models', 'jobs', 'engines', 'drivers', 'rest', 'contract', 'db', 'core', 'server'],
  ...['migrations', 'tools/bench', 'tools/demo', 'tools/release', 'tools/scripts', 'tools/development/package.json'],
  ...['test/support', 'test/conformance', 'test/cluster'],
  ...['package.json', 'tsconfig.json', 'tsconfig.test.json', 'codegen.yml', 'jest.config.js', '.gitignore'],
];

export interface Outcome {
  status: number | null;
  output: string;
}

export interface GeneratedProject {
  directory: string;
  /** `npm run new` with these words. */
  generate(...words: string[]): Outcome;
  /** Node with these arguments, in the copy. */
  run(...words: string[]): Outcome;
  /** Texts of all files by their path. */
  contents(): Record<string, string>;
  remove(): void;
}

/** Below the project, so that Node and the compiler find its node_modules on their way up. */
export function copyProject(): GeneratedProject {
  fs.mkdirSync(path.join(ROOT, '.cache'), { recursive: true });
  const directory = fs.mkdtempSync(path.join(ROOT, '.cache/new-'));
  for (const name of COPIED) {
    if (fs.existsSync(path.join(ROOT, name)))
      fs.cpSync(path.join(ROOT, name), path.join(directory, name), { recursive: true });
  }
  const run = (...words: string[]): Outcome => {
    // Its tests are named, whichever run this is a part of.
    const env = { ...process.env, TEST_TIER: 'every' };
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: directory, encoding: 'utf8', env });
    return { status, output: stdout + stderr };
  };
  return {
    directory,
    run,
    generate: (...words) => run('tools/scripts/new.mjs', ...words),
    contents: () => contentsOf(directory),
    remove: () => fs.rmSync(directory, { recursive: true, force: true }),
  };
}

function contentsOf(directory: string): Record<string, string> {
  const files = fs.readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files
      .map(({ parentPath, name }) => path.join(parentPath, name))
      .map((file) => [path.relative(directory, file), fs.readFileSync(file, 'utf8')]),
  );
}
