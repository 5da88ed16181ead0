const mysql = require('mysql2/promise');
(async () => {
  const pool = mysql.createPool(process.env.DATABASE_URL);
  const [rows] = await pool.query("show session status like 'Ssl_cipher'");
  console.log(rows[0].Value ? 'encrypted' : 'plain');
  await pool.end();
})();
