// npm start: settings, database, migrations, first boot, service. One line and exit code 1 when it can't.
import { setFlagsFromString } from 'node:v8';
import { helpText, loadConfig } from '../core/config';
import { StartupError } from '../core/startup_error';
import { firstBoot, firstBootText } from './first_boot';
import { openPlatform, type Platform } from './platform';
import { startService, type Service } from './service';

// By default V8 lets the heap grow to several times of what lives before it looks for garbage: under load 215 MiB resident
// for 45 MiB that live. This keeps it near 155 MiB for about a tenth more work on lists (docs/PERFORMANCE.md).
setFlagsFromString('--heap-growing-percent=60');

async function main(): Promise<void> {
  const words = process.argv.slice(2);
  if (words.includes('--help') || words.includes('-h')) return void process.stdout.write(helpText());
  if (words.length) throw new StartupError(`unknown argument ${words[0]}; settings are environment variables, see npm start -- --help`);
  const config = loadConfig(process.env);
  // The init of a container ignores signals that it has no handler for. Whatever the start has done so far bears to be cut off.
  for (const signal of SIGNALS) process.once(signal, leave);
  const platform = await openPlatform(config);
  try {
    const service = await startService(platform);
    const first = await firstBoot(platform);
    if (first) process.stdout.write(firstBootText(first));
    platform.log.info({ address: service.config.baseUrl, admin_port: service.adminPort }, 'ready');
    stopOnSignal(platform, service);
  } catch (error) {
    await platform.close();
    throw error;
  }
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
const leave = (): never => process.exit(0);

function stopOnSignal(platform: Platform, service: Service): void {
  let stopping = false;
  const stop = async (signal: string): Promise<void> => {
    if (stopping) return;
    stopping = true;
    platform.log.info({ signal }, 'stopping');
    await service.close();
    await platform.close();
    platform.log.info('stopped');
    platform.log.flush();
    process.exit(0);
  };
  for (const signal of SIGNALS) process.off(signal, leave).on(signal, () => void stop(signal));
}

main().catch((error: unknown) => {
  if (error instanceof StartupError) process.stderr.write(`platform-api: ${error.message}\n`);
  else process.stderr.write(`platform-api: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
