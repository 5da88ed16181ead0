// Clears away what mail leaves behind: messages of long ago, what the sink does not keep, and files of messages that
// were never taken over, because the process died before their rows were there.
import type { Config } from '../../../core/config';
import type { Logger } from '../../../core/log/log';
import type { ControlDatabase } from '../../../db/control_database';
import { filesWithoutMessage, pruneMessages, pruneSink } from '../../../models/email/mail/upkeep';
import type { MailStore } from './mail_store';

const EVERY_MS = 10 * 60_000;
const FILES_AT_ONCE = 1000;

export function startMailUpkeep(parts: { config: Config; database: ControlDatabase; store: MailStore; log: Logger }): {
  stop(): Promise<void>;
} {
  let running = Promise.resolve();
  const run = (): void => {
    running = running
      .then(() => maintain(parts))
      .catch((error: unknown) => parts.log.warn({ err: error }, 'the upkeep of mail has failed'));
  };
  const timer = setInterval(run, EVERY_MS).unref();
  run();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}

async function maintain({ config, database, store }: Parameters<typeof startMailUpkeep>[0]): Promise<void> {
  await store.remove(await pruneMessages(database));
  await store.remove(await pruneSink(database, config.mailSinkMessages));
  const old = await store.old();
  for (let at = 0; at < old.length; at += FILES_AT_ONCE)
    await store.remove(await filesWithoutMessage(database, old.slice(at, at + FILES_AT_ONCE)));
}
