const { Sequelize } = require('sequelize');
const sequelize = new Sequelize(process.env.DATABASE_URL, { logging: false });
sequelize
  .query("show session status like 'Ssl_cipher'")
  .then(([rows]) => (console.log(rows[0].Value ? 'encrypted' : 'plain'), sequelize.close()));
