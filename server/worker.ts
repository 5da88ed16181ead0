// npm run worker: the loop in a process of its own, beside the API and as many others as are wanted.
import { helpText, loadConfig } from '../core/config';
import { StartupError } from '../core/startup_error';
import { DriverError } from '../drivers/driver';
import type { Loop } from '../jobs/loop';
import { openPlatform, type Platform } from './platform';
import { startWorker } from './work';

async function main(): Promise<void> {
  const words = process.argv.slice(2);
  if (words.includes('--help') || words.includes('-h')) return void process.stdout.write(helpText());
  if (words.length) throw new StartupError(`unknown argument ${words[0]}; settings are environment variables, see npm run worker -- --help`);
  const platform = await openPlatform(loadConfig(process.env));
  try {
    stopOnSignal(platform, await startWorker(platform));
    platform.log.info('the worker is ready');
  } catch (error) {
    await platform.close();
    throw error;
  }
}

function stopOnSignal(platform: Platform, loop: Loop): void {
  let stopping = false;
  const stop = async (signal: string): Promise<void> => {
    if (stopping) return;
    stopping = true;
    platform.log.info({ signal }, 'stopping');
    await loop.stop();
    await platform.close();
    platform.log.info('stopped');
    platform.log.flush();
    process.exit(0);
  };
  process.on('SIGTERM', (signal) => void stop(signal));
  process.on('SIGINT', (signal) => void stop(signal));
}

main().catch((error: unknown) => {
  const expected = error instanceof StartupError || error instanceof DriverError;
  process.stderr.write(`platform-api: ${expected ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
