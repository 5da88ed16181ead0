import type { Knex } from 'knex';
import { loopColumns } from './frozen/columns';

/** Certificates of custom domains, the account at each authority, and the challenges that are being answered. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.createTable('certificates', (table) => {
    // The host name: one row for each, so that its lease is the right to order.
    table.specificType('id', 'text collate "C"').primary();
    table
      .specificType('domain_id', 'text collate "C"')
      .notNullable()
      .references('domains.id')
      .onDelete('cascade')
      .withKeyName('certificates_domain');
    // Of the last one that was issued: where from, PEM with the leaf first, and its key, sealed.
    table.text('authority');
    table.text('chain');
    table.text('key');
    table.text('issuer');
    table.specificType('issued_at', 'timestamptz(3)');
    table.specificType('expires_at', 'timestamptz(3)');
    loopColumns(table);
    table.check('(chain is null) = (key is null)', [], 'certificates_whole');
  });
  await knex.schema.createTable('acme_accounts', (table) => {
    table.text('authority').primary();
    // Sealed.
    table.text('key').notNullable();
    table.specificType('created_at', 'timestamptz(3) default now()').notNullable();
  });
  // In the database, so that whichever process the authority reaches can answer.
  await knex.schema.createTable('acme_challenges', (table) => {
    table.specificType('token', 'text collate "C"').primary();
    table.text('key_authorization').notNullable();
    table
      .specificType('certificate_id', 'text collate "C"')
      .notNullable()
      .references('certificates.id')
      .onDelete('cascade')
      .withKeyName('acme_challenges_certificate');
    table.specificType('created_at', 'timestamptz(3) default now()').notNullable();
  });
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  'create unique index certificates_of_domain on certificates (domain_id)',
  'create index certificates_due on certificates (next_at) where next_at is not null',
  'create index acme_challenges_of_certificate on acme_challenges (certificate_id)',

  // A domain that becomes active wants a certificate, whoever has found its records.
  `create function certificate_wanted() returns trigger language plpgsql as $$
    begin
      insert into certificates (id, domain_id) values (new.hostname, new.id)
        on conflict (id) do update set domain_id = excluded.domain_id, next_at = now(), attempts = 0;
      perform pg_notify('due', 'certificates');
      return null;
    end $$`,
  `create trigger domains_certificate after update of status on domains for each row
    when (new.status = 'active' and old.status <> 'active' and new.deleted_at is null)
      execute function certificate_wanted()`,
  `insert into certificates (id, domain_id) select hostname, id from domains
      where status = 'active' and deleted_at is null`,

  // The payload is the host name: whoever serves it forgets the certificate that it has.
  `create function certificate_changed() returns trigger language plpgsql as $$
    begin
      perform pg_notify('certificates', case tg_op when 'DELETE' then old.id else new.id end);
      return null;
    end $$`,
  `create trigger certificates_changed after delete or update of chain on certificates for each row
    execute function certificate_changed()`,
];
