// One of several processes that serve the API, started by the first one (cluster.ts) with settings in which everything
// is decided: where the database is, how many connections, the ports of the ingress. It ends when the first one is
// gone.
import '../heap';
import cluster from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig, type Config } from '../../core/config';
import { Problem } from '../../core/errors';
import { createLog, sharedOutput, type Logger } from '../../core/log/log';
import { StartupError } from '../../core/startup_error';
import type { Attempts } from '../../rest/rate_limit';
import { openMetrics, type Metrics } from '../http/admin';
import type { FromWeb, ToWeb } from './messages';
import { joinPlatform, type Platform } from '../platform/platform';
import { exitOnSignal, stopOnSignal } from '../program';
import { buildFaces, closable, openWeb } from '../service';

const RETRY_MS = 1_000;

run().catch((error: Error) => {
  if (!(error instanceof StartupError)) process.stderr.write(`platform-api: ${error.stack}\n`);
  process.send?.({ kind: 'failed', reason: error.message.split('\n')[0] as string } satisfies FromWeb, () =>
    process.exit(1),
  );
});

async function run(): Promise<void> {
  exitOnSignal();
  const config = loadConfig(process.env);
  const log = createLog(config.logLevel, sharedOutput()).child({ web: cluster.worker?.id });
  const built = buildFaces();
  const platform = await waitForDatabase(config as Config & { databaseUrl: string }, log);
  const metrics = openMetrics();
  platform.attempts = handleMessages(platform, metrics);
  const service = await closable(async (opened) => ({ config: await openWeb(platform, built, metrics, opened) }));
  stopOnSignal(platform, service);
  sendMessage({ kind: 'serving', port: service.config.port });
}

/**
 * A process that ended may have to be replaced while the database is away: the others answer 503 meanwhile, and so
 * would it.
 */
async function waitForDatabase(config: Config & { databaseUrl: string }, log: Logger): Promise<Platform> {
  for (;;) {
    try {
      return await joinPlatform(config, log);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      log.warn({ err: error }, 'waiting for the database');
      await sleep(RETRY_MS);
    }
  }
}

/**
 * Answers the first process. Attempts are broadcast to the others, so that an address has one budget in all of them.
 */
function handleMessages(platform: Platform, metrics: Metrics): Attempts {
  const { attempts } = platform;
  process.on('message', (message: ToWeb) => {
    if (message.kind === 'attempt') attempts.count(message.bucket);
    else
      void metrics.registry
        .getMetricsAsJSON()
        .then((list) => sendMessage({ kind: 'metrics', turn: message.turn, list }));
  });
  return {
    ...attempts,
    count(bucket) {
      attempts.count(bucket);
      sendMessage({ kind: 'attempt', bucket });
    },
  };
}

// A message to a process that has just gone fails: this one ends then, too.
function sendMessage(message: FromWeb): void {
  process.send?.(message, undefined, undefined, () => {});
}
