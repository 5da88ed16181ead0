// npm start: settings, database, migrations, first boot, service. One line and exit code 1 when it can't.
import './heap';
import './compiled';
import './threads';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import { writeText } from '../core/log/log';
import type { Config } from '../core/config';
import type * as OfPrimary from './web_processes/primary';
import type * as OfWaiting from './web_processes/waiting';
import type { WaitingProcess } from './web_processes/waiting';
import type * as OfFirstBoot from './first_boot';
import type { Platform } from './platform/platform';
import { sharedSiteWarning } from './platform/shared_site';
import { openWaitingPort } from './http/waiting_port';
import { printError, runProgram, type Running } from './program';
import type * as OfService from './service';

const load = createRequire(__filename);
const primary = (): typeof OfPrimary => load('./web_processes/primary') as typeof OfPrimary;
const service = (): typeof OfService => load('./service') as typeof OfService;

/** Who answers at the port until the service does: of several processes another one. */
interface Waiting {
  server: Server | null;
  process: WaitingProcess | null;
}

async function answerMeanwhile(config: Config): Promise<Waiting> {
  // With PORT=0 nobody knows the port yet.
  if (config.port === 0) return { server: null, process: null };
  if (config.webConcurrency === 1) return { server: await openWaitingPort(config), process: null };
  const { startWaitingProcess } = load('./web_processes/waiting') as typeof OfWaiting;
  return { server: null, process: await startWaitingProcess(config) };
}

async function start(platform: Platform, waiting: Waiting): Promise<Running> {
  const { config } = platform;
  const { firstBoot, firstBootText, operatorWarning, renewSetupUrl, undoFirstBoot } = load(
    './first_boot',
  ) as typeof OfFirstBoot;
  let first: OfFirstBoot.FirstKey | null = null;
  const beforeListening = async (): Promise<void> => {
    // With PORT=0 the address, which stands beside the key, is known only when the service listens.
    if (config.port !== 0) first = await firstBoot(platform);
  };
  const starting =
    config.webConcurrency > 1
      ? primary().startPrimary(platform, beforeListening, waiting.process)
      : service().startService(platform, beforeListening, waiting.server);
  const started = await starting.catch(async (error: unknown) => {
    if (first) await undoFirstBoot(platform, first);
    throw error;
  });
  first ??= await firstBoot(platform);
  const output = process.stdout.isTTY ? 'terminal' : 'log';
  const welcome = first && firstBootText(first, await platform.engines(), started.config, output);
  platform.log.info({ address: started.config.baseUrl, admin_port: started.adminPort }, 'ready');
  const shared = sharedSiteWarning(started.config);
  if (shared) platform.log.warn(shared);
  const nobody = await operatorWarning(platform);
  if (nobody) platform.log.warn(nobody);
  // Behind the lines of the log, where it stays in sight.
  if (welcome) writeText(platform.log, welcome);
  const reminder = first ? null : await renewSetupUrl(platform, output);
  if (reminder) writeText(platform.log, reminder);
  return started;
}

// Of `platform upgrade`, before it switches to this release.
if (process.argv[2] === '--load') loadAll();
// The first of several processes loads no service.
else
  runProgram(
    'npm start',
    start,
    ({ webConcurrency }) => (webConcurrency > 1 ? primary() : service().buildFaces()),
    answerMeanwhile,
  );

/** Whether all of it can be loaded here. It is on the disk, in memory and compiled then, which makes a start faster. */
function loadAll(): void {
  try {
    primary();
    service().buildFaces();
    for (const name of ['./first_boot', './start_worker', './web_processes/waiting']) load(name);
    process.exit(0);
  } catch (error) {
    printError(error);
    process.exit(1);
  }
}
