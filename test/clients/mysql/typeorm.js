require('reflect-metadata');
const { DataSource } = require('typeorm');
const ask = async (options) => {
  const source = new DataSource({ type: 'mysql', url: process.env.DATABASE_URL, ...options });
  await source.initialize();
  const rows = await source.query("show session status like 'Ssl_cipher'");
  console.log(rows[0].Value ? 'encrypted' : 'plain');
  await source.destroy();
};
ask({}).then(() => ask({ ssl: {} }));
