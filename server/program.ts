// What the programs that run until a signal stops them have in common: arguments, settings, signals, the one line of an
// error.
import { createRequire } from 'node:module';
import { setImmediate } from 'node:timers/promises';
import { helpText, loadConfig, type Config } from '../core/config';
import { createLog, sharedOutput } from '../core/log/log';
import { removedSettings } from '../core/settings/removed';
import { StartupError } from '../core/startup_error';
import type * as OfPlatform from './platform/platform';
import { takenOverText } from './platform/installation_owner';
import type { Platform } from './platform/platform';
import { findSuccessor, standStill, takenOver } from './taken_over';

const NODE_SUPPORTED = 22;
const NODE_ENDED = 'This version of Node.js gets no more security fixes. Node.js 24 is recommended.';
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
const load = createRequire(__filename);
const exitNow = (): never => process.exit(0);

/** A running program. */
export interface Running {
  close(): Promise<void>;
  /** Resolves with the reason when it can't go on. */
  failed?: Promise<Error>;
}

/**
 * Runs a program on an open platform until SIGTERM or SIGINT.
 * @param command as on the command line, for the message about arguments
 * @param start opens the program's services
 * @param loadModules loads the modules that `start` needs, while the embedded database starts
 * @param prepare what is done before the database is opened
 */
export function runProgram<Prepared = undefined>(
  command: string,
  start: (platform: Platform, prepared: Prepared) => Promise<Running>,
  loadModules: (config: Config) => unknown = () => {},
  prepare: (config: Config) => Promise<Prepared> = () => Promise.resolve(undefined as Prepared),
): void {
  run(command, start, loadModules, prepare).catch((error: unknown) => {
    printError(error);
    process.exit(1);
  });
}

async function run<Prepared>(
  command: string,
  start: (platform: Platform, prepared: Prepared) => Promise<Running>,
  loadModules: (config: Config) => unknown,
  prepare: (config: Config) => Promise<Prepared>,
): Promise<void> {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) return void process.stdout.write(helpText());
  if (args.length)
    throw new StartupError(`unknown argument ${args[0]}; settings are environment variables, see ${command} -- --help`);
  const config = loadConfig(process.env);
  // As root, users of tenants read files of the platform; secret files have stricter permissions.
  if (process.getuid?.() === 0) process.umask(0o022);
  exitOnSignal();
  const successor = await findSuccessor(config);
  if (successor !== null) return standStill(config, takenOverText(successor), command);
  const prepared = await prepare(config);
  // Loaded only now: a start that fails before should not wait for all modules.
  const { openPlatform } = load('./platform/platform') as typeof OfPlatform;
  const opening = openPlatform(
    config,
    createLog(config.logLevel, config.webConcurrency > 1 ? sharedOutput() : undefined),
  );
  // Elsewhere a connection is being made meanwhile, which has a second.
  if (config.databaseUrl === null) await Promise.race([opening, setImmediate().then(() => loadModules(config))]);
  const platform = await opening;
  if (Number(process.versions.node.split('.')[0]) < NODE_SUPPORTED)
    platform.log.warn({ node: process.version }, NODE_ENDED);
  for (const sentence of removedSettings(process.env)) platform.log.warn(sentence);
  try {
    const running = await start(platform, prepared);
    const failed = [takenOver(config), ...(running.failed ? [running.failed] : [])];
    stopOnSignal(platform, { ...running, failed: Promise.race(failed) });
  } catch (error) {
    await platform.close();
    throw error;
  }
}

/**
 * The init of a container ignores signals that it has no handler for. Whatever a start has done so far bears to be cut
 * off.
 */
export function exitOnSignal(): void {
  for (const signal of SIGNALS) process.once(signal, exitNow);
}

/** From now on a signal, or that it can't go on, closes the program and then the platform. */
export function stopOnSignal(platform: Pick<Platform, 'log' | 'close'>, { close, failed }: Running): void {
  let stopping = false;
  const stop = async (why: { signal: string } | { err: Error }): Promise<void> => {
    if (stopping) return;
    stopping = true;
    platform.log['err' in why ? 'fatal' : 'info'](why, 'stopping');
    await close();
    await platform.close();
    platform.log.info('stopped');
    platform.log.flush();
    if ('err' in why) printError(why.err);
    process.exit('err' in why ? 1 : 0);
  };
  // In this order: when the last listener of a signal is removed, node drops delivered signals that have not been
  // handled yet.
  for (const signal of SIGNALS) process.on(signal, () => void stop({ signal })).off(signal, exitNow);
  void failed?.then((err) => stop({ err }));
}

/** One line where the operator can do something about it. */
export function printError(error: unknown): void {
  const known = error instanceof StartupError ? error.message : undefined;
  process.stderr.write(`platform-api: ${known ?? (error instanceof Error ? error.stack : String(error))}\n`);
}
