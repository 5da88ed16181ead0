import type { Knex } from 'knex';

/** The source that a preset fills in was called `template`, in its type and in a field. */
export async function up(knex: Knex): Promise<void> {
  for (const table of ['applications', 'deployments'])
    await knex.raw(`update ${table} set source = (source - 'template')
      || jsonb_build_object('type', 'preset', 'preset', source -> 'template') where source ->> 'type' = 'template'`);
}
