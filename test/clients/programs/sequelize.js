const { Sequelize } = require('sequelize');
const sequelize = new Sequelize(process.env.DATABASE_URL, { logging: false });
sequelize
  .query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
  .then(([rows]) => (console.log(rows[0].ssl ? 'encrypted' : 'plain'), sequelize.close()));
