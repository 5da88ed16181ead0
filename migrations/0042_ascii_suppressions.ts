import { domainToASCII } from 'node:url';
import type { Knex } from 'knex';

interface Suppression {
  id: string;
  email_relay_zone_id: string;
  email: string;
}

/** Domains of recipients are kept in ASCII from now on: what SMTP took before has to be found under that name. */
export async function up(knex: Knex): Promise<void> {
  const rows = await knex<Suppression>('email_suppressions').whereRaw(`email ~ '@.*[^[:ascii:]]'`);
  for (const { id, email, email_relay_zone_id } of rows) {
    const at = email.lastIndexOf('@') + 1;
    const ascii = domainToASCII(email.slice(at));
    const named = email.slice(0, at) + ascii;
    const taken = await knex<Suppression>('email_suppressions').where({ email_relay_zone_id, email: named }).first();
    if (taken) await knex<Suppression>('email_suppressions').where({ id }).delete();
    else if (ascii) await knex<Suppression>('email_suppressions').where({ id }).update({ email: named });
  }
}
