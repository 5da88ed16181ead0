// A program that measures: its lines, and its end.

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
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
