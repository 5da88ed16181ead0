const mysql = require('mysql2/promise');
const { DATABASE_URL: uri } = process.env;
const ask = async (pool) => {
  const [rows] = await pool.query("show session status like 'Ssl_cipher'");
  console.log(rows[0].Value ? 'encrypted' : 'plain');
  await pool.end();
};
ask(mysql.createPool(uri)).then(() => ask(mysql.createPool({ uri, ssl: { verifyIdentity: true } })));
