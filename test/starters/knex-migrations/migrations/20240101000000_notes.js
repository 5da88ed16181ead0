exports.up = (knex) => knex.schema.createTable('notes', (table) => {
  table.increments('id');
  table.text('body').notNullable();
});
exports.down = (knex) => knex.schema.dropTable('notes');
