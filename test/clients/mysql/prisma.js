const { PrismaMariaDb } = require('@prisma/adapter-mariadb');
const { readFileSync } = require('node:fs');
const { DATABASE_URL, DATABASE_CA_FILE } = process.env;
const { hostname: host, port, username: user, password, pathname } = new URL(DATABASE_URL);
const ask = async (options) => {
  const adapter = await new PrismaMariaDb(options).connect();
  const { rows } = await adapter.queryRaw({
    sql: "show session status like 'Ssl_cipher'",
    args: [],
    argTypes: [],
  });
  console.log(rows[0][1] ? 'encrypted' : 'plain');
  await adapter.dispose();
};
const parts = { host, port: Number(port), user, password, database: pathname.slice(1) };
ask(DATABASE_URL).then(() => ask({ ...parts, ssl: { ca: readFileSync(DATABASE_CA_FILE) } }));
