const knex = require('knex')({ client: 'pg', connection: process.env.DATABASE_URL });
knex
  .raw('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
  .then(({ rows }) => (console.log(rows[0].ssl ? 'encrypted' : 'plain'), knex.destroy()));
