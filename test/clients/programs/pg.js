const { Pool } = require('pg');
const pool = new Pool({ connectionString: process.env.DATABASE_URL });
pool
  .query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
  .then(({ rows }) => (console.log(rows[0].ssl ? 'encrypted' : 'plain'), pool.end()));
