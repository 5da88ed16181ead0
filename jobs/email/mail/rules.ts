// The submission policy of the mail server, read from the database.
import { mintId } from '../../../core/ids';
import type { Logger } from '../../../core/log/log';
import type { ControlDatabase } from '../../../db/control_database';
import { SmtpReply, type MailSender, type Submission, type SubmissionRules } from '../../../engines/mail';
import { acceptMessages, type Acceptance, type AcceptedMessage } from '../../../models/email/mail/accept';
import { allowsSource, findSendingZones, hasPassword, type SendingZone } from '../../../models/email/mail/sender';
import { openBatch, type Batch } from './batch';
import { openLoginFailures } from './logins';
import type { MailStore } from './store';

const ACCEPTED_AT_ONCE = 200;
const ASKED_AT_ONCE = 1000;
/** For which delivery is tried again while the server of a recipient cannot take a message. */
const RETRY_HOURS = 72;

export type Acceptances = Batch<AcceptedMessage, Acceptance>;

/** Rows of many messages go in one transaction. */
export function openAcceptances(database: ControlDatabase): Acceptances {
  return openBatch(ACCEPTED_AT_ONCE, (messages: AcceptedMessage[]) => acceptMessages(database, messages, RETRY_HOURS));
}

interface RuleParts {
  database: ControlDatabase;
  store: MailStore;
  acceptances: Acceptances;
  log: Logger;
}

export function submissionRules(parts: RuleParts): SubmissionRules {
  const { database, store, log } = parts;
  const failures = openLoginFailures();
  const zones = openBatch(ASKED_AT_ONCE, (ids: string[]) => findSendingZones(database, ids));
  const hashes = new WeakMap<MailSender, string>();
  const senderOf = (zone: SendingZone, address: string): MailSender => {
    requireSending(zone, address);
    const domains = new Map(zone.domains.map(({ id, name }) => [name, id]));
    const sender = { zone_id: zone.id, project_id: zone.project_id, domains };
    hashes.set(sender, zone.password_hash);
    return sender;
  };
  return {
    async login(username, password, address) {
      failures.requireFew(address, username);
      const zone = await zones.add(username);
      if (!zone || !hasPassword(zone, password)) {
        log.info({ address }, 'a mail client was refused');
        await failures.count(address, username);
        throw new SmtpReply(535, '5.7.8', 'The user name or the password is wrong.');
      }
      return senderOf(zone, address);
    },
    async renew(sender, address) {
      const zone = await zones.add(sender.zone_id);
      if (!zone || zone.password_hash !== hashes.get(sender))
        throw new SmtpReply(535, '5.7.8', 'The password of the relay zone has changed. Log in again.');
      return senderOf(zone, address);
    },
    newId: () => mintId('eml'),
    incoming(id) {
      const file = `${id}.eml`;
      return { file, directory: store.directory, keep: () => store.keep(file) };
    },
    accept: (id, submission) => accept(parts, id, submission),
  };
}

async function accept(
  { store, acceptances, log }: RuleParts,
  id: string,
  { sender, domain_id, from, header_from, recipients, message }: Submission,
): Promise<void> {
  const { fields: _, ...stored } = message;
  const discard = (): Promise<void> => store.remove(message.file === null ? [] : [message.file]);
  const verdict = await acceptances
    .add({
      ...{ ...stored, id, project_id: sender.project_id, email_relay_zone_id: sender.zone_id },
      ...{ email_domain_id: domain_id, sender: from, header_from, recipients },
    })
    .catch(async (error: unknown) => {
      log.error({ err: error }, 'a message could not be taken over');
      await discard();
      throw error;
    });
  if (verdict === 'accepted') return;
  await discard();
  throw refusalOf(verdict);
}

function refusalOf(verdict: Acceptance): SmtpReply {
  if (verdict === 'over_limit')
    return new SmtpReply(452, '4.7.1', 'The daily limit of the relay zone is reached. Try again tomorrow (UTC).');
  return new SmtpReply(550, '5.7.1', 'The relay zone does not send any more.');
}

/** @throws SmtpReply */
function requireSending(zone: SendingZone, address: string): void {
  if (!allowsSource(zone, address))
    throw new SmtpReply(550, '5.7.1', `The relay zone takes no mail from ${address}: see allowed_sources.`);
  if (zone.status === 'disabled') throw new SmtpReply(550, '5.7.1', 'The relay zone is disabled.');
  if (zone.status === 'suspended')
    throw new SmtpReply(550, '5.7.1', `The relay zone is suspended. ${zone.status_reason ?? ''}`.trim());
}
