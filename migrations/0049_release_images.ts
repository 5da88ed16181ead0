import type { Knex } from 'knex';

/** The image of a release in the registry of the platform: `apps/app_…@sha256:…`. */
export async function up(knex: Knex): Promise<void> {
  await knex.schema.alterTable('releases', (table) => {
    table.specificType('image', 'text collate "C"');
  });
  await knex.raw('create index releases_of_image on releases (image) where image is not null');
}
