import type { Knex } from 'knex';

/**
 * What an instance comes to is looked at by the application or the preview that it belongs to, and by the deployment
 * that waits for it: whoever changes the instance, at commit. Rows are locked in this order everywhere: instance,
 * application or preview, deployment.
 */
export async function up(knex: Knex): Promise<void> {
  for (const sql of WAKES) await knex.raw(sql);
}

const WAKES = [
  'create index deployments_of_artifact on deployments (artifact_id)',
  `create function wake_stack(application text, preview text, deployment text) returns void language plpgsql as $$
    begin
      if preview is null then
        update applications set next_at = now(), generation = generation + 1 where id = application;
        perform pg_notify('due', 'applications');
      else
        update previews set next_at = now(), generation = generation + 1 where id = preview;
        perform pg_notify('due', 'previews');
      end if;
      -- It looks again within a second in any case: no need to make its step void.
      update deployments set next_at = now() where id = deployment and status = 'deploying';
      if found then perform pg_notify('due', 'deployments'); end if;
    end $$`,
  `create function instance_changed() returns trigger language plpgsql as $$
    begin
      if tg_op = 'DELETE' then
        perform wake_stack(old.application_id, old.preview_id, old.deployment_id);
      else
        perform wake_stack(new.application_id, new.preview_id, new.deployment_id);
      end if;
      return null;
    end $$`,
  `create trigger instances_come_and_go after insert or delete on instances for each row
    execute function instance_changed()`,
  `create trigger instances_move after update on instances for each row
    when (old.status is distinct from new.status or old.exits is distinct from new.exits
      or old.observed is distinct from new.observed)
    execute function instance_changed()`,
];
