// Mail of the platform itself: written as messages, and taken over into the queue like those of customers. Where its
// sender is of a verified sending domain, it is signed with the keys of that domain.
import type { Config } from '../core/config';
import type { Logger } from '../core/log';
import { htmlOf, plainTextOf } from '../core/platform_mail';
import type { SecretBox } from '../core/secrets';
import type { ControlDatabase } from '../db/control_database';
import { composeMessage } from '../drivers/mail/compose';
import { receiveMessage } from '../drivers/mail/message_file';
import { openWakeSignal } from '../jobs/wake_signal';
import { findSigningDomain } from '../models/mail/sender';
import { forgetMails, OUTBOX, waitingMails, type WaitingMail } from '../models/mail/outbox';
import type { Acceptances } from './mail_rules';
import type { MailStore } from './mail_store';

export interface PlatformMailParts {
  config: Config;
  database: ControlDatabase;
  secrets: SecretBox;
  store: MailStore;
  acceptances: Acceptances;
  log: Logger;
  listen(handlers: Record<string, (payload: string) => void>): { close(): Promise<void> };
}

const AT_ONCE = 20;
const POLL_MS = 5_000;
const BYTES_MAX = 1024 * 1024;
const ALREADY_THERE = '23505';

export function startPlatformMail(parts: PlatformMailParts): { stop(): Promise<void> } {
  const signal = openWakeSignal();
  const listener = parts.listen({ due: (table) => (table === OUTBOX ? signal.notify() : undefined) });
  let stopping = false;
  const run = async (): Promise<void> => {
    while (!stopping) {
      try {
        const waiting = await waitingMails(parts.database, parts.secrets, AT_ONCE);
        for (const mail of waiting) await takeOver(parts, mail);
        if (waiting.length < AT_ONCE) await signal.wait(POLL_MS);
      } catch (error) {
        parts.log.warn({ err: error }, 'mail of the platform could not be taken over');
        await signal.wait(POLL_MS);
      }
    }
  };
  const ended = run();
  return {
    async stop() {
      stopping = true;
      signal.notify();
      await ended;
      await listener.close();
    },
  };
}

/** A process that dies between the message and the outbox finds the message there, and only clears the outbox. */
async function takeOver(
  { config, database, store, acceptances }: PlatformMailParts,
  waiting: WaitingMail,
): Promise<void> {
  const { id, recipients, mail } = waiting;
  const from = config.smtpFrom ?? config.ownerEmail;
  const sender = /<([^>]+)>\s*$/.exec(from)?.[1] ?? from;
  const domain = await findSigningDomain(database, sender.slice(sender.lastIndexOf('@') + 1).toLowerCase());
  const composed = composeMessage({
    ...{ from, recipients, subject: mail.subject, text: plainTextOf(mail), html: htmlOf(mail) },
    messageId: `<${id}@${config.smtpHost}>`,
  });
  const file = `${id}.eml`;
  await store.remove([file]);
  const { fields: _, ...stored } = await receiveMessage(composed, {
    ...{ id, file, directory: store.directory, host: config.smtpHost, bytesMax: BYTES_MAX },
    received: `Received: by ${config.smtpHost} id ${id};\r\n ${new Date().toUTCString().replace('GMT', '+0000')}`,
    checkHeader: () => undefined,
    syncDirectory: () => store.sync(),
  });
  const message = {
    ...stored,
    id,
    project_id: null,
    email_relay_zone_id: null,
    sender,
    header_from: sender,
    recipients,
  };
  await acceptances.add({ ...message, email_domain_id: domain?.id ?? null }).catch((error: unknown) => {
    if ((error as { code?: string }).code !== ALREADY_THERE) throw error;
  });
  await forgetMails(database, [id]);
}
