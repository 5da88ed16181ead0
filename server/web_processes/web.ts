// One of several processes that serve the API, started by the first one (primary.ts) with settings in which everything
// is decided: where the database is, how many connections, the ports of the ingress. It ends when the first one is
// gone.
import '../heap';
import '../compiled';
import cluster from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig, type Config } from '../../core/config';
import { openProcessChannel, type Handlers } from '../../core/process/channel';
import { Problem } from '../../core/errors';
import { createLog, sharedOutput, type Logger } from '../../core/log/log';
import { StartupError } from '../../core/startup_error';
import type { Attempts } from '../../rest/rate_limit';
import { openMetrics, type Metrics } from '../http/admin';
import type { MetricList } from './metrics';
import { joinPlatform, type Platform } from '../platform/platform';
import { startProcessReport } from '../platform/process_report';
import { exitOnSignal, stopOnSignal } from '../program';
import { buildFaces, closable, openWeb } from '../service';

const RETRY_MS = 1_000;

/** Calls of the first process. */
interface FirstCalls {
  /** A failed authentication or log-in at another one: counted by all. */
  attempt(bucket: string): void;
  metrics(): Promise<MetricList>;
}

const handlers: Partial<FirstCalls> = {};
const first = openProcessChannel(process, handlers as Handlers);

run().catch((error: Error) => {
  if (!(error instanceof StartupError)) process.stderr.write(`platform-api: ${error.stack}\n`);
  // One line for the operator.
  const reported = first.call('failed', error.message.split('\n')[0]).catch(() => undefined);
  void reported.then(() => process.exit(1));
});

async function run(): Promise<void> {
  exitOnSignal();
  const config = loadConfig(process.env);
  const log = createLog(config.logLevel, sharedOutput()).child({ web: cluster.worker?.id });
  const built = buildFaces();
  const platform = await waitForDatabase(config as Config & { databaseUrl: string }, log);
  const metrics = openMetrics();
  platform.attempts = answerFirst(platform, metrics);
  const service = await closable(async (opened) => {
    const served = await openWeb(platform, built, metrics, opened, { missing: null });
    opened.push(startProcessReport(platform, 'web'));
    return { config: served };
  });
  stopOnSignal(platform, service);
  first.send('serving', service.config.port);
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
function answerFirst({ attempts }: Platform, metrics: Metrics): Attempts {
  handlers.attempt = (bucket) => attempts.count(bucket);
  handlers.metrics = () => metrics.registry.getMetricsAsJSON();
  return {
    ...attempts,
    count(bucket) {
      attempts.count(bucket);
      first.send('attempt', bucket);
    },
  };
}
