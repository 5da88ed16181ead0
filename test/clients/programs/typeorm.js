require('reflect-metadata');
const { DataSource } = require('typeorm');
const source = new DataSource({ type: 'postgres', url: process.env.DATABASE_URL });
source
  .initialize()
  .then(() => source.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()'))
  .then((rows) => (console.log(rows[0].ssl ? 'encrypted' : 'plain'), source.destroy()));
