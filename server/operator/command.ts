// The structure of a command. The files of this folder each export the commands of one noun; main.ts finds and runs
// them.

export interface Option {
  /** Shown in the help; null for a flag without a value. */
  value: string | null;
  description: string;
  required?: true;
}

export interface Command {
  /** `user create`. */
  name: string;
  summary: string;
  /** Name of the one positional argument. */
  argument?: string;
  /** The argument may be left out. */
  isOptional?: true;
  /** Name of further positional arguments, of which there may be any number. */
  more?: string;
  options?: Record<string, Option>;
  run(input: Input): Promise<Output>;
}

export interface Input {
  argument: string;
  /** Further positional arguments. */
  more: string[];
  /** Value of an option; undefined where it was not given. */
  text(option: string): string | undefined;
  has(flag: string): boolean;
}

/** `rows` is a list for people and for --json; `secrets` stand below it and are shown this once. */
export interface Output {
  rows: Record<string, unknown>[];
  secrets?: Record<string, string>;
  /** What it had to show stands in standard output already. */
  isPrinted?: true;
  /** False makes the exit code 1. */
  ok?: boolean;
}

/** The command line is wrong: exit code 2. */
export class UsageError extends Error {}
