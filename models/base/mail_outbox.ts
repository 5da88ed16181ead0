// Outbox of the platform's mail. The text may hold a secret, such as the token of an invitation, so it is sealed until
// the host writes the message.
import { createHash } from 'node:crypto';
import type { Context, Sql } from '../../core/context';
import { mintId } from '../../core/ids';
import type { PlatformMail, RequestedMail } from '../../core/mail/platform_mail';
import type { SecretBox } from '../../core/secrets';
import { named } from '../../db/statement';
import { sealedColumns } from './sealed_columns';

export const OUTBOX = 'email_outbox';

const INSERT = named(
  'insert into email_outbox (id, recipients, sealed) values ($1, $2, $3) on conflict (id) do nothing',
);
const NEXT = named('select id, recipients, sealed from email_outbox order by id limit $1');
const DELETE = named('delete from email_outbox where id = any($1)');
const TAKEN = named('select 1 from email_messages where id = $1');

export interface WaitingMail {
  id: string;
  recipients: string[];
  mail: PlatformMail | RequestedMail;
}

/** Queues mail in the transaction of the event that it reports; does nothing where mail is disabled. */
export async function queueMail(
  { sql, secrets, config }: Pick<Context, 'sql' | 'secrets' | 'config'>,
  recipients: readonly string[],
  mail: PlatformMail,
): Promise<void> {
  if (!config.smtpPorts.length) return;
  await queuePlatformMail(sql, secrets, { id: mintId('eml'), recipients: [...recipients], mail });
}

/** Queues mail that the host composes, if the address belongs to a user. */
export async function queueRequestedMail(
  { sql, secrets }: Pick<Context, 'sql' | 'secrets'>,
  email: string,
  mail: RequestedMail,
): Promise<void> {
  await queuePlatformMail(sql, secrets, { id: mintId('eml'), recipients: [email], mail });
}

/** The message id for an event id of any form. */
export function platformMailId(of: string): string {
  const digits = createHash('sha256').update(of).digest();
  return `eml_${Array.from(digits.subarray(0, 26), (byte) => LETTERS[byte % LETTERS.length]).join('')}`;
}

const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz';

/** @param waiting its id becomes the id of the message, so a duplicate is sent only once */
export async function queuePlatformMail(
  sql: Sql,
  secrets: SecretBox,
  { id, recipients, mail }: WaitingMail,
): Promise<void> {
  await sql.query(INSERT, [
    id,
    recipients,
    secrets.seal(JSON.stringify(mail), sealedColumns.platformMail.contextOf(id)),
  ]);
  sql.due(OUTBOX);
}

export async function waitingMails(sql: Sql, secrets: SecretBox, count: number): Promise<WaitingMail[]> {
  const rows = await sql.query<{ id: string; recipients: string[]; sealed: string }>(NEXT, [count]);
  return rows.map(({ id, recipients, sealed }) => {
    return {
      id,
      recipients,
      mail: JSON.parse(secrets.open(sealed, sealedColumns.platformMail.contextOf(id))) as WaitingMail['mail'],
    };
  });
}

/** Whether the message of a waiting mail is in the queue. */
export async function isTakenOver(sql: Sql, id: string): Promise<boolean> {
  return (await sql.query(TAKEN, [id])).length > 0;
}

export async function forgetMails(sql: Sql, ids: readonly string[]): Promise<void> {
  await sql.query(DELETE, [[...ids]]);
}
