// Messages as the mail page of the admin port shows them.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

export interface StoredMessage {
  id: string;
  accepted_at: string;
  header_from: string;
  subject: string;
  size_bytes: number;
  file: string | null;
  body_offset: number;
  body_hash: string;
  recipients: { recipient: string; status: string; last_response: string | null }[];
  /** Selectors that sign, and whether their records were found. */
  signing: { name: string; dkim_records: unknown; findings: unknown } | null;
}

const COLUMNS = `m.id, m.accepted_at, m.header_from, m.subject, m.size_bytes, m.file, m.body_offset,
  m.body_hash,
  (select jsonb_agg(jsonb_build_object('recipient', d.recipient, 'status', d.status,
    'last_response', d.last_response) order by d.number)
    from (select * from email_deliveries where message_id = m.id order by number limit 20) d) as recipients,
  (select jsonb_build_object('name', e.name, 'dkim_records', e.dkim_records, 'findings', e.findings)
    from email_domains e where e.id = m.email_domain_id) as signing`;
const LATEST = named(`select ${COLUMNS} from email_messages m order by m.id desc limit $1`);
const ONE = named(`select ${COLUMNS}, b.content from email_messages m
  left join email_bodies b on b.message_id = m.id where m.id = $1`);

export function latestMessages(sql: Sql, count: number): Promise<StoredMessage[]> {
  return sql.query<StoredMessage>(LATEST, [count]);
}

/** With its text, where that is no file. */
export type MessageWithText = StoredMessage & { content: Buffer | null };

export async function findMessage(sql: Sql, id: string): Promise<MessageWithText | null> {
  const [message] = await sql.query<MessageWithText>(ONE, [id]);
  return message ?? null;
}
