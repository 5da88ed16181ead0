// Brings what is written between two backups of the installation to their repository, and checks whether the repository
// has been taken over by a restore elsewhere: then this installation stops (server/program.ts).
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../core/config';
import type { Logger } from '../../core/log/log';
import { repeatWork, type RepeatedWork } from '../../core/process/background';
import { checkOwner } from './owner';
import { openWalRepository, type WalRepository } from './wal_repository';
import { beginWal, endWal, pushWal, releaseWal } from './wal';
import { forgetOldWal } from './wal_retention';
import { readSuccessor } from '../platform/installation_owner';
import { openSession } from '../platform/session';

/** With the time that a push takes, and the half minute of a managed server: less than a minute in all. */
const PUSH_EVERY_MS = 25_000;
const FORGET_EVERY_MS = 3_600_000;
const STOPPED_WITHIN_MS = 2_000;

interface Parts {
  config: Config;
  databaseUrl: string;
  log: Logger;
}

export async function startInstallationWal(parts: Parts): Promise<Pick<RepeatedWork, 'stop'> | null> {
  const { config, log } = parts;
  if (config.databaseUrl === null)
    await inSession(parts, (session) =>
      config.resticRepository === null ? endWal(config, session) : beginWal(config, session),
    ).catch((error: unknown) => log.warn({ err: error }, 'the write-ahead log cannot be kept for backups'));
  if (config.resticRepository === null) return null;
  let repository: WalRepository | null = null;
  let forgotAt = Date.now();
  const failure = 'the write-ahead log could not be brought to the repository of backups';
  const work = repeatWork({ name: 'installation_wal', everyMs: PUSH_EVERY_MS, log, failure }, async () => {
    repository ??= openWalRepository(config);
    if (readSuccessor(config) !== null || (await checkOwner(config, repository)) !== null) return;
    if (config.databaseUrl !== null) return;
    await pushOnce(parts, repository);
    if (Date.now() - forgotAt < FORGET_EVERY_MS) return;
    forgotAt = Date.now();
    await forgetOldWal(repository);
  });
  work.runNow();
  // A repository that does not answer keeps no stop waiting: what it has not got is pushed by the next start.
  return { stop: () => Promise.race([work.stop(), sleep(STOPPED_WITHIN_MS, undefined, { ref: false })]) };
}

function pushOnce(parts: Parts, repository: WalRepository): Promise<void> {
  const { config } = parts;
  return inSession(parts, async (session) => {
    await beginWal(config, session);
    if ((await pushWal(config, session, repository)) !== null) await releaseWal(config, session);
  });
}

async function inSession(
  { databaseUrl }: Parts,
  run: (session: Awaited<ReturnType<typeof openSession>>) => Promise<void>,
): Promise<void> {
  const session = await openSession(databaseUrl);
  await run(session).finally(() => session.close());
}
