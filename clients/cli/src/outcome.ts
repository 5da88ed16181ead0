// How the command ended, for the exit code of the process.
import { reportFailure } from './output/failures';

let exitCode = 0;
let server: string | undefined;

/** The server that a problem's code is looked up at. */
export function noteServer(origin: string): void {
  server = origin;
}

export function noteExitCode(code: number): void {
  exitCode = code;
}

export const exitCodeOfCommand = (): number => exitCode;

/** Runs a command, and says why where it fails. */
export async function runReported(work: () => Promise<void>, json: boolean): Promise<void> {
  try {
    await work();
  } catch (error) {
    exitCode = await reportFailure(error, { server, json });
  }
}
