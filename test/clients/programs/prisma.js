// The connection of Prisma 7 (its driver adapter); its engines come from a host of their own.
const { PrismaPg } = require('@prisma/adapter-pg');
const sql = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()';
new PrismaPg({ connectionString: process.env.DATABASE_URL }).connect().then(async (adapter) => {
  const { rows } = await adapter.queryRaw({ sql, args: [], argTypes: [] });
  console.log(rows[0][0] ? 'encrypted' : 'plain');
  await adapter.dispose();
});
