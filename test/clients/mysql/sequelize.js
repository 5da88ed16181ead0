const { Sequelize } = require('sequelize');
const ask = async (options) => {
  const sequelize = new Sequelize(process.env.DATABASE_URL, { logging: false, ...options });
  const [rows] = await sequelize.query("show session status like 'Ssl_cipher'");
  console.log(rows[0].Value ? 'encrypted' : 'plain');
  await sequelize.close();
};
ask({}).then(() => ask({ dialectOptions: { ssl: {} } }));
