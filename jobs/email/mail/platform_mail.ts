// Mail sent by the platform: written as messages, and added to the queue like mail of customers. If the sender's domain
// is a verified sending domain, the mail is signed with its keys.
import type { Config } from '../../../core/config';
import type { Logger } from '../../../core/log/log';
import { htmlOf, plainTextOf, type PlatformMail } from '../../../core/mail/platform_mail';
import type { SecretBox } from '../../../core/secrets';
import type { ControlDatabase } from '../../../db/control_database';
import { composeMessage, receiveMessage } from '../../../engines/mail';
import { openWakeSignal } from '../../wake_signal';
import { writeResetMail } from '../../../models/identity/account_link';
import { findSigningDomain } from '../../../models/email/mail/sender';
import { forgetMails, isTakenOver, OUTBOX, waitingMails, type WaitingMail } from '../../../models/base/mail_outbox';
import type { Acceptances } from './rules';
import type { MailStore } from './store';

interface PlatformMailParts {
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
async function takeOver(parts: PlatformMailParts, waiting: WaitingMail): Promise<void> {
  const { config, database } = parts;
  const { id, recipients } = waiting;
  if (!(await isTakenOver(database, id))) {
    const mail =
      'requested' in waiting.mail
        ? await database.transaction((sql) => writeResetMail(sql, config, recipients[0] as string))
        : waiting.mail;
    if (mail) await enqueue(parts, { id, recipients, mail });
  }
  await forgetMails(database, [id]);
}

async function enqueue(
  { config, database, store, acceptances }: PlatformMailParts,
  { id, recipients, mail }: { id: string; recipients: string[]; mail: PlatformMail },
): Promise<void> {
  const from = config.smtpFrom ?? config.ownerEmail;
  const sender = /<([^>]+)>\s*$/.exec(from)?.[1] ?? from;
  const domain = await findSigningDomain(database, sender.slice(sender.lastIndexOf('@') + 1).toLowerCase());
  const composed = composeMessage({
    ...{ from, recipients, subject: mail.subject, text: plainTextOf(mail), html: htmlOf(mail) },
    messageId: `<${id}@${config.smtpHost}>`,
  });
  const file = `${id}.eml`;
  // What a process that died has left of it.
  await store.remove([file]);
  const { fields: _, ...stored } = await receiveMessage(composed, {
    ...{ id, file, directory: store.directory, host: config.smtpHost, bytesMax: BYTES_MAX },
    // Its links are worth a password: none stands in the database in plain text.
    inlineBytesMax: 0,
    received: `Received: by ${config.smtpHost} id ${id};\r\n ${new Date().toUTCString().replace('GMT', '+0000')}`,
    checkHeader: () => undefined,
    takesUtf8: true,
    keep: () => store.keep(file),
  });
  const owner = { project_id: null, email_relay_zone_id: null, email_domain_id: domain?.id ?? null };
  await acceptances.add({ ...stored, ...owner, id, sender, header_from: sender, recipients });
}
