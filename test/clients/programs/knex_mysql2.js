const knex = require('knex')({ client: 'mysql2', connection: process.env.DATABASE_URL });
knex
  .raw("show session status like 'Ssl_cipher'")
  .then(([rows]) => (console.log(rows[0].Value ? 'encrypted' : 'plain'), knex.destroy()));
