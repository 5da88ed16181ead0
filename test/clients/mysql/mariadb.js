const mariadb = require('mariadb');
const { readFileSync } = require('node:fs');
const { DATABASE_URL, DATABASE_CA_FILE } = process.env;
const { hostname: host, port, username: user, password, pathname } = new URL(DATABASE_URL);
const ask = async (options) => {
  const connection = await mariadb.createConnection(options);
  const rows = await connection.query("show session status like 'Ssl_cipher'");
  console.log(rows[0].Value ? 'encrypted' : 'plain');
  await connection.end();
};
const parts = { host, port: Number(port), user, password, database: pathname.slice(1) };
ask(DATABASE_URL.replace('mysql:', 'mariadb:')).then(() =>
  ask({ ...parts, ssl: { ca: readFileSync(DATABASE_CA_FILE) } }),
);
