// A program that measures: what it needs, its lines, and its end.
import { accessSync, constants } from 'node:fs';
import path from 'node:path';

/** Debian has servers in sbin, which is not in the PATH of every user. */
const DIRECTORIES = [...(process.env.PATH ?? '').split(':'), '/usr/sbin'];

/** A program is missing: shown without a stack. */
class MissingProgram extends Error {}

/** @throws MissingProgram that names the first of these programs that is not installed */
export function requirePrograms(...programs: string[]): void {
  for (const program of programs)
    if (!DIRECTORIES.some((directory) => isExecutable(path.join(directory, program))))
      throw new MissingProgram(`this measurement needs the program ${program}, which is not installed`);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A line of the result. */
export function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Runs the program: an error is shown, and ends it with 1. */
export function runBench(main: () => Promise<unknown>): void {
  main().then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`bench: ${textOf(error)}\n`);
      process.exit(1);
    },
  );
}

function textOf(error: unknown): string {
  if (error instanceof MissingProgram) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
