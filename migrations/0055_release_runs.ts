import type { Knex } from 'knex';

/** Release commands of deployments are runs: one of each deployment, whose end its deployment waits for. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('runs', (table) => {
    // The limit for which the runtime ended the command: `memory`, `time`, `output` or `disk`.
    table.text('exceeded_limit');
  });
  for (const sql of STATEMENTS) await knex.raw(sql);
}

const STATEMENTS = [
  `create unique index runs_of_release on runs (trigger_id) where trigger_type = 'release'`,
  `create function wake_deployment_of_run() returns trigger language plpgsql as $$
    begin
      -- It looks again within a second in any case: no need to make its step void.
      update deployments set next_at = now() where id = new.trigger_id;
      if found then perform pg_notify('due', 'deployments'); end if;
      return null;
    end $$`,
  `create trigger runs_wake_deployment after update of status on runs for each row
    when (new.trigger_type = 'release' and new.status in ('succeeded', 'failed', 'canceled', 'timed_out')
      and old.status is distinct from new.status)
    execute function wake_deployment_of_run()`,
];
