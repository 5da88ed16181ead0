import type { Knex } from 'knex';
import { loopColumns, resourceColumns } from './frozen/columns';

/** Backups of databases are restored aside, to prove that they can be. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('database_backups', (table) => {
    table.text('proof_status').notNullable().defaultTo('unproven');
    table.specificType('proven_at', 'timestamptz(3)');
    table.integer('proof_seconds');
    table.bigInteger('proof_rows');
    table.text('proof_failure');
    table.specificType('proof_requested_at', 'timestamptz(3)');
    // Not before then; null: at once, or never again.
    table.specificType('proof_due_at', 'timestamptz(3)');
    table.check(
      `proof_status in ('unproven', 'waiting', 'running', 'proven', 'failed')`,
      [],
      'database_backups_proof_status',
    );
  });
  await knex.schema.alterTable('databases', (table) => {
    table.text('proof_assertion');
    table.integer('recovery_seconds');
    // When a backup of it was last tried: the one that waits longest is next.
    table.specificType('proof_tried_at', 'timestamptz(3)');
  });
  await createProofs(knex);
}

/** The server of the proof that is under way. It may outlive its database: what is on the host goes with the row. */
async function createProofs(knex: Knex): Promise<void> {
  await knex.schema.createTable('database_proofs', (table) => {
    resourceColumns(table);
    table.specificType('project_id', 'text collate "C"').notNullable();
    table.specificType('database_id', 'text collate "C"').notNullable();
    table.specificType('backup_id', 'text collate "C"').notNullable();
    table.text('engine').notNullable();
    table.integer('port').notNullable();
    table.specificType('started_at', 'timestamptz(3)');
    loopColumns(table);
  });
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  // One at a time.
  'create unique index database_proofs_one on database_proofs ((true))',
  'create index database_proofs_due on database_proofs (next_at) where next_at is not null',
  `create index database_backups_by_proof on database_backups (proof_status)
    where proof_status in ('waiting', 'running') and deleted_at is null`,
  `create trigger database_proofs_port after delete on database_proofs
    for each row execute function database_port_free()`,
];
