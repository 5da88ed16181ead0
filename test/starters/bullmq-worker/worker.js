const { Worker } = require('bullmq');
const IORedis = require('ioredis');

const connection = new IORedis(process.env.REDIS_URL, { maxRetriesPerRequest: null });
new Worker('sums', async ({ data }) => data.numbers.reduce((sum, number) => sum + number, 0), { connection });
console.log('Waiting for sums');
