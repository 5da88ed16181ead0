// Everything that a process holds while it runs: database, secrets, caches, probes. Opened once, closed in reverse.
import path from 'node:path';
import type { Config } from '../../core/config';
import type { Limiter, Probes } from '../../core/context';
import { loadAiModels, type AiModelRow } from '../../core/catalog/ai_models';
import type { HostFacts, PresetDefinition } from '../../core/catalog/catalogs';
import type { EngineFacts } from '../../core/catalog/host_facts';
import { presetsWith } from '../../core/catalog/presets';
import { cursorCodec, type CursorCodec } from '../../core/cursor';
import { createLog, type Logger } from '../../core/log/log';
import { loadKeyRing, secretBox, type SecretBox } from '../../core/secrets';
import type { InstallationControl } from '../../core/catalog/installation_control';
import { StartupError } from '../../core/startup_error';
import type { FileStore } from '../../drivers/file_store';
import { openFileStore } from '../../drivers/file_store/open';
import { engineFacts, hostFacts } from '../../drivers/host';
import { allJobs } from '../../jobs/all_jobs';
import { describeTables, openControlDatabase, type ControlDatabase } from '../../db/control_database';
import { lagSeconds } from '../../db/lease';
import { migrate, pendingMigrations } from '../../db/migrate';
import { connectToLeader } from '../../db/servers';
import { named } from '../../db/statement';
import { installationId } from '../../models/applications/cluster_facts';
import { memoryLimiter, openAttempts, sharedLimiter, type Attempts } from '../../rest/rate_limit';
import { connectionFlags } from './connection_budget';
import { openEmbedded } from './embedded';
import { openIdentities, type Identities } from './identities';
import { listen } from './listener';
import { openProbes } from './probes';
import { openNotificationHub, type NotificationHub } from './notifications';
import { openRefusalCounter, type RefusalCounter } from './refusal_counter';

export interface Platform {
  config: Config;
  log: Logger;
  database: ControlDatabase;
  /** Address of the database, for separate connections (LISTEN). */
  databaseUrl: string;
  secrets: SecretBox;
  cursors: CursorCodec;
  identities: Identities;
  limiter: Limiter;
  refusals: RefusalCounter;
  attempts: Attempts;
  probes: Probes;
  /** Null where uploads and messages stay on this machine. */
  fileStore: FileStore | null;
  notifications: NotificationHub;
  /** Set where the API is served. */
  installation: InstallationControl | null;
  /** Aborted when the process stops, which ends all waits. */
  closing: AbortController;
  /** The catalog of AI models, with the changes of the operator. */
  aiModels: readonly AiModelRow[];
  /** All presets, including the operator's. */
  presets: readonly PresetDefinition[];
  facts(): Promise<HostFacts>;
  /** The part of the facts that a start waits for. */
  engines(): Promise<EngineFacts>;
  /** Age in seconds of the oldest due work that no worker has claimed. */
  workerLag(): Promise<number>;
  close(): Promise<void>;
}

export const MIGRATIONS = path.resolve(__dirname, '../../migrations');

/**
 * Opens the database (embedded without DATABASE_URL), migrates it, and everything on top.
 * @throws StartupError with one line: unreachable database, newer schema, unwritable directory, ...
 */
export async function openPlatform(config: Config, log: Logger = createLog(config.logLevel)): Promise<Platform> {
  log.info(config.databaseUrl ? 'connecting to the database' : 'starting the embedded database');
  const engine = config.databaseUrl
    ? { url: config.databaseUrl, close: async () => {} }
    : await openEmbeddedDatabase(config, log);
  return onEngine(config, log, engine, () => {
    log.info('applying migrations');
    return migrateDatabase(engine.url);
  });
}

function openEmbeddedDatabase(config: Config, log: Logger): Promise<Engine> {
  const restarted = (error: Error | null): void =>
    error
      ? log.error({ err: error }, 'the database server has ended and could not be started again')
      : log.warn('the database server had ended and was started again');
  return openEmbedded({
    dataDir: config.dataDir,
    user: config.postgresUser,
    binaries: config.pgBin ?? undefined,
    flags: connectionFlags(config),
    restarted,
  });
}

/**
 * Opens the platform next to a process that has opened the database: DATABASE_URL is set, and the schema is up to date.
 * @throws StartupError where the program has become newer than the schema
 */
export function joinPlatform(config: Config & { databaseUrl: string }, log: Logger): Promise<Platform> {
  return onEngine(config, log, { url: config.databaseUrl, close: async () => {} }, requireUpToDate);
}

interface Engine {
  url: string;
  close(): Promise<void>;
}

/** @param prepare brings the schema up to date, or refuses */
async function onEngine(
  config: Config,
  log: Logger,
  engine: Engine,
  prepare: (database: ControlDatabase) => Promise<void>,
): Promise<Platform> {
  const database = openControlDatabase(engine.url, { poolSize: config.databasePoolSize });
  try {
    await prepare(database);
    await describeTables(database);
  } catch (error) {
    await database.close();
    await engine.close();
    throw error;
  }
  const secrets = secretBox(loadKeyRing({ setting: config.secretKey, dataDir: config.dataDir }));
  const identities = openIdentities(database, log);
  const parts = assemble(config, log, database, secrets, identities);
  const listener = listen(
    engine.url,
    { forget: (text) => identities.forget(JSON.parse(text)), logs: (key) => parts.notifications.publish('logs', key) },
    log,
  );
  return {
    ...parts,
    databaseUrl: engine.url,
    close: () => closeAll([listener, identities, parts.refusals, database, engine]),
  };
}

function assemble(
  config: Config,
  log: Logger,
  database: ControlDatabase,
  secrets: SecretBox,
  identities: Identities,
): Omit<Platform, 'close' | 'databaseUrl'> {
  const tables = allJobs().map((job) => job.table);
  return {
    config,
    log,
    database,
    secrets,
    identities,
    cursors: cursorCodec(secrets.subKey('cursor')),
    limiter: openLimiter(config, database),
    refusals: openRefusalCounter(database, log),
    attempts: openAttempts(config.rateLimitFailedAuth),
    probes: openProbes(config),
    fileStore: openFileStore(config, installationId(database)),
    notifications: openNotificationHub(),
    installation: null,
    closing: new AbortController(),
    aiModels: loadAiModels(config.aiModelsFile),
    presets: presetsWith(config.presetsFile),
    facts: () => hostFacts({ directory: config.dataDir }),
    engines: () => engineFacts(),
    workerLag: () => lagSeconds(database, tables),
  };
}

async function closeAll(parts: { close(): Promise<void> }[]): Promise<void> {
  for (const part of parts) await part.close();
}

function openLimiter(config: Config, database: ControlDatabase): Limiter {
  const budgets = { read: config.rateLimitRead, write: config.rateLimitWrite, deploy: config.rateLimitDeploy };
  if (config.rateLimitStore === 'memory') return memoryLimiter(budgets);
  return sharedLimiter(budgets, {
    async add(bucket, windowStart, points) {
      const [row] = await database.query<{ used: number }>(COUNT, [bucket, windowStart, points]);
      // Another process is in the next window already: this one is over.
      return row ? row.used : Infinity;
    },
  });
}

const COUNT = named(`insert into rate_windows as w (bucket, window_start, used) values ($1, $2, $3)
  on conflict (bucket) do update set window_start = excluded.window_start, used = case
    when w.window_start = excluded.window_start then w.used + excluded.used else excluded.used end
  where w.window_start <= excluded.window_start returning used`);

async function requireUpToDate(database: ControlDatabase): Promise<void> {
  const pending = await pendingMigrations(database, MIGRATIONS);
  if (pending.length)
    throw new StartupError(
      `the program on the disk is newer than the one that runs (${pending.join(', ')} is pending): start it again`,
    );
}

/** On separate connections, since a migration may take longer than any request. */
async function migrateDatabase(url: string): Promise<void> {
  const database = openControlDatabase(url, { poolSize: 1, name: 'platform-api migrations', answerMs: 0 });
  try {
    // Of several servers it also finds the one that takes writes.
    const client = await connectToLeader(url, {}).catch((error: Failure) => {
      throw startupError('the database does not answer', error);
    });
    await client.end();
    await migrate(database.knex, MIGRATIONS).catch((error: Failure) => {
      if (error instanceof StartupError || (!error.code && error.name !== 'KnexTimeoutError')) throw error;
      throw startupError('the database schema can not be brought up to date', error);
    });
  } finally {
    await database.close();
  }
}

type Failure = Error & { code?: string };

function startupError(what: string, error: Failure): StartupError {
  return new StartupError(`${what}: ${error.message.split('\n')[0] || error.code}`);
}
