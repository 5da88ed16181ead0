const knex = require('knex');
const { DATABASE_URL: uri } = process.env;
const ask = async (connection) => {
  const client = knex({ client: 'mysql2', connection });
  const [rows] = await client.raw("show session status like 'Ssl_cipher'");
  console.log(rows[0].Value ? 'encrypted' : 'plain');
  await client.destroy();
};
ask(uri).then(() => ask({ uri, ssl: {} }));
