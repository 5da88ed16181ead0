// The programs of a Go module, and which of them is meant.
import path from 'node:path';
import { BuildError } from '../../builder';
import { listNames } from '../message_text';
import { SEARCHED_ENTRIES_MAX, type SourceFiles } from '../source_files';
import { builtPackageOf } from './go_constraints';

export interface GoProgram {
  /** Relative to the root directory; `.` for the root directory itself. */
  directory: string;
  /** Name of the executable. */
  name: string;
}

const DEPTH_MAX = 8;
const FOUND_MAX = 200;
const skipped = /^(?:[._].*|vendor|testdata|node_modules)$/;
const safe = /^[\w.@+~][\w./@+~-]*$/;
/** Directories of programs that nobody deploys. */
const secondary = /(?:^|\/)(?:examples?|tools?|scripts?|hack|tests?|docs?|demos?|benchmarks?)(?:\/|$)/;

/** Packages `main` of the module, without those of modules below. @param ownName of the one in the root directory */
export async function findGoPrograms(files: SourceFiles, ownName: string): Promise<GoProgram[]> {
  const found: GoProgram[] = [];
  const queue = [{ directory: '.', depth: 0 }];
  let entries = 0;
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const { directory, depth } = next;
    const names = await files.names(directory);
    if (depth > 0 && names.includes('go.mod')) continue;
    entries += names.length;
    if (entries > SEARCHED_ENTRIES_MAX || found.length >= FOUND_MAX) break;
    if (await isProgram(files, directory, names))
      found.push({ directory, name: directory === '.' ? ownName : path.posix.basename(directory) });
    if (depth >= DEPTH_MAX) continue;
    for (const name of names) {
      const below = path.posix.join(directory, name);
      if (!skipped.test(name) && safe.test(below) && (await files.isDirectory(below)))
        queue.push({ directory: below, depth: depth + 1 });
    }
  }
  return found;
}

async function isProgram(files: SourceFiles, directory: string, names: string[]): Promise<boolean> {
  for (const name of names) {
    if (!name.endsWith('.go')) continue;
    const text = (await files.readHead(path.posix.join(directory, name))) ?? '';
    if (builtPackageOf(name, text) === 'main') return true;
  }
  return false;
}

/**
 * The program that serves requests: that of the root directory, that with a name of the source, the only one below
 * cmd/, or the only one; null where several could be meant.
 * @param names of the module and of the application
 */
export function findMeantProgram(programs: readonly GoProgram[], names: readonly string[]): GoProgram | null {
  const at = (directory: string): GoProgram | undefined => programs.find((one) => one.directory === directory);
  const named = names.map((name) => at(`cmd/${name}`) ?? at(name)).find((one) => one !== undefined);
  const only = (some: readonly GoProgram[]): GoProgram | undefined => (some.length === 1 ? some[0] : undefined);
  return (
    at('.') ??
    named ??
    only(programs.filter(({ directory }) => directory.startsWith('cmd/'))) ??
    only(programs) ??
    only(programs.filter(({ directory }) => !secondary.test(directory))) ??
    null
  );
}

/**
 * The programs that commands start: `bin/api`, or `api`, since bin/ is in their PATH.
 * @throws BuildError where a name stands for several
 */
export function findNamedPrograms(programs: readonly GoProgram[], commands: readonly string[]): GoProgram[] {
  const words = new Set(commands.flatMap((command) => command.split(/[\s;&|()"'`=]+/)).map(programOfWord));
  const names = new Set(programs.map(({ name }) => name).filter((name) => words.has(name)));
  return [...names].map((name) => oneOf(programs, name));
}

function programOfWord(word: string): string {
  return word.replace(/^(?:\.\/|\$PWD\/|\/app\/)?(?:bin\/)?/, '');
}

/** The root directory and cmd/ come first, as for Go's own tools. */
function oneOf(programs: readonly GoProgram[], name: string): GoProgram {
  const same = programs.filter((one) => one.name === name);
  const usual = same.find(({ directory }) => directory === '.') ?? same.find(({ directory: d }) => d === `cmd/${name}`);
  if (usual !== undefined) return usual;
  if (same[1] === undefined) return same[0]!;
  throw new BuildError(
    `A command starts \`${name}\`, and the Go module has ${same.length} programs of this name: ` +
      `${listPrograms(same)}. ` +
      `Move one to cmd/${name}, or set build.build_command to one such as ` +
      `\`go build -o bin/${name} ./${same[0]!.directory}\`.`,
  );
}

/** Their directories, as in messages. */
export function listPrograms(programs: readonly GoProgram[]): string {
  return listNames(programs.map(({ directory }) => directory));
}
