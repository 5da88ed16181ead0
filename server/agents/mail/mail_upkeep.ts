// Clears away what mail leaves behind: messages of long ago, what the sink does not keep, and files of messages that
// were never taken over, because the process died before their rows were there.
import type { Config } from '../../../core/config';
import type { Logger } from '../../../core/log/log';
import { repeatWork, type RepeatedWork } from '../../../core/process/repeated_work';
import type { ControlDatabase } from '../../../db/control_database';
import { filesWithoutMessage, pruneMessages, pruneSink } from '../../../models/email/mail/upkeep';
import type { MailStore } from './mail_store';

const EVERY_MS = 10 * 60_000;
const FILES_AT_ONCE = 1000;

interface Parts {
  config: Config;
  database: ControlDatabase;
  store: MailStore;
  log: Logger;
}

/** Begins at once. */
export function startMailUpkeep(parts: Parts): Pick<RepeatedWork, 'stop'> {
  const failure = 'the upkeep of mail has failed';
  const upkeep = repeatWork({ everyMs: EVERY_MS, log: parts.log, failure }, () => maintain(parts));
  upkeep.runNow();
  return upkeep;
}

async function maintain({ config, database, store }: Parts): Promise<void> {
  await store.remove(await pruneMessages(database));
  await store.remove(await pruneSink(database, config.mailSinkMessages));
  const old = await store.old();
  for (let at = 0; at < old.length; at += FILES_AT_ONCE)
    await store.remove(await filesWithoutMessage(database, old.slice(at, at + FILES_AT_ONCE)));
}
