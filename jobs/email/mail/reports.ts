// Bounces and complaints that come to the addresses of the platform: the return paths of messages, and abuse@.
import type { Config } from '../../../core/config';
import { parseReturnPath, type MailReference } from '../../../core/mail/mail_reference';
import type { Logger } from '../../../core/log/log';
import type { SecretBox } from '../../../core/secrets';
import type { ControlDatabase } from '../../../db/control_database';
import { type BounceRules, classifyRejection, type MailReport, failureFor } from '../../../engines/mail';
import { findRecipient, findSenderDomain, recordBounce, recordComplaint } from '../../../models/email/mail/reports';

/** Receivers of complaints, as feedback loops are registered (RFC 2142); a postmaster may have no domain. */
const COMPLAINTS = /^(abuse|fbl|postmaster)$/i;

export function bounceRules(parts: {
  config: Pick<Config, 'smtpHost'>;
  database: ControlDatabase;
  secrets: SecretBox;
  log: Logger;
}): BounceRules {
  const { config, database, secrets, log } = parts;
  return {
    async isOurs(address) {
      const [local = '', domain = ''] = address.split('@');
      if (address.toLowerCase() === 'postmaster') return true;
      if (COMPLAINTS.test(local)) return domain === config.smtpHost.toLowerCase();
      const about = parseReturnPath(secrets, address);
      return about !== null && isReturnDomain(domain, await findSenderDomain(database, about));
    },
    async report(recipients, report) {
      if (report.kind === 'none') return;
      const addressed = recipients.flatMap((address) => parseReturnPath(secrets, address) ?? []);
      const quoted = report.references.flatMap((text) => parseReturnPath(secrets, `${text}@quoted`) ?? []);
      // A bounce counts for the address that it came to; only complaints have to quote the message.
      const about: MailReference | undefined = addressed[0] ?? (report.kind === 'complaint' ? quoted[0] : undefined);
      if (!about) return log.info({ kind: report.kind }, 'a report is about no message of this installation');
      if (report.kind === 'complaint') return recordComplaint(database, about);
      await takeBounce(database, about, report);
    },
  };
}

/** A report may be about several recipients; only what it says of ours counts. */
async function takeBounce(database: ControlDatabase, about: MailReference, { outcomes }: MailReport): Promise<void> {
  const recipient = await findRecipient(database, about);
  const failure = recipient === null ? null : failureFor(outcomes, recipient);
  if (recipient === null || !failure) return;
  const { status, diagnostic, stage, isElsewhere } = failure;
  const response = [diagnostic.includes(status) ? '' : status, diagnostic].join(' ').trim() || 'The message came back.';
  const kind = classifyRejection({ stage, code: null, response: answerIn(status, diagnostic), recipient });
  await recordBounce(database, about, { rejection: isElsewhere && kind === 'mailbox' ? 'other' : kind, response });
}

/** The status of a report is often a general one; the answer that it quotes may have its own. */
function answerIn(status: string, diagnostic: string): string {
  return /\b[45]\.\d{1,3}\.\d{1,3}\b/.test(diagnostic) ? diagnostic : `${status} ${diagnostic}`;
}

/** The return path of a sending domain is below it. It may have been another name when the message went out. */
function isReturnDomain(domain: string, sender: string | null): boolean {
  return sender !== null && (domain === sender || domain.endsWith(`.${sender}`));
}
