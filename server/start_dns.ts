// A name server without the jobs: it answers the zones that the rows say are answered, signs with the same keys, and
// lets the same secondaries transfer them. Without the database it answers from its copies.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../core/config';
import { createLog } from '../core/log/log';
import { loadKeyRing, secretBox } from '../core/secrets';
import { driverContext } from '../core/driver';
import { named } from '../db/statement';
import { openControlDatabase } from '../db/control_database';
import type { EmbeddedNameserver } from '../engines/dns';
import { attendNameserver, openFurtherNameserver } from './agents/nameserver';
import { startNameserverFeed } from './agents/nameserver_feed';
import type { Platform } from './platform/platform';
import { startProcessReport } from './platform/process_report';

const DATABASE_RETRY_MS = 1_000;
/** Answers from copies may be old: before, the rows are waited for. */
const ROWS_WITHIN_MS = 5_000;
const LIST_WITHIN_MS = 10_000;
const ANSWERS = named('select 1');

interface FurtherDns {
  port: number | null;
  close(): Promise<void>;
}

/**
 * Opens the name server with the copies that it has, and waits for the database. Where that takes longer, it answers
 * from them.
 * @throws StartupError where the settings leave nothing to answer
 */
export async function openDns(config: Config): Promise<EmbeddedNameserver> {
  const log = createLog(config.logLevel);
  const secrets = secretBox(loadKeyRing({ setting: config.secretKey, dataDir: config.dataDir }));
  const server = await openFurtherNameserver({ config, secrets, log });
  if (config.databaseUrl === null) return server;
  const answering = databaseAnswers(config.databaseUrl);
  const isThere = await Promise.race([answering.then(() => true), sleep(ROWS_WITHIN_MS, false)]);
  if (!isThere && (await hasCopies(server))) {
    log.warn('the database does not answer; DNS zones are answered as they were');
    await server.listen();
  }
  await answering;
  return server;
}

/** Resolves when it listens, with the zones of the rows. */
export async function startDns(platform: Platform, server: EmbeddedNameserver): Promise<FurtherDns> {
  const { config, database, databaseUrl, secrets, log } = platform;
  const hasSecondaries = config.dnsSecondaries.length > 0;
  const feed = await startNameserverFeed({ database, databaseUrl, secrets, server, hasSecondaries, log });
  await server.listen();
  const stopAttending = attendNameserver(server, { config, secrets, database, log });
  const stopReport = startProcessReport(platform, 'dns');
  return {
    port: server.port,
    async close() {
      await stopReport();
      await feed.close();
      await stopAttending();
      await server.close();
    },
  };
}

async function databaseAnswers(url: string): Promise<void> {
  const database = openControlDatabase(url, { poolSize: 1, name: 'platform-api dns' });
  try {
    while (!(await database.query(ANSWERS, []).catch(() => null))) await sleep(DATABASE_RETRY_MS);
  } finally {
    await database.close();
  }
}

async function hasCopies(server: EmbeddedNameserver): Promise<boolean> {
  for await (const _zone of server.list(driverContext(LIST_WITHIN_MS))) return true;
  return false;
}
