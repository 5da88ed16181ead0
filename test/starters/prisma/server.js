const http = require('node:http');
const { PrismaPg } = require('@prisma/adapter-pg');
const { PrismaClient } = require('@prisma/client');

const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) });

http
  .createServer(async (request, response) => {
    if (request.method === 'POST') await prisma.task.create({ data: { title: 'written by Prisma' } });
    response.end(JSON.stringify(await prisma.task.findMany()));
  })
  .listen(process.env.PORT || 3000);
