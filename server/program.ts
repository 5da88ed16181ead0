// What the programs that run until they are told to stop have in common: arguments, settings, signals, the one line of an error.
import { helpText, loadConfig } from '../core/config';
import { StartupError } from '../core/startup_error';
import { openPlatform, type Platform } from './platform';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
const leave = (): never => process.exit(0);

/**
 * Runs a program on an open platform until SIGTERM or SIGINT.
 * @param command as it is called, for the message about arguments
 * @param start opens what the program is about and returns how to close it
 */
export function runProgram(command: string, start: (platform: Platform) => Promise<() => Promise<void>>): void {
  run(command, start).catch((error: unknown) => {
    if (error instanceof StartupError) process.stderr.write(`platform-api: ${error.message}\n`);
    else process.stderr.write(`platform-api: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  });
}

async function run(command: string, start: (platform: Platform) => Promise<() => Promise<void>>): Promise<void> {
  const words = process.argv.slice(2);
  if (words.includes('--help') || words.includes('-h')) return void process.stdout.write(helpText());
  if (words.length) throw new StartupError(`unknown argument ${words[0]}; settings are environment variables, see ${command} -- --help`);
  const config = loadConfig(process.env);
  // The init of a container ignores signals that it has no handler for. Whatever the start has done so far bears to be cut off.
  for (const signal of SIGNALS) process.once(signal, leave);
  const platform = await openPlatform(config);
  try {
    stopOnSignal(platform, await start(platform));
  } catch (error) {
    await platform.close();
    throw error;
  }
}

function stopOnSignal(platform: Platform, close: () => Promise<void>): void {
  let stopping = false;
  const stop = async (signal: string): Promise<void> => {
    if (stopping) return;
    stopping = true;
    platform.log.info({ signal }, 'stopping');
    await close();
    await platform.close();
    platform.log.info('stopped');
    platform.log.flush();
    process.exit(0);
  };
  for (const signal of SIGNALS) process.off(signal, leave).on(signal, () => void stop(signal));
}
